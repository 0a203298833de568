package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// row is a step that has run.
type row struct {
	name string
	took time.Duration
	ok   bool
}

// long is how long a quiet package may take, so that its limit is five times that.
const long = packageLimit / 5

// report prints the table, and what a person has to know of tests that failed.
func report(out io.Writer, rows []row, j *judge, entries []entry) {
	fmt.Fprintf(out, "\n%-44s %8s\n", "step", "seconds")
	var sum time.Duration
	for _, r := range rows {
		sum += r.took
		end := ""
		if !r.ok {
			end = "  FAILED"
		} else if r.took > long && strings.Contains(r.name, "/") {
			end = "  over a fifth of its limit"
		}
		fmt.Fprintf(out, "%-44s %8.1f%s\n", r.name, r.took.Seconds(), end)
	}
	fmt.Fprintf(out, "%-44s %8.1f\n", "all", sum.Seconds())
	for _, f := range j.excused {
		fmt.Fprintf(out, "QUARANTINED %s failed, %s\n", f.test, f.log)
	}
	if n := len(entries); n > mostQuarantined {
		fmt.Fprintf(out, "THE QUARANTINE HAS %d TESTS, ABOVE %d. MEND THE OLDEST NEXT:\n", n, mostQuarantined)
		for _, e := range entries {
			fmt.Fprintf(out, "  %s %s\n", strings.ToUpper(e.Date), e.Test)
		}
	}
	for _, f := range j.flaky {
		fmt.Fprintf(out, "FLAKY %s, %s\n", f.test, f.log)
	}
	for _, f := range j.failures {
		fmt.Fprintf(out, "FAILED %s\n", f)
	}
}
