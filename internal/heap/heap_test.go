package heap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

func TestOrder(t *testing.T) {
	before := func(a, b *int) bool { return *a < *b }
	testkit.Check(t, func(rt *rapid.T) {
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

// entry knows where it is.
type entry struct{ key, i int }

func TestAnyCanBeTakenOffAnIndexedHeap(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		h := NewIndexed(func(a, b **entry) bool { return (*a).key < (*b).key }, func(x **entry, i int) { (*x).i = i })
		var model []*entry // in no order
		for _, op := range rapid.SliceOf(rapid.IntRange(-20, 20)).Draw(rt, "pushed; what is negative takes one off") {
			if op >= 0 {
				x := &entry{key: op, i: -2}
				h.Push(x)
				model = append(model, x)
			} else if len(model) > 0 {
				at := -op % len(model)
				x := model[at]
				model = slices.Delete(model, at, at+1)
				if got := h.Remove(x.i); got != x || x.i != -1 {
					rt.Fatalf("took off %v, want %v", *got, *x)
				}
			}
			for _, x := range model {
				if h.All()[x.i] != x {
					rt.Fatalf("%v is not where it was told that it is", *x)
				}
			}
			if h.Len() != len(model) || len(model) > 0 && h.First().key != slices.MinFunc(model, func(a, b *entry) int { return a.key - b.key }).key {
				rt.Fatalf("%d of %d, the first is %v", h.Len(), len(model), h.All())
			}
		}
		for last := -1; h.Len() > 0; {
			x := h.Remove(0)
			if x.key < last {
				rt.Fatalf("%d after %d", x.key, last)
			}
			last = x.key
		}
	})
}
