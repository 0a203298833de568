package ids_test

import (
	"testing"

	"mobula/internal/ids"
)

func TestEpochsAreUniqueInACluster(t *testing.T) {
	seen := make(map[uint64][3]uint64)
	for _, h := range []ids.Home{0, 1, 2, ids.MaxHome} {
		for _, life := range []uint64{1, 2, 1<<14 - 1} {
			for _, n := range []uint64{1, 2, 1<<23 - 1} {
				e, of := h.Epoch(life, n), [3]uint64{uint64(h), life, n}
				if was, ok := seen[e]; ok || e == 0 {
					t.Errorf("the epoch of home, life and number %v is %#x, as that of %v", of, e, was)
				}
				seen[e] = of
			}
		}
	}
}

func TestAnEpochKeepsItsHomeWhereLivesAndNumbersAreLarge(t *testing.T) {
	if got, want := ids.Home(7).Epoch(1<<40+3, 1<<50+5), ids.Home(7).Epoch(3, 5); got != want {
		t.Errorf("the epoch is %#x, want %#x", got, want)
	}
}
