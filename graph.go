package mobula

import (
	"math"

	"mobula/graph"
	"mobula/graph/ship"
	"mobula/graph/spec"
	"mobula/internal/call"
)

// Processes runs the tasks of a graph in worker processes, which the program's executable is started again for as for any
// isolated task: one task a process at a time, n of them at once, 0: as many as GOMAXPROCS says. The graph is scheduled in the goroutine that
// asks. Results stay in the store; only what is wanted is read here.
//
//	mean, err := spec.Get[float64](ctx, mobula.Processes(0), g, spec.K("mean"))
//
// The context belongs to a cluster; functions are registered (Register0 to Register5). What was said of a function as it was registered
// counts for its Go, not here: annotate tasks instead.
func Processes(n int) spec.Executor { return ship.Processes{Runtime: &call.Graphs, Tasks: n} }

// Distributed runs a graph on the node: it is shipped once, and the node's scheduler sends its tasks to the job's workers. The rest is as
// with Processes.
func Distributed(opts ...GraphOption) spec.Executor {
	x := distributed{Runtime: &call.Graphs, Saturation: graph.DefaultSaturation, Failures: ship.Failures}
	for _, o := range opts {
		o(&x)
	}
	return x
}

// GraphOption is an option of Distributed.
type GraphOption func(*distributed)

type distributed = ship.Distributed

// GraphSaturation is Dask's worker-saturation: of tasks that make data from outside the graph, a worker is sent at most so many for each of
// its slots, and more as results are used up; 0 or more, Inf: all at once. Default 1.1, as Dask's.
func GraphSaturation(x float64) GraphOption { return func(d *distributed) { d.Saturation = x } }

// GraphFailures is how many worker processes have to die while they run a task for it to fail, 1 or more. Default 3.
func GraphFailures(n int) GraphOption {
	return func(d *distributed) { d.Failures = min(max(n, 1), math.MaxInt32) }
}
