package graph

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

func TestBitset(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		b := newBitset(300)
		in := rapid.SliceOfNDistinct(rapid.Int32Range(0, 299), 0, 60, rapid.ID[int32]).Draw(t, "in")
		out := rapid.SliceOfN(rapid.Int32Range(0, 299), 0, 10).Draw(t, "out")
		for _, i := range in {
			b.set(i)
		}
		for _, i := range out {
			b.clear(i)
		}
		want := slices.DeleteFunc(slices.Sorted(slices.Values(in)), func(i int32) bool { return slices.Contains(out, i) })
		from, to := rapid.Int32Range(0, 300).Draw(t, "from"), rapid.Int32Range(0, 300).Draw(t, "to")
		want = slices.DeleteFunc(want, func(i int32) bool { return i < from || i >= to })
		var got []int32
		for i := b.next(from, to); i != none; i = b.next(i+1, to) {
			if !b.has(i) {
				t.Fatalf("%d is no member", i)
			}
			got = append(got, i)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v in [%d, %d), not %v", got, from, to, want)
		}
	})
}
