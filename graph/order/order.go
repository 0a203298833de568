package order

import (
	"math"

	"mobula/internal/errs"
)

// Bounds of a graph: its numbers are 32 bits wide.
const (
	MaxTasks = 1 << 28
	MaxEdges = math.MaxInt32
)

// Kind says what a node of the graph is.
type Kind uint8

const (
	// Run is a task that is run.
	Run Kind = iota
	// Plain is a value within the graph, or a mere list of other results: nothing runs for it.
	Plain
	// Outside is a result that is there already, or comes from another graph. It has no dependencies and gets no
	// priority, but it counts when the tasks that take it are ordered.
	Outside
)

// None stands for no priority.
const None = -1

// Graph is what Of orders: the tasks 0 to Len()-1.
type Graph interface {
	Len() int
	// Deps gives the tasks whose results task i takes. Duplicates count once. The slice is read before the next
	// call and not kept.
	Deps(i int) []int32
	// Name breaks ties, compared by its bytes. For dask's keys it is Python's str. If names are equal, the task
	// with the lower number comes first.
	Name(i int) string
	Kind(i int) Kind
}

// Task is a task of a Tasks.
type Task struct {
	Name string
	Deps []int32
	Kind Kind
}

// Tasks is a Graph.
type Tasks []Task

// Len implements Graph.
func (t Tasks) Len() int { return len(t) }

// Deps implements Graph.
func (t Tasks) Deps(i int) []int32 { return t[i].Deps }

// Name implements Graph.
func (t Tasks) Name(i int) string { return t[i].Name }

// Kind implements Graph.
func (t Tasks) Kind(i int) Kind { return t[i].Kind }

// Of gives the priority of each task, 0 first. Each number below the count of tasks is given once; results from
// outside are not counted and have None. A task comes after its dependencies.
//
// dask numbers lists of results at the end of the graph from the highest number down in steps of two, so two nodes
// can have the same number; here the step is one. Values that only such lists take, on which dask fails, come just
// before the lists.
//
// If exactness would take too much memory, comparisons are approximate: see maxBits and maxRuns. The result is
// then still a valid order, but not dask's.
func Of(g Graph) ([]int32, error) {
	w, d, err := prepare(g, maxRuns(g.Len()))
	if err != nil || w == nil {
		return nil, err
	}
	w.run()
	return number(d, w), nil
}

// maxRuns is how many runs the sets that are held at once for n tasks may have: some 300 bytes per task.
func maxRuns(n int) int { return 1<<20 + 32*n }

// prepare does everything except the walk.
func prepare(g Graph, maxRuns int) (*walker, *dag, error) {
	n := g.Len()
	if n == 0 {
		return nil, nil, nil
	}
	if n > MaxTasks {
		return nil, nil, errs.New(errs.CodeInvalid, "a graph of %d tasks cannot be ordered: %d is the most; order parts of it", n, MaxTasks)
	}
	d, err := index(g)
	if err != nil {
		return nil, nil, err
	}
	d.trim()
	below, sorted, err := d.weigh(g)
	if err != nil {
		return nil, nil, err
	}
	r := reach(g, d, sorted, maxRuns)
	rk := &ranking{deps: &d.deps, below: below, roots: r.roots, fanout: r.fanout}
	return newWalker(d, rk, newTargets(d, rk, r)), d, nil
}

// number turns the walk's places into priorities by the caller's numbers.
func number(d *dag, w *walker) []int32 {
	for _, v := range d.data { // values that only lists take
		w.placeData(v)
	}
	for i, v := range d.lists {
		w.prio[v] = w.runs - 1 - int32(i)
	}
	out := make([]int32, len(w.prio))
	for v, p := range w.prio {
		if d.kind[v] == Outside {
			p = None
		}
		out[d.given[v]] = p
	}
	return out
}
