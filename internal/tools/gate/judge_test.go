package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// script is a suite whose runs are written down: each run takes the next result.
type script struct {
	runs  []result
	takes time.Duration // each rerun
	asked []string
}

func (s *script) next(ctx context.Context, asked string) result {
	s.asked = append(s.asked, asked)
	if len(s.asked) > 1 {
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
		}
	}
	r := s.runs[0]
	s.runs = s.runs[1:]
	return r
}

func (s *script) all(ctx context.Context) result { return s.next(ctx, "all") }

func (s *script) alone(ctx context.Context, t test, without []string) result {
	asked := t.String()
	if len(without) > 0 {
		asked += " without " + strings.Join(without, " ")
	}
	return s.next(ctx, asked)
}

func failing(tests ...test) result { return result{ran: 9, failed: tests} }

var passing = result{ran: 1}

func TestWhatAFirstRunMeans(t *testing.T) {
	a, b, whole := test{"m/a", "TestA"}, test{"m/b", "TestB"}, test{unit: "m/a"}
	var many []test
	for i := range mostUnits + 1 {
		many = append(many, test{fmt.Sprintf("m/%d", i), "TestX"})
	}
	for _, c := range []struct {
		name       string
		tries      int
		quarantine []test
		takes      time.Duration
		runs       []result
		asked      string
		flaky      string
		excused    string
		failed     string // a part of each failure
	}{
		{name: "all pass", runs: []result{passing}, asked: "all"},
		{name: "one fails once", runs: []result{failing(a), passing}, asked: "all,m/a.TestA", flaky: "m/a.TestA"},
		{name: "one fails twice", runs: []result{failing(a), failing(a), passing}, asked: "all,m/a.TestA,m/a.TestA", flaky: "m/a.TestA"},
		{name: "one fails always", runs: []result{failing(a), failing(a), failing(a)}, asked: "all,m/a.TestA,m/a.TestA", failed: "m/a.TestA: log"},
		{name: "one of two fails always", runs: []result{failing(a, b), passing, failing(b), failing(b)}, asked: "all,m/a.TestA,m/b.TestB,m/b.TestB", flaky: "m/a.TestA", failed: "m/b.TestB: log"},
		{name: "without reruns", tries: 1, runs: []result{failing(a)}, asked: "all", failed: "m/a.TestA: log"},
		{name: "a package panics once", runs: []result{failing(whole), passing}, asked: "all,m/a", flaky: "m/a"},
		{name: "a package panics, then a test fails", runs: []result{failing(whole), failing(a), passing}, asked: "all,m/a,m/a.TestA", flaky: "m/a,m/a.TestA"},
		{name: "it does not build", runs: []result{{broken: "m/a does not build", failed: []test{a}}}, asked: "all", failed: "m/a does not build"},
		{name: "no test", runs: []result{{}}, asked: "all", failed: "no test has run"},
		{name: "the rerun runs nothing", runs: []result{failing(a), {}}, asked: "all,m/a.TestA", failed: "ran no test"},
		{name: "too many packages", runs: []result{failing(many...)}, asked: "all", failed: "11 packages"},
		{name: "as many as may be", runs: append([]result{failing(many[1:]...)}, slices.Repeat([]result{passing}, mostUnits)...), asked: "all,m/1.TestX,m/2.TestX,m/3.TestX,m/4.TestX,m/5.TestX,m/6.TestX,m/7.TestX,m/8.TestX,m/9.TestX,m/10.TestX", flaky: "m/1.TestX,m/10.TestX,m/2.TestX,m/3.TestX,m/4.TestX,m/5.TestX,m/6.TestX,m/7.TestX,m/8.TestX,m/9.TestX"},
		{name: "reruns take too long", takes: 6 * time.Minute, runs: []result{failing(a, b), passing, passing, passing}, asked: "all,m/a.TestA,m/b.TestB", flaky: "m/a.TestA", failed: "m/b.TestB is not run again|m/b.TestB: log"},
		{name: "in quarantine", quarantine: []test{a}, runs: []result{failing(a)}, asked: "all", excused: "m/a.TestA"},
		{name: "beside one in quarantine", quarantine: []test{a}, runs: []result{failing(a, b), passing}, asked: "all,m/b.TestB", excused: "m/a.TestA", flaky: "m/b.TestB"},
		{name: "one in quarantine may have ended the package", quarantine: []test{a}, runs: []result{failing(whole), passing}, asked: "all,m/a without TestA", flaky: "m/a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{runs: c.runs, takes: c.takes}
				j := &judge{tries: max(c.tries, triesOfTest), quarantine: c.quarantine, now: time.Now, keep: func(test, string) string { return "log" }}
				if c.tries > 0 {
					j.tries = c.tries
				}
				if ok := j.run(t.Context(), s); ok != (c.failed == "") {
					t.Errorf("passed: %v, failures %q", ok, j.failures)
				}
				if got := strings.Join(s.asked, ","); got != c.asked {
					t.Errorf("ran %s, want %s", got, c.asked)
				}
				if got := names(j.flaky); got != c.flaky {
					t.Errorf("flaky: %s, want %s", got, c.flaky)
				}
				if got := names(j.excused); got != c.excused {
					t.Errorf("excused: %s, want %s", got, c.excused)
				}
				for i, want := range strings.Split(c.failed, "|") {
					if c.failed != "" && (i >= len(j.failures) || !strings.Contains(j.failures[i], want)) {
						t.Errorf("failures %q, want %q", j.failures, c.failed)
					}
				}
			})
		})
	}
}

func names(flakes []flake) string {
	var names []string
	for _, f := range flakes {
		names = append(names, f.test.String())
	}
	return strings.Join(names, ",")
}
