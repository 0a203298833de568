package order

import (
	"cmp"
	"slices"
)

// reached says which roots and leaves tasks reach.
type reached struct {
	roots  []int32 // how many roots lie below each task; 0 for a root
	fanout []int32 // the highest number of dependents of one of those roots

	// Leaves that are not roots have places, related ones close together; so have roots that are not leaves. -1:
	// neither.
	place  []int32
	leaves int      // how many leaves have a place
	above  [][]span // by a root's place: the places of the leaves above it
	coarse bool     // roots and above were too large to be kept exactly
}

// reach looks from each task down to the roots, and from each root up to the leaves. sorted has
// the tasks in an order in which each comes after its dependencies.
func reach(g Graph, d *dag, sorted []int32, maxRuns int) *reached {
	n := d.len()
	r := &reached{
		roots:  make([]int32, n),
		fanout: make([]int32, n),
	}
	for _, v := range sorted {
		deps := d.deps.of(v)
		if len(deps) == 0 {
			r.fanout[v] = d.users.count(v)
		}
		for _, dep := range deps {
			r.fanout[v] = max(r.fanout[v], r.fanout[dep])
		}
	}
	r.place = make([]int32, n)
	for v := range r.place {
		r.place[v] = -1
	}
	roots := d.farEnds(g, sorted, &d.deps, &d.users, r.place)
	p := spans{most: maxRuns}
	p.ends(sorted, &d.deps, &d.users, r.place, func(v int32, s []span) (kept bool) {
		r.roots[v] = setSize(s)
		return false
	})
	slices.Reverse(sorted)
	r.leaves = d.farEnds(g, sorted, &d.users, &d.deps, r.place)
	r.above = make([][]span, roots)
	p = spans{most: maxRuns, coarse: p.coarse}
	p.ends(sorted, &d.users, &d.deps, r.place, func(v int32, s []span) (kept bool) {
		if kept = d.deps.count(v) == 0; kept {
			r.above[r.place[v]] = s
		}
		return kept
	})
	r.coarse = p.coarse
	slices.Reverse(sorted)
	return r
}

// farEnds numbers the tasks that have no edges toward the ends but some away from them, and returns their count.
// It numbers them in the order in which a depth-first search from each task at the other end meets them. So the
// ends below one task of a tree get neighbouring numbers, and mostly so do those of other graphs: longer paths go
// first, as shorter ones are often part of them, then neighbours by name. sorted has the tasks nearer to the ends
// first.
func (d *dag) farEnds(g Graph, sorted []int32, toward, away *edges, place []int32) (count int) {
	n := d.len()
	height := make([]int32, n)
	many := 0
	for v := range n {
		if away.count(v) == 0 && toward.count(v) > 0 {
			many++
		}
	}
	starts := make([]start, 0, many)
	for _, v := range sorted {
		for _, w := range toward.of(v) {
			height[v] = max(height[v], height[w]+1)
		}
		if away.count(v) == 0 && height[v] > 0 {
			starts = append(starts, start{v, height[v], indices(g.Name(int(d.given[v])))})
		}
	}
	slices.SortFunc(starts, start.compare)
	seen := make([]bool, n)
	var stack []int32
	for _, s := range starts {
		stack = append(stack, s.task)
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[v] {
				continue
			}
			seen[v] = true
			next := toward.of(v)
			if len(next) == 0 {
				place[v] = int32(count)
				count++
			}
			for i := len(next) - 1; i >= 0; i-- {
				if !seen[next[i]] {
					stack = append(stack, next[i])
				}
			}
		}
	}
	return count
}

// start is a task where a path to the ends begins.
type start struct {
	task, height int32
	at           [3]uint32
}

func (a start) compare(b start) int {
	return cmp.Or(cmp.Compare(b.height, a.height), slices.Compare(a.at[:], b.at[:]), cmp.Compare(a.task, b.task))
}

// indices gives the last numbers in a name: those of ('x-2e', 7, 12) are 2, 7 and 12.
func indices(name string) (at [3]uint32) {
	i := len(name) - 1
	for k := len(at) - 1; k >= 0; k-- {
		for i >= 0 && (name[i] < '0' || name[i] > '9') {
			i--
		}
		for scale := uint32(1); i >= 0 && '0' <= name[i] && name[i] <= '9'; i-- {
			at[k] += uint32(name[i]-'0') * scale
			scale *= 10
		}
	}
	return at
}

// ends calls each with the set of ends of every task that is not an end itself. sorted has the tasks nearer to the
// ends first. A set that is not kept is dropped after its last use.
func (p *spans) ends(sorted []int32, toward, away *edges, place []int32, each func(v int32, s []span) (kept bool)) {
	n := len(place)
	sets := make([][]span, n)
	left := make([]int32, n) // how many tasks will still use the set of each
	counted := make([]bool, n)
	for _, v := range sorted {
		next := toward.of(v)
		left[v] = away.count(v)
		if len(next) == 0 {
			if left[v] > 0 {
				sets[v] = p.one(place[v])
			}
			continue
		}
		s, fresh := p.union(sets, next)
		kept := each(v, s)
		if left[v] > 0 {
			sets[v] = s
		}
		if fresh && (kept || left[v] > 0) {
			p.held += len(s)
			counted[v] = !kept
		}
		for _, w := range next {
			if left[w]--; left[w] > 0 {
				continue
			}
			if counted[w] {
				p.held -= len(sets[w])
			}
			sets[w] = nil
		}
	}
}
