package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// mostQuarantined is how many tests may fail by chance before the gate says so in capitals.
const mostQuarantined = 10

// entry is a test that is known to fail by chance.
type entry struct {
	Test    string `yaml:"test"`    // as the gate names it: PACKAGE.TestName, or python/tests/test_file.py::test_name
	Date    string `yaml:"date"`    // on which it was entered
	Commit  string `yaml:"commit"`  // at which it failed, and passed
	Failed  string `yaml:"failed"`  // the log of one failure
	Passed  string `yaml:"passed"`  // the line of one pass, of the same commit
	Suspect string `yaml:"suspect"` // what may be the cause
}

// readQuarantine reads the file; one that is not there lists nothing. An entry without one of its parts is an error: a test that is listed
// without a trace is a test that nobody mends.
func readQuarantine(file string) ([]entry, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read
	var entries []entry
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&entries); err != nil && !errors.Is(err, io.EOF) { // a file of comments lists nothing
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, e := range entries {
		for part, s := range map[string]string{"test": e.Test, "date": e.Date, "commit": e.Commit, "failed": e.Failed, "passed": e.Passed, "suspect": e.Suspect} {
			if strings.TrimSpace(s) == "" {
				return nil, fmt.Errorf("%s: entry %d, %q: it has no %s", file, i+1, e.Test, part)
			}
		}
		if _, err := time.Parse(time.DateOnly, e.Date); err != nil {
			return nil, fmt.Errorf("%s: %s: the date is %q: it takes YYYY-MM-DD", file, e.Test, e.Date)
		}
		if t := testOf(e.Test); t.name == "" {
			return nil, fmt.Errorf("%s: %q is no test: it takes PACKAGE.TestName or FILE.py::test_name", file, e.Test)
		}
	}
	return entries, nil
}

// runQuarantine runs each test in quarantine by itself, several times, and tells how often it failed: one that never does may leave.
func runQuarantine(ctx context.Context, e env, j *judge, times int) error {
	if len(j.quarantine) == 0 {
		fmt.Fprintln(e.out, "no test is in quarantine")
	}
	for _, t := range j.quarantine {
		failed, where := 0, ""
		for range times {
			r := e.suiteOf(t).alone(ctx, t, nil)
			if r.broken != "" || r.ran == 0 && len(r.failed) == 0 {
				return fmt.Errorf("%s is in quarantine, and is no test that runs: %s", t, r.broken)
			}
			if len(r.failed) > 0 {
				failed++
				where = ", " + j.keep(t, r.logs[r.failed[0]])
			}
		}
		fmt.Fprintf(e.out, "%s failed %d times of %d%s\n", t, failed, times, where)
	}
	return ctx.Err()
}

// testOf is the test of a name, as test.String writes it.
func testOf(name string) test {
	if file, rest, ok := strings.Cut(name, "::"); ok {
		return test{file, rest}
	}
	dir := strings.LastIndexByte(name, '/') + 1
	pkg, rest, ok := strings.Cut(name[dir:], ".")
	if !ok {
		return test{unit: name}
	}
	return test{name[:dir] + pkg, rest}
}
