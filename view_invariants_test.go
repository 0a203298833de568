//go:build invariants

package mobula

import (
	"runtime/debug"
	"strings"
	"testing"
)

// faults tells whether reading the slice faults.
func faults(xs []float64) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err, ok := r.(error)
			fault = ok && strings.Contains(err.Error(), "invalid memory address")
		}
	}()
	return xs[0] < 0
}

func TestASliceKeptTooLongFaults(t *testing.T) {
	_, ctx, _ := startFake(t)
	big := make([]float64, 50_000)
	big[len(big)-1] = 7
	r, err := Put(ctx, big)
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	xs, err := v.Value()
	if err != nil || xs[len(xs)-1] != 7 || faults(xs) {
		t.Fatal("an open view cannot be read", err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if !faults(xs) {
		t.Error("a slice of a closed view can be read")
	}
}
