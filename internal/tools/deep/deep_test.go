package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheLastRowOfEachPartCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep.md")
	const head = "# Deep\n\n| day | commit | part | result | minutes |\n|---|---|---|---|---|\n"
	if err := os.WriteFile(file, []byte(head), 0o644); err != nil {
		t.Fatal(err)
	}
	day := func(s string) time.Time {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, r := range []record{
		{day("2026-11-02"), "aaa", "fuzz", "passed", 19.5},
		{day("2026-11-20"), "bbb", "fuzz", "failed: make fuzz: exit status 2", 3},
		{day("2026-11-19"), "ccc", "soak", "passed", 15},
	} {
		if err := add(file, r); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := last(file)
	if err != nil {
		t.Fatal(err)
	}
	if r := rows["fuzz"]; len(rows) != 2 || r.commit != "bbb" || r.minutes != 3 || !strings.HasPrefix(r.result, "failed") {
		t.Errorf("%v", rows)
	}
	if got := longestAgo(rows); got != parts[0].name {
		t.Errorf("the one that has waited longest is %s", got)
	}
	var out bytes.Buffer
	show(&out, rows, day("2026-12-04"))
	for _, want := range []string{"2026-11-20 bbb failed: make fuzz: exit status 2\n", "2026-11-19 ccc passed, too long ago\n", "never ran\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s, without %q", &out, want)
		}
	}
}

func TestAPartThatIsNotThereIsNamed(t *testing.T) {
	if _, err := named("fuz"); err == nil || !strings.Contains(err.Error(), "there are race-cores") {
		t.Error(err)
	}
}

func TestAFailedCommandEndsAPart(t *testing.T) {
	var out bytes.Buffer
	err := part{commands: []string{"echo seed $SEED", "false", "echo never"}}.run(t.Context(), t.TempDir(), 7, &out)
	if err == nil || !strings.Contains(err.Error(), "false: exit status 1") || !strings.Contains(out.String(), "seed 7\n") || strings.Contains(out.String(), "\nnever") {
		t.Errorf("%v: %s", err, &out)
	}
}
