//go:build invariants

package mobula

import (
	"context"
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

var kept []float64

var keeps = Register1("test/keeps", func(_ context.Context, xs []float64) (float64, error) {
	kept = xs
	return xs[len(xs)-1], nil
})

var echoes = Register1("test/echoes", func(_ context.Context, xs []float64) ([]float64, error) { return xs[1:], nil })

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
	must(t, 7.0)(keeps.Go(ctx, r).Get(ctx))
	if !faults(kept) {
		t.Error("an argument can be read after the call")
	}
	got, err := echoes.Go(ctx, r).Get(ctx)
	if err != nil || len(got) != len(big)-1 || got[len(got)-1] != 7 {
		t.Errorf("a result that aliases an argument: %d, %v", len(got), err)
	}
}
