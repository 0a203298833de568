package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pyTests is the suite of a folder of Python tests.
type pyTests struct {
	root    string
	dir     string // the folder, from the root of the tree
	python  string // the interpreter
	flags   []string
	environ []string // beside that of this process
	cache   string   // a folder of pytest's own, where it says what has failed
	out     io.Writer
}

func (s pyTests) all(ctx context.Context) result { return s.run(ctx, s.flags...) }

func (s pyTests) alone(ctx context.Context, t test, without []string) result {
	if t.unit == s.dir {
		return s.all(ctx)
	}
	file := strings.TrimPrefix(t.unit, s.dir+"/")
	if t.name != "" {
		return s.run(ctx, "-n", "0", file+"::"+t.name)
	}
	args := []string{"-n", "0", file}
	for _, name := range without {
		args = append(args, "--deselect", file+"::"+name)
	}
	return s.run(ctx, args...)
}

func (s pyTests) run(ctx context.Context, args ...string) result {
	if err := os.RemoveAll(s.cache); err != nil {
		return result{broken: err.Error()}
	}
	args = slices.Concat([]string{"-m", "pytest", "-q", "-rf", "-o", "cache_dir=" + s.cache}, args)
	cmd := exec.CommandContext(ctx, s.python, args...)
	cmd.Dir = filepath.Join(s.root, s.dir)
	cmd.Env = append(os.Environ(), s.environ...)
	var said bytes.Buffer
	cmd.Stdout = io.MultiWriter(s.out, &said)
	cmd.Stderr = cmd.Stdout
	endTogether(cmd)
	err := cmd.Run()
	r := result{ran: counted(said.String()), logs: make(map[test]string)}
	if err == nil {
		return r
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() == exitUsage || exit.ExitCode() == exitNothing {
		r.broken = fmt.Sprintf("pytest %s in %s: %v", strings.Join(args[2:], " "), s.dir, err)
		return r
	}
	r.failed = distinct(append(s.lastFailed(), s.crashed(said.String())...))
	if len(r.failed) == 0 {
		r.failed = []test{{unit: s.dir}} // it ended without a word of which test failed
	}
	for _, t := range r.failed {
		r.logs[t] = failuresOf(said.String())
	}
	return r
}

// Exit codes of pytest for a wrong command line, and for no test at all.
const exitUsage, exitNothing = 4, 5

// lastFailed lists what pytest notes to run first next time: what has failed.
func (s pyTests) lastFailed() []test {
	b, err := os.ReadFile(filepath.Join(s.cache, "v/cache/lastfailed"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var ids map[string]bool
	if err != nil || json.Unmarshal(b, &ids) != nil {
		return nil
	}
	var failed []test
	for id := range ids {
		failed = append(failed, s.test(id))
	}
	slices.SortFunc(failed, func(a, b test) int { return strings.Compare(a.String(), b.String()) })
	return failed
}

var crashes = regexp.MustCompile(`(?m)^worker '\w+' crashed while running '(.*)'$`)

// crashed lists the tests that ended their process, which pytest does not note.
func (s pyTests) crashed(said string) []test {
	var failed []test
	for _, m := range crashes.FindAllStringSubmatch(said, -1) {
		failed = append(failed, s.test(m[1]))
	}
	return failed
}

// test is the test that pytest names so.
func (s pyTests) test(id string) test {
	file, name, _ := strings.Cut(id, "::")
	return test{path.Join(s.dir, file), name}
}

var countedWords = regexp.MustCompile(`\b(\d+) (passed|failed|skipped|xfailed|xpassed|errors?)\b`)

// counted is how many tests the last line of pytest has.
func counted(said string) (n int) {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for _, m := range countedWords.FindAllStringSubmatch(lines[len(lines)-1], -1) {
		i, err := strconv.Atoi(m[1])
		if err == nil {
			n += i
		}
	}
	return n
}

var sections = regexp.MustCompile(`(?m)^=+ (FAILURES|ERRORS) =+$`)

// failuresOf is what pytest says of the tests that failed; all that it said where it has no such part.
func failuresOf(said string) string {
	if at := sections.FindStringIndex(said); at != nil {
		return said[at[0]:]
	}
	return said
}
