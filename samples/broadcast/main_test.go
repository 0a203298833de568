package main

import (
	"testing"

	"mobula"
	"mobula/mobulatest"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }

func TestBroadcast(t *testing.T) {
	if err := run(mobulatest.Context(t), 1<<20, 20); err != nil {
		t.Error(err)
	}
}

func TestBroadcastToProcesses(t *testing.T) {
	if err := run(mobulatest.Context(t, mobula.WithProcesses()), 1<<20+3, 20); err != nil {
		t.Error(err)
	}
}

func TestSumTakesTheRest(t *testing.T) {
	for n := range 9 {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = float64(i + 1)
		}
		if got, want := sum(xs), float64(n*(n+1)/2); got != want {
			t.Errorf("%d elements: %v, want %v", n, got, want)
		}
	}
}
