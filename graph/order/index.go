package order

import (
	"slices"
	"strings"

	"mobula/internal/errs"
)

// edges are the neighbours of each task in one direction, in ascending order.
type edges struct {
	off []int32 // those of v are to[off[v]:off[v+1]]
	to  []int32
}

func (e *edges) of(v int32) []int32 { return e.to[e.off[v]:e.off[v+1]] }

func (e *edges) count(v int32) int32 { return e.off[v+1] - e.off[v] }

// dag is the graph with its tasks numbered by name.
type dag struct {
	given []int32 // the caller's number of each task
	kind  []Kind
	deps  edges
	users edges // who depends on it

	// Set by trim: the tasks that are not walked and have no edges left.
	lists []int32 // in order of removal
	data  []int32
	all   *edges // the dependencies before trim; nil: nothing was removed
	aside []bool // nil: nothing was removed
}

func (d *dag) len() int32 { return int32(len(d.given)) }

// walked tells whether v is still part of the graph.
func (d *dag) walked(v int32) bool { return d.aside == nil || !d.aside[v] }

// index reads the graph.
func index(g Graph) (*dag, error) {
	raw, err := readDeps(g)
	if err != nil {
		return nil, err
	}
	n := g.Len()
	d := &dag{given: byName(g), kind: make([]Kind, n)}
	rank := make([]int32, n)
	for v, i := range d.given {
		rank[i] = int32(v)
		d.kind[v] = g.Kind(int(i))
		if k := d.kind[v]; k > Outside || k == Outside && raw.count(i) > 0 {
			return nil, errs.New(errs.CodeInvalid, "task %q is of kind %d and has %d dependencies: results from outside have none", g.Name(int(i)), k, raw.count(i))
		}
	}
	d.users = transpose(n, len(raw.to), func(yield func(v, dep int32)) {
		for v, i := range d.given {
			for _, dep := range raw.of(i) {
				yield(int32(v), rank[dep])
			}
		}
	})
	raw = edges{}
	d.deps = d.users.turn()
	return d, nil
}

// readDeps gives the dependencies under the caller's numbers, each once.
func readDeps(g Graph) (edges, error) {
	n := g.Len()
	raw := edges{off: make([]int32, n+1)}
	seen := make([]int32, n) // the last task that had it as a dependency, plus one
	for i := range n {
		for _, dep := range g.Deps(i) {
			if dep < 0 || int(dep) >= n {
				return edges{}, errs.New(errs.CodeInvalid, "task %q depends on task number %d; the graph has %d", g.Name(i), dep, n)
			}
			if seen[dep] == int32(i)+1 {
				continue
			}
			seen[dep] = int32(i) + 1
			raw.to = append(raw.to, dep)
		}
		if len(raw.to) > MaxEdges {
			return edges{}, errs.New(errs.CodeInvalid, "a graph of more than %d edges cannot be ordered: order parts of it", MaxEdges)
		}
		raw.off[i+1] = int32(len(raw.to))
	}
	return raw, nil
}

// byName gives the tasks' numbers in the order of their names.
func byName(g Graph) []int32 {
	type named struct {
		name string
		i    int32
	}
	all := make([]named, g.Len())
	for i := range all {
		all[i] = named{g.Name(i), int32(i)}
	}
	less := func(a, b named) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return int(a.i - b.i)
	}
	if !slices.IsSortedFunc(all, less) {
		slices.SortFunc(all, less)
	}
	out := make([]int32, len(all))
	for v, a := range all {
		out[v] = a.i
	}
	return out
}

// turn gives the reversed edges.
func (e *edges) turn() edges {
	return transpose(len(e.off)-1, len(e.to), func(yield func(v, w int32)) {
		for v := range int32(len(e.off) - 1) {
			for _, w := range e.of(v) {
				yield(v, w)
			}
		}
	})
}

// transpose collects the v of each w, in the order in which walk gives them; walk runs twice.
func transpose(n, m int, walk func(yield func(v, w int32))) edges {
	e := edges{off: make([]int32, n+2), to: make([]int32, m)}
	walk(func(_, w int32) { e.off[w+2]++ })
	for w := range n {
		e.off[w+2] += e.off[w+1]
	}
	walk(func(v, w int32) { // off[w+1] runs from w's first to its end
		e.to[e.off[w+1]] = v
		e.off[w+1]++
	})
	e.off = e.off[:n+1]
	return e
}
