package main

import (
	"testing"

	"mobula"
	"mobula/mobulatest"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }

func embedded(t *testing.T, opts ...mobula.StartOption) error {
	c := mobulatest.Start(t, opts...)
	_, err := run(c.Context(t.Context()), c, 1<<20+3, 20)
	return err
}

func TestBroadcast(t *testing.T) {
	if err := embedded(t); err != nil {
		t.Error(err)
	}
}

func TestBroadcastToProcesses(t *testing.T) {
	if err := embedded(t, mobula.WithProcesses()); err != nil {
		t.Error(err)
	}
}

// The array goes to each node, and tasks on all of them read it.
func TestBroadcastOverNodes(t *testing.T) {
	nodes := mobulatest.Cluster(t, 3)
	c := nodes.Connect(0)
	if size, err := fitting(c.Context(t.Context()), c, defaultSize); err != nil || size != 32<<20 {
		t.Errorf("into stores of 64 MiB it puts %d bytes unless told, %v", size, err)
	}
	ran, err := run(c.Context(t.Context()), c, 1<<20, 30)
	if err != nil || len(ran) != 3 {
		t.Errorf("tasks by node: %v, %v", ran, err)
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
