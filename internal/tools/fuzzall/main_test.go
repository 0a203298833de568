package main

import (
	"slices"
	"testing"
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
