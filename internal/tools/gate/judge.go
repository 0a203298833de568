package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// test names one test, or with no name all of its unit: a Go package, or a file of Python tests.
type test struct{ unit, name string }

func (t test) String() string {
	switch {
	case t.name == "":
		return t.unit
	case strings.HasSuffix(t.unit, ".py"):
		return t.unit + "::" + t.name
	}
	return t.unit + "." + t.name
}

// result is what a run of a suite showed.
type result struct {
	failed []test // a unit without a name: it ended without telling which test failed
	logs   map[test]string
	broken string // why nothing is run again: what does not build fails for no chance
	ran    int    // tests
}

// suite is a set of tests and how they are run.
type suite interface {
	// all runs every test. It never runs again what failed.
	all(ctx context.Context) result
	// alone runs one test, or one unit without those tests of it, in a new process.
	alone(ctx context.Context, t test, without []string) result
}

const (
	mostUnits   = 10               // with a failure in the first run: more is no chance
	mostReruns  = 10 * time.Minute // all of them together
	triesOfTest = 3                // the first run with them
)

// flake is a test that failed, and passed later.
type flake struct {
	test test
	log  string
}

// judge decides on suites, one after the other, with one allowance of reruns for all.
type judge struct {
	tries      int // how often a test may run in all: 1 runs nothing again
	quarantine []test
	now        func() time.Time
	keep       func(t test, log string) (where string)

	spent    time.Duration
	flaky    []flake
	excused  []flake  // of the quarantine
	failures []string // of all suites: a line each
}

// run runs a suite and what failed in it again. It tells whether the suite has passed.
func (j *judge) run(ctx context.Context, s suite) bool {
	before := len(j.failures)
	first := s.all(ctx)
	failed := j.excuse(first)
	switch units := unitsOf(failed); {
	case first.broken != "":
		j.fail("%s", first.broken)
	case ctx.Err() != nil:
		j.fail("stopped: %v", context.Cause(ctx))
	case first.ran == 0 && len(first.failed) == 0:
		j.fail("no test has run")
	case len(units) > mostUnits && j.tries > 1:
		j.fail("%d packages with a failure, where %d may be chance: none is run again: %s", len(units), mostUnits, join(failed))
	default:
		j.again(ctx, s, failed, first.logs)
	}
	return len(j.failures) == before
}

// again runs again what failed, each test by itself, until it passes or has had its tries.
func (j *judge) again(ctx context.Context, s suite, failed []test, logs map[test]string) {
	seen := make(map[test]string) // every test that failed and its first log
	for _, t := range failed {
		seen[t] = j.keep(t, logs[t])
	}
	for try := 2; try <= j.tries && len(failed) > 0; try++ {
		var still []test
		for _, t := range failed {
			left := mostReruns - j.spent
			if left <= 0 {
				j.fail("reruns have taken their %v: %s is not run again", mostReruns, t)
				still = append(still, t)
				continue
			}
			rerun, cancel := context.WithTimeoutCause(ctx, left, fmt.Errorf("reruns have taken their %v", mostReruns))
			begin := j.now()
			r := s.alone(rerun, t, j.quarantined(t.unit))
			j.spent += j.now().Sub(begin)
			late := rerun.Err() != nil
			cancel()
			switch {
			case late:
				still = append(still, t)
			case r.broken != "":
				j.fail("%s", r.broken)
				return
			case r.ran == 0 && len(r.failed) == 0:
				j.fail("%s failed, and run again by itself it ran no test: %s", t, seen[t])
				return
			}
			for _, f := range j.excuse(r) {
				if _, ok := seen[f]; !ok {
					seen[f] = j.keep(f, r.logs[f])
				}
				still = append(still, f)
			}
		}
		failed = distinct(still)
	}
	for _, t := range failed {
		j.fail("%s: %s", t, seen[t])
		delete(seen, t)
	}
	for _, t := range sorted(seen) {
		j.flaky = append(j.flaky, flake{t, seen[t]})
	}
}

// excuse returns what failed without the tests of the quarantine, which it notes.
func (j *judge) excuse(r result) []test {
	var failed []test
	for _, t := range r.failed {
		if slices.Contains(j.quarantine, t) {
			j.excused = append(j.excused, flake{t, j.keep(t, r.logs[t])})
		} else {
			failed = append(failed, t)
		}
	}
	return failed
}

// quarantined lists the tests of a unit that a rerun of the whole unit leaves out: one of them may have ended it.
func (j *judge) quarantined(unit string) []string {
	var names []string
	for _, q := range j.quarantine {
		if q.unit == unit {
			names = append(names, q.name)
		}
	}
	return names
}

func (j *judge) fail(format string, args ...any) {
	j.failures = append(j.failures, fmt.Sprintf(format, args...))
}

func unitsOf(tests []test) []string {
	var units []string
	for _, t := range tests {
		if !slices.Contains(units, t.unit) {
			units = append(units, t.unit)
		}
	}
	return units
}

func distinct(tests []test) []test {
	var out []test
	for _, t := range tests {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

func sorted(seen map[test]string) []test {
	var out []test
	for t := range seen {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b test) int { return strings.Compare(a.String(), b.String()) })
	return out
}

func join(tests []test) string {
	var names []string
	for _, t := range tests {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}
