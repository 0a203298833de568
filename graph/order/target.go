package order

import "math"

// targets picks the leaf to finish next. Of the leaves that lack roots it prefers those that lack the fewest, and
// among these the ones that are begun: those with a placed dependency.
type targets struct {
	leaves []int32 // as ranked
	rest   span    // part of leaves that has not had its turn
	deep   bool    // the last of rest has the next turn, not the first
	place  []int32
	above  [][]span
	lack   tally
	coarse bool // the counts of lacking roots are not exact
	begun  int  // unplaced tasks, not only leaves, with a placed dependency
}

func newTargets(d *dag, rk *ranking, r *reached) *targets {
	t := &targets{place: r.place, above: r.above, coarse: r.coarse}
	var roots []int32
	for v := range d.len() {
		if !d.walked(v) {
			continue
		}
		if d.users.count(v) == 0 {
			t.leaves = append(t.leaves, v)
		}
		if d.deps.count(v) == 0 {
			roots = append(roots, v)
		}
	}
	rk.sort(t.leaves)
	t.rest = span{0, int32(len(t.leaves))}
	t.deep = t.preferDeep(roots)
	t.lack = newTally(r.leaves)
	for i, v := range t.leaves {
		if d.deps.count(v) > 0 {
			t.lack.set(r.place[v], r.roots[v], int32(i))
		}
	}
	t.lack.build()
	return t
}

// preferDeep chooses the strategy. A graph that widens or narrows much, or whose roots lead to the same number of
// leaves each, is best begun at the leaf with the most tasks below it; any other at the leaf with the fewest.
func (t *targets) preferDeep(roots []int32) bool {
	if math.Abs(float64(len(roots)-len(t.leaves)))/float64(len(roots)) >= 0.8 {
		return true
	}
	first := int32(0)
	for _, v := range roots {
		leaves := int32(0)
		if p := t.place[v]; p >= 0 {
			leaves = setSize(t.above[p])
		}
		if first == 0 {
			first = leaves
		} else if leaves != first {
			return false
		}
	}
	return true
}

// next picks a leaf. It may have been placed already.
func (t *targets) next() int32 {
	all, begun := t.lack.least()
	switch {
	case t.begun == 0 || all.lacks == nothing:
	case begun.lacks == all.lacks:
		return t.leaves[begun.rank]
	default:
		return t.leaves[all.rank]
	}
	if t.deep {
		t.rest.hi--
		return t.leaves[t.rest.hi]
	}
	t.rest.lo++
	return t.leaves[t.rest.lo-1]
}

// begin notes that the first dependency of v is placed.
func (t *targets) begin(v int32, leaf bool) {
	t.begun++
	if leaf {
		t.lack.begin(t.place[v])
	}
}

// finish notes that a leaf that is not a root is placed. It then lacks nothing, and its count is 0 unless counts
// are not exact.
func (t *targets) finish(leaf int32) {
	if t.coarse {
		t.lack.drop(t.place[leaf])
	}
}

// load notes that a root that is not a leaf is placed.
func (t *targets) load(root int32) {
	for _, s := range t.above[t.place[root]] {
		t.lack.lower(s)
	}
}
