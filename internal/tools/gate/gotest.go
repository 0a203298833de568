package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// packageLimit is the time that one Go package may take: -timeout. Waits of tests end long before.
const packageLimit = 15 * time.Minute

// goTests is the suite of some Go packages.
type goTests struct {
	dir      string // where go runs; "" for here
	packages []string
	flags    []string
	environ  []string  // beside that of this process
	out      io.Writer // for several writers at once, as a file is
}

func (s goTests) all(ctx context.Context) result {
	return s.run(ctx, s.packages...)
}

func (s goTests) alone(ctx context.Context, t test, without []string) result {
	switch {
	case t.name != "":
		return s.run(ctx, "-run", "^"+regexp.QuoteMeta(t.name)+"$", t.unit)
	case len(without) > 0:
		for i, name := range without {
			without[i] = regexp.QuoteMeta(name)
		}
		return s.run(ctx, "-skip", "^("+strings.Join(without, "|")+")$", t.unit)
	}
	return s.run(ctx, t.unit)
}

func (s goTests) run(ctx context.Context, args ...string) result {
	args = slices.Concat([]string{"test", "-json", "-timeout", packageLimit.String()}, s.flags, args)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), s.environ...)
	cmd.Stderr = s.out
	endTogether(cmd)
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return result{broken: fmt.Sprintf("go %s: %v", strings.Join(args, " "), err)}
	}
	log := newGoLog(s.out)
	read := log.readAll(events)
	err = errors.Join(read, cmd.Wait())
	r := log.result()
	if err != nil && len(r.failed) == 0 && r.broken == "" {
		r.broken = fmt.Sprintf("go %s: %v", strings.Join(args, " "), err)
	}
	return r
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string
}

// goLog makes a result of the events of go test. It prints what a person wants to see: one line a package, and what a failed test has said.
type goLog struct {
	out      io.Writer
	packages map[string]*packageLog
	r        result
}

// packageLog is what is known of a package that runs.
type packageLog struct {
	said    map[string]*bytes.Buffer // by test of the first level; "" is the package itself
	running []string                 // tests of the first level that have begun and not ended
	failed  []string
	told    bool // the test binary has come to its end, and said that it failed
}

func newGoLog(out io.Writer) *goLog {
	return &goLog{out: out, packages: make(map[string]*packageLog), r: result{logs: make(map[test]string)}}
}

func (l *goLog) readAll(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			l.read(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (l *goLog) read(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		l.print(string(line)) // what go says beside the events
		return
	}
	switch e.Action {
	case "build-output":
		l.print(e.Output)
		return
	case "build-fail":
		l.r.broken = e.ImportPath + " does not build"
		return
	}
	p := l.packages[e.Package]
	if p == nil {
		p = &packageLog{said: make(map[string]*bytes.Buffer)}
		l.packages[e.Package] = p
	}
	if e.Test == "" {
		l.ofPackage(p, e)
	} else {
		l.ofTest(p, e)
	}
}

func (l *goLog) ofPackage(p *packageLog, e event) {
	switch e.Action {
	case "output":
		switch {
		case e.Output == "FAIL\n":
			p.told = true
		case strings.HasPrefix(e.Output, "ok  \t"), strings.HasPrefix(e.Output, "FAIL\t"):
			l.print(e.Output)
		default:
			p.buffer("").WriteString(e.Output)
		}
	case "fail":
		switch {
		case e.FailedBuild != "":
			l.r.broken = e.FailedBuild + " does not build"
		case p.told && len(p.failed) > 0 && len(p.running) == 0:
			for _, name := range p.failed {
				l.failed(test{e.Package, name}, p.buffer(name).String())
			}
		default: // it panicked, reached its limit, or exited in its own way: tests may not have run
			var said strings.Builder
			for _, name := range slices.Concat([]string{""}, p.failed, p.running) {
				said.Write(p.buffer(name).Bytes())
			}
			l.failed(test{unit: e.Package}, said.String())
		}
	}
	if e.Action == "pass" || e.Action == "fail" {
		delete(l.packages, e.Package)
	}
}

func (l *goLog) ofTest(p *packageLog, e event) {
	name, _, sub := strings.Cut(e.Test, "/")
	switch e.Action {
	case "output":
		p.buffer(name).WriteString(e.Output)
	case "run":
		if !sub {
			p.running = append(p.running, name)
		}
	case "pass", "fail", "skip":
		if sub {
			return
		}
		l.r.ran++
		p.running = slices.DeleteFunc(p.running, func(n string) bool { return n == name })
		if e.Action == "fail" {
			p.failed = append(p.failed, name)
		} else {
			delete(p.said, name)
		}
	}
}

func (p *packageLog) buffer(name string) *bytes.Buffer {
	b := p.said[name]
	if b == nil {
		b = new(bytes.Buffer)
		p.said[name] = b
	}
	return b
}

func (l *goLog) failed(t test, said string) {
	l.r.failed = append(l.r.failed, t)
	l.r.logs[t] = said
	l.print(fmt.Sprintf("--- failed: %s\n%s", t, head(said, 400)))
}

func (l *goLog) print(s string) {
	_, _ = io.WriteString(l.out, s) // the terminal; if it is gone, the verdict still counts
}

// head is the first lines of a text.
func head(s string, lines int) string {
	at := 0
	for range lines {
		i := strings.IndexByte(s[at:], '\n')
		if i < 0 {
			return s
		}
		at += i + 1
	}
	if at == len(s) {
		return s
	}
	return s[:at] + "... the log has the rest\n"
}

// result is what all events have shown. A package without an end, as after a kill of go test, has failed.
func (l *goLog) result() result {
	for name, p := range l.packages {
		if name != "" && (len(p.running) > 0 || len(p.failed) > 0) {
			l.failed(test{unit: name}, p.buffer("").String())
		}
	}
	slices.SortFunc(l.r.failed, func(a, b test) int { return strings.Compare(a.String(), b.String()) })
	return l.r
}
