package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mobula/internal/tools/quiet"
)

const usage = `gate [flags] [step ...]   runs the steps, or all of them, from the root of the tree

examples:
  gate                       what decides whether a change lands
  gate vet packages          two steps
  gate -go-flags=-race packages
  TRIES=3 gate python        what fails is tried three times in all, as .ci/run does

steps, in their order:
`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("gate", flag.ContinueOnError)
	goFlags := flags.String("go-flags", "", "flags for go test, with spaces between")
	times := flags.Int("quarantine", 0, "run the tests in quarantine so often, each by itself, and no step")
	before := flags.String("before", "", "a row for the table, NAME=SECONDS: what has run before")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		for _, s := range steps {
			fmt.Fprintf(flags.Output(), "  %-10s %s\n", s.name, s.says)
		}
		fmt.Fprintln(flags.Output(), "\nflags:")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	todo, err := chosen(flags.Args())
	if err != nil {
		return err
	}
	rows, err := rowBefore(*before)
	if err != nil {
		return err
	}
	tries, err := triesAllowed()
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	entries, err := readQuarantine(filepath.Join(root, ".ci/quarantine.yaml"))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(root, logs)); err != nil {
		return err
	}
	j := &judge{tries: tries, now: time.Now, keep: keeper(root)}
	for _, e := range entries {
		j.quarantine = append(j.quarantine, testOf(e.Test))
	}
	e := env{python: filepath.Join(root, ".venv/bin/python"), root: root, out: out, flags: strings.Fields(*goFlags)}
	if len(flags.Args()) == 0 && *times == 0 {
		release, err := quiet.Hold("the gate")
		if errors.Is(err, quiet.ErrBusy) { // it is no reason to refuse a change, but one for what follows
			fmt.Fprintln(out, "NOTE", err)
		} else if err != nil {
			return err
		} else {
			defer release()
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *times > 0 {
		return runQuarantine(ctx, e, j, *times)
	}
	rows = append(rows, runSteps(ctx, e, j, todo)...)
	report(out, rows, j, entries)
	if n := len(j.failures); n > 0 {
		return fmt.Errorf("%d failures", n)
	}
	return nil
}

// runSteps runs the steps until a command fails: tests go on after a failure.
func runSteps(ctx context.Context, e env, j *judge, todo []step) (rows []row) {
	do := func(name string, limit time.Duration, f func(ctx context.Context) bool) bool {
		fmt.Fprintf(e.out, "=== %s\n", name)
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s has taken its %v", name, limit))
		defer cancel()
		begin := time.Now()
		ok := f(ctx)
		rows = append(rows, row{name, time.Since(begin), ok})
		return ok
	}
	for _, s := range todo {
		if s.command != nil {
			if !do(s.name, s.limit, func(ctx context.Context) bool {
				err := e.command(ctx, s.command)
				if err != nil {
					j.fail("%s: %s: %v", s.name, strings.Join(s.command, " "), errors.Join(err, context.Cause(ctx)))
				}
				return err == nil
			}) {
				return rows
			}
			continue
		}
		suites, err := s.suites(e)
		if err != nil {
			j.fail("%s: %v", s.name, err)
			return rows
		}
		for _, s2 := range suites {
			do(s2.name, s.limit, func(ctx context.Context) bool { return j.run(ctx, s2.suite) })
			if ctx.Err() != nil {
				return rows
			}
		}
	}
	return rows
}

// chosen are the steps of these names, in their order; all for none.
func chosen(names []string) ([]step, error) {
	if len(names) == 0 {
		return steps, nil
	}
	for _, n := range names {
		if !slices.ContainsFunc(steps, func(s step) bool { return s.name == n }) {
			return nil, fmt.Errorf("there is no step %q: gate -h lists them", n)
		}
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return !slices.Contains(names, s.name) }), nil
}

// triesAllowed is TRIES of the environment: how often what may fail by chance is run, 1 without it.
func triesAllowed() (int, error) {
	s := os.Getenv("TRIES")
	if s == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > triesOfTest {
		return 0, fmt.Errorf("TRIES is %q: it takes a number from 1 to %d", s, triesOfTest)
	}
	return n, nil
}

func rowBefore(s string) ([]row, error) {
	if s == "" {
		return nil, nil
	}
	name, n, _ := strings.Cut(s, "=")
	seconds, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return nil, fmt.Errorf("-before is %q: it takes NAME=SECONDS", s)
	}
	return []row{{name, time.Duration(seconds * float64(time.Second)), true}}, nil
}

// logs is where the logs of failures of the last run are, from the root of the tree.
const logs = ".cache/gate"

// keeper writes the logs of failures, and names them from the root of the tree.
func keeper(root string) func(t test, log string) string {
	n := 0
	return func(t test, log string) string {
		n++
		clean := strings.Map(func(r rune) rune {
			if strings.ContainsRune("/:[] ", r) {
				return '-'
			}
			return r
		}, t.String())
		name := filepath.Join(logs, fmt.Sprintf("%02d-%.120s.log", n, clean))
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(log), 0o644)); err != nil {
			return "its log is lost: " + err.Error()
		}
		return "log " + name
	}
}
