package main

import (
	"slices"
	"testing"
	"time"
)

func TestTargets(t *testing.T) {
	got := targets("FuzzFrame\nFuzzIndex\nok  \tmobula/wire\t0.004s\n")
	if want := []string{"FuzzFrame", "FuzzIndex"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := targets("?   \tmobula/wire/pb\t[no test files]\n"); len(got) != 0 {
		t.Errorf("targets where there are none: %v", got)
	}
}

func TestAnEndThatCameLateIsNoFailure(t *testing.T) {
	const late = "fuzz: elapsed: 3s, execs: 9 (0/sec)\n--- FAIL: FuzzDecode (3.20s)\n    context deadline exceeded\nFAIL\nexit status 1\n"
	for out, want := range map[string]bool{
		late: true,
		"--- FAIL: FuzzDecode (0.20s)\n    --- FAIL: FuzzDecode (0.00s)\n        context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzDecode/1\nFAIL\n": false,
		"panic: no\n" + late:                false,
		"FAIL mobula/wire [build failed]\n": false,
	} {
		if got := endedLate(out); got != want {
			t.Errorf("%q: %v", out, got)
		}
	}
}

func TestTheTimeLeftIsSharedOut(t *testing.T) {
	for _, c := range []struct {
		left            time.Duration
		targets, atOnce int
		want            time.Duration
	}{
		{17 * time.Minute, 22, 2, 82 * time.Second}, // eleven rounds of a build and this
		{2 * time.Minute, 2, 2, 110 * time.Second},
		{2 * time.Minute, 3, 2, 50 * time.Second},
		{0, 1, 2, least},
	} {
		if got := share(c.left, c.targets, c.atOnce); got != c.want {
			t.Errorf("%v for %d targets: %v, want %v", c.left, c.targets, got, c.want)
		}
	}
}
