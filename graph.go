package mobula

import (
	"math"

	"mobula/graph"
	"mobula/graph/ship"
	"mobula/graph/spec"
	"mobula/internal/call"
)

// Processes runs the tasks of a graph in worker processes. As for any isolated task these are the program's executable, started again. A
// process runs one task at a time, and n tasks run at once; 0 means GOMAXPROCS. The graph is scheduled in the calling goroutine. Results stay
// in the store; only what is wanted is read here.
//
//	mean, err := spec.Get[float64](ctx, mobula.Processes(0), g, spec.K("mean"))
//
// The context must belong to a cluster, and functions must be registered (Register0 to Register5). Options given at a function's
// registration count for its Go, not here: annotate tasks instead.
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

// GraphSaturation is Dask's worker-saturation. It bounds how many tasks that make data from outside the graph (root tasks) a worker is sent
// for each of its slots; it gets more as their results are used up. It is 0 or more; Inf sends all at once. The default is 1.1, as in Dask.
func GraphSaturation(x float64) GraphOption { return func(d *distributed) { d.Saturation = x } }

// GraphFailures is the number of worker processes that have to die while they run a task for the task to fail, 1 or
// more. Default 3.
func GraphFailures(n int) GraphOption {
	return func(d *distributed) { d.Failures = min(max(n, 1), math.MaxInt32) }
}
