package heap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestOrder(t *testing.T) {
	before := func(a, b *int) bool { return *a < *b }
	rapid.Check(t, func(rt *rapid.T) {
		var h, model []int
		for _, x := range rapid.SliceOf(rapid.IntRange(-1, 40)).Draw(rt, "pushed; -1 pops, from 21 on the first is replaced") {
			if x > 20 {
				if len(model) > 0 {
					Replace(h, x-21, before)
					model[0] = x - 21
					slices.Sort(model)
				}
			} else if x >= 0 {
				Push(&h, x, before)
				model = append(model, x)
				slices.Sort(model)
			} else if len(model) > 0 {
				if got := Pop(&h, before); got != model[0] {
					rt.Fatalf("popped %d, want %d", got, model[0])
				}
				model = model[1:]
			}
			if len(h) != len(model) || len(h) > 0 && h[0] != model[0] {
				rt.Fatalf("%v is no heap of %v", h, model)
			}
		}
	})
}
