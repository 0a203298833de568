package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

// Tests draw from the seed of their name: one that runs again draws the same, unless it is given another.
func TestEachRepeatOfTheStressTestsHasItsOwnSeed(t *testing.T) {
	p, err := named("stress")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.commands) != 1 || !p.draws() {
		t.Fatalf("its seed is not told: %q", p.commands)
	}
	for _, count := range []string{"", " STRESS_COUNT=3"} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", p.commands[0]+count+" -n")
		cmd.Dir, cmd.Env = "../../..", append(os.Environ(), "MAKEFLAGS=", "SEED=7")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var seeds []string
		for _, m := range regexp.MustCompile(`(?m)^.*MOBULA_TEST_SEED=(\d+) .* test .*$`).FindAllStringSubmatch(string(out), -1) {
			seeds = append(seeds, m[1])
			if !strings.Contains(m[0], " -count 1 ") {
				t.Errorf("it draws the same again: %s", m[0])
			}
		}
		want := []string{"7", "71", "72", "73"}
		if count == "" {
			want = want[:2]
		}
		if !slices.Equal(seeds, want) {
			t.Errorf("stress%s has the seeds %q, want %q:\n%s", count, seeds, want, out)
		}
	}
}

// The make of a part takes nothing of the one that has started the deep run.
func TestAPartHasAMakeOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"inner/Makefile": "said:\n\t@echo [$(ARGS)]\n",
		"Makefile":       "outer:\n\t@env\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	outer := exec.Command("make", "-s", "-C", dir, "outer", "ARGS=--part inner")
	environ, err := outer.Output()
	if err != nil {
		t.Fatal(err)
	}
	inner := exec.Command("make", "-s", "-C", filepath.Join(dir, "inner"), "said")
	inner.Env = ofNoMake(strings.Split(strings.TrimSpace(string(environ)), "\n"))
	if out, err := inner.CombinedOutput(); err != nil || string(out) != "[]\n" {
		t.Errorf("%s, %v", out, err)
	}
}
