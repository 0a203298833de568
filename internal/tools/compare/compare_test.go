package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobula/internal/testkit"
)

func TestTheChanceOfAnOrder(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 2.0 / 20},
		{[]float64{4, 5, 6}, []float64{1, 2, 3}, 2.0 / 20},
		{[]float64{1, 2, 4}, []float64{3, 5, 6}, 2.0 * 2 / 20},
		{[]float64{1, 4}, []float64{2, 3}, 1},
		{[]float64{1, 2, 3, 4, 5, 6, 7}, []float64{8, 9, 10, 11, 12, 13, 14}, 2.0 / 3432},
		{[]float64{1, 1}, []float64{1, 1}, 1},
	} {
		if got := ranksChance(c.a, c.b); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v against %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestWhichRowsAreMarked(t *testing.T) {
	base := []float64{100, 104, 98, 101, 103, 99, 102}
	times := func(f float64) (out []float64) {
		for _, b := range base {
			out = append(out, f*b)
		}
		return out
	}
	for _, c := range []struct {
		name        string
		news, bases []float64
		want        string
	}{
		{"the same", base, base, ""},
		{"slower by a fifth", times(1.2), base, "slower"},
		{"faster by a fifth", times(0.8), base, "faster"},
		{"slower by 3 %, which is not worth a word", times(1.03), times(1), ""},
		{"too few rounds", times(3)[:4], base[:4], ""},
		{"as few as may be", times(3)[:5], base[:5], "slower"},
		{"the base itself differs as much", times(1.3), []float64{100, 130, 101, 131, 99, 129, 102}, ""},
		{"one round of the base was slow", times(1.3), []float64{100, 104, 98, 300, 103, 99, 102, 101}, "slower"},
		{"nothing has run", nil, nil, ""},
	} {
		r := &row{news: c.news, bases: c.bases}
		if v := r.judge(44); v.mark != c.want {
			t.Errorf("%s: %+v, want %q", c.name, v, c.want)
		}
	}
}

// A side is played by programs that print what mobench and peers print.
func TestARoundRunsBothSides(t *testing.T) {
	play := func(name, us, rate string) side {
		dir := t.TempDir()
		script := func(file, text string) string {
			path := filepath.Join(dir, file)
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
				t.Fatal(err)
			}
			return path
		}
		return side{name: name, dir: dir,
			mobench: script("mobench", `case "$7" in
				put-small) echo '{"case":"put-small","value":`+rate+`,"unit":"puts/s"}' ;;
				wait-1k) echo "broken" >&2; exit 1 ;;
				*) echo '{"case":"x","value":`+us+`,"unit":"us"}' ;; esac
			`),
			interpreter: script("python", `echo '{"date":"x"}'; echo '{"workload":"chain","metric":"time","unit":"s","more_is_better":false,"median":`+us+`}'`),
		}
	}
	rows := []*row{{name: "task-sync embedded"}, {name: "put-small node"}, {name: "chain python"}, {name: "wait-1k node"}}
	for n := range 6 {
		round(t.Context(), rows, play("new", "30", "1000"), play("base", "10", "4000"), n)
	}
	var out bytes.Buffer
	report(&out, rows, "abc", 6, time.Minute)
	for _, want := range []string{"task-sync embedded", "3.000     1.000  slower", "put-small node", "4.000     1.000  slower", "chain python", "wait-1k node             failed: new: mobench", "broken", "3 of 4 rows marked"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s, without %q", &out, want)
		}
	}
	if strings.Count(out.String(), "slower\n") != 3 {
		t.Error(out.String())
	}
}

// What the program has started, and what holds its output, ends with it.
func TestARunThatDoesNotEndFailsItsRow(t *testing.T) {
	usual := longest
	longest = 100 * time.Millisecond
	t.Cleanup(func() { longest = usual })
	dir := t.TempDir()
	program := filepath.Join(dir, "mobench")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nsleep 1000; echo"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := &row{name: "task-async process"}
	begin := time.Now()
	round(t.Context(), []*row{r}, side{name: "new", dir: dir, mobench: program}, side{name: "base", dir: dir, mobench: program}, 0)
	if r.failed != "new: it had not ended after 100ms" || time.Since(begin) > testkit.Patience() {
		t.Errorf("%q, after %v", r.failed, time.Since(begin))
	}
}

func TestRowsThatAreNotThereAreNamed(t *testing.T) {
	if rows, err := plan([]string{"task-sync", "node"}); err != nil || len(rows) != len(cases)+len(modes)-1+1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if _, err := plan([]string{"task-synk"}); err == nil || !strings.Contains(err.Error(), `"task-synk"`) {
		t.Error(err)
	}
}
