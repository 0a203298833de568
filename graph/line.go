package graph

import (
	"cmp"
	"slices"
)

// line is the graph's root tasks, laid out so that those whose results meet are neighbours. It depends only on the
// graph and its order.
type line struct {
	roots []int32 // by position
	at    []int32 // position of each task; for one that is not a root, that of the last root that it needs; none if it needs none
	last  []int32 // of each task, the position from which on its result is no longer needed
	made  csr     // the tasks at each position
}

// wideFanOut is the fan-out above which a result counts as needed by everybody: it does not relate its dependents.
const wideFanOut = 32

// newLine lays the roots out in their order, or by where their results meet first, if fewer results then wait for
// other roots: an order may put one collection after the other although they are added elementwise.
func newLine(g *Graph) *line {
	topo := g.topological()
	join := g.meetings(topo)
	byRank := layOut(g, topo, func(a, b int32) int { return cmp.Compare(g.rank[a], g.rank[b]) })
	byJoin := layOut(g, topo, func(a, b int32) int {
		return cmp.Or(cmp.Compare(join[a], join[b]), cmp.Compare(g.rank[a], g.rank[b]))
	})
	if byJoin.waiting() < byRank.waiting() {
		return byJoin
	}
	return byRank
}

// meetings gives for each task the rank of the first task that combines its result with another.
func (g *Graph) meetings(topo []int32) []int32 {
	join := make([]int32, len(topo))
	joins := make([]bool, len(topo)) // computed once per task, not once per edge: a task may take everything
	for _, t := range topo {
		joins[t] = g.joins(t)
	}
	for _, t := range slices.Backward(topo) {
		join[t] = int32(len(topo))
		for _, u := range g.up.of(t) {
			if joins[u] {
				join[t] = min(join[t], g.rank[u])
			} else {
				join[t] = min(join[t], join[u])
			}
		}
	}
	return join
}

// layOut makes a line of the roots, sorted by less.
func layOut(g *Graph, topo []int32, less func(a, b int32) int) *line {
	l := &line{at: make([]int32, len(topo))}
	for _, t := range topo {
		l.at[t] = none
		if g.mayBeRoot(t) {
			l.roots = append(l.roots, t)
		}
	}
	slices.SortFunc(l.roots, less)
	for p, t := range l.roots {
		l.at[t] = int32(p)
	}
	for _, t := range topo {
		if l.at[t] == none {
			for _, d := range g.deps.of(t) {
				l.at[t] = max(l.at[t], l.at[d])
			}
		}
	}
	l.index(g)
	return l
}

// waiting is the number of positions that results wait for, summed over all results.
func (l *line) waiting() int64 {
	n := int64(0)
	for t, p := range l.at {
		n += int64(l.last[t] - p)
	}
	return n
}

// index finds which results are made at each position, and up to which position they are needed. A task runs at
// the position of the last root that it needs.
func (l *line) index(g *Graph) {
	l.last = make([]int32, len(l.at))
	l.made = csr{off: make([]int32, len(l.roots)+1), list: make([]int32, len(l.at))}
	for t, p := range l.at {
		l.last[t] = p
		for _, u := range g.up.of(int32(t)) {
			l.last[t] = max(l.last[t], l.at[u])
		}
		if p != none {
			l.made.off[p+1]++
		}
	}
	for i := range l.roots {
		l.made.off[i+1] += l.made.off[i]
	}
	next := slices.Clone(l.made.off)
	for t, p := range l.at {
		if p != none {
			l.made.list[next[p]] = int32(t)
			next[p]++
		}
	}
}

// joins tells whether a task combines several results, not counting those that everybody needs.
func (g *Graph) joins(t int32) bool {
	n := 0
	for _, d := range g.deps.of(t) {
		if len(g.up.of(d)) <= wideFanOut {
			n++
		}
	}
	return n > 1
}

// mayBeRoot tells whether a task is a root task in some cluster. A group that only the heuristic takes for roots
// must have many more tasks than it depends on: else its tasks do as well near their inputs.
func (g *Graph) mayBeRoot(t int32) bool {
	if g.tasks[t].Ann.restricts() {
		return false
	}
	if len(g.deps.of(t)) == 0 || g.tasks[t].Producer {
		return true
	}
	x := &g.groups[g.group[t]]
	return x.deps < bigDeps && x.depTasks < bigDeps && int64(x.size) > 2*x.depTasks
}

// topological gives the tasks so that each comes after what it depends on.
func (g *Graph) topological() []int32 {
	n := g.Len()
	waits := make([]int32, n)
	out := make([]int32, 0, n)
	for _, t := range g.byRank {
		if waits[t] = int32(len(g.deps.of(t))); waits[t] == 0 {
			out = append(out, t)
		}
	}
	for i := 0; i < len(out); i++ {
		for _, u := range g.up.of(out[i]) {
			if waits[u]--; waits[u] == 0 {
				out = append(out, u)
			}
		}
	}
	return out
}
