package testkit

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestDraws is what the runs below run: it prints what its checks draw, and fails where it is asked to.
func TestDraws(t *testing.T) {
	if os.Getenv("MOBULA_TESTKIT_DRAWS") == "" {
		t.Skip("run by the tests below")
	}
	for _, name := range []string{"one", "other"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var drawn []uint64
			Check(t, func(rt *rapid.T) { drawn = append(drawn, rapid.Uint64().Draw(rt, "n")) })
			t.Log("drew", t.Name(), drawn, Rand(t).Uint64())
			if os.Getenv("MOBULA_TESTKIT_DRAWS") == "fail" {
				t.Fail()
			}
		})
	}
}

// draws runs TestDraws in a process of its own, and returns the lines of what it drew, in order, and all that it said.
func draws(t *testing.T, fail bool, args []string, environ ...string) (drawn []string, said string) {
	t.Helper()
	what := "draw"
	if fail {
		what = "fail"
	}
	c := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-test.run", "^TestDraws$", "-test.v"}, args...)...)
	c.Env = append(os.Environ(), append(environ, "MOBULA_TESTKIT_DRAWS="+what)...)
	out, err := c.CombinedOutput()
	if (err != nil) != fail {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.SplitSeq(string(out), "\n") {
		if _, drew, ok := strings.Cut(line, "drew "); ok {
			drawn = append(drawn, drew)
		}
	}
	if len(drawn) != 2 {
		t.Fatalf("drew %d times: %s", len(drawn), out)
	}
	slices.Sort(drawn)
	return drawn, string(out)
}

func TestEachRunDrawsTheSame(t *testing.T) {
	first, _ := draws(t, false, nil, "MOBULA_TEST_SEED=")
	again, _ := draws(t, false, nil, "MOBULA_TEST_SEED=")
	if !slices.Equal(first, again) {
		t.Errorf("drew\n%q\nthen\n%q", first, again)
	}
	if numbers(first[0]) == numbers(first[1]) {
		t.Errorf("two tests drew the same: %q", first)
	}
}

// numbers is a line of TestDraws without the name.
func numbers(line string) string {
	_, n, _ := strings.Cut(line, " ")
	return n
}

func TestAVariableGivesOtherSeeds(t *testing.T) {
	first, _ := draws(t, false, nil, "MOBULA_TEST_SEED=")
	other, _ := draws(t, false, nil, "MOBULA_TEST_SEED=7")
	again, _ := draws(t, false, nil, "MOBULA_TEST_SEED=7")
	if slices.Equal(first, other) || !slices.Equal(other, again) {
		t.Errorf("drew\n%q\nwith a seed\n%q\nand\n%q", first, other, again)
	}
}

func TestSeedsOfARunAreNoOthers(t *testing.T) {
	for run, want := range map[string][]uint64{
		"": {0, 1, 2}, "0": {0, 1, 2}, "7": {7_000_000, 7_000_001, 7_000_002},
		"18446744073709551615": {73_709_551_615_000_000, 73_709_551_615_000_001, 73_709_551_615_000_002},
	} {
		t.Setenv(seedVariable, run)
		if got := Seeds(t, 3); !slices.Equal(got, want) {
			t.Errorf("run %q has the seeds %d, want %d", run, got, want)
		}
	}
}

func TestTheCommandLinesSeedComesFirst(t *testing.T) {
	a, _ := draws(t, false, []string{"-rapid.seed", "9"}, "MOBULA_TEST_SEED=1")
	b, _ := draws(t, false, []string{"-rapid.seed", "9"}, "MOBULA_TEST_SEED=2")
	checks := regexp.MustCompile(`\[.*\]`)
	for i := range a {
		if x, y := checks.FindString(a[i]), checks.FindString(b[i]); x != y || x == "" {
			t.Errorf("drew %q and %q", x, y)
		}
	}
}

func TestAFailureTellsItsSeed(t *testing.T) {
	if _, said := draws(t, true, nil, "MOBULA_TEST_SEED=3"); !strings.Contains(said, "MOBULA_TEST_SEED=3 runs it again") {
		t.Error(said)
	}
}

func TestAWrongSeedIsRefused(t *testing.T) {
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestDraws$")
	c.Env = append(os.Environ(), "MOBULA_TESTKIT_DRAWS=draw", "MOBULA_TEST_SEED=x")
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), `MOBULA_TEST_SEED is "x"`) {
		t.Errorf("%v: %s", err, out)
	}
}
