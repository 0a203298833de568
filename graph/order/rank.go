package order

import (
	"cmp"
	"slices"
)

// ranking says which of several tasks comes first: the one with fewer tasks below it, then fewer dependencies,
// then fewer roots, then roots that more tasks depend on, and last by name.
type ranking struct {
	deps   *edges
	below  *weights
	roots  []int32
	fanout []int32
}

func (r *ranking) compare(a, b int32) int {
	if c := r.below.compare(a, b); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(r.deps.count(a), r.deps.count(b)),
		cmp.Compare(r.roots[a], r.roots[b]),
		cmp.Compare(r.fanout[b], r.fanout[a]),
		cmp.Compare(a, b),
	)
}

func (r *ranking) sort(tasks []int32) { slices.SortFunc(tasks, r.compare) }

func (r *ranking) last(tasks []int32) int32 { return slices.MaxFunc(tasks, r.compare) }
