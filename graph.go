package mobula

import (
	"context"
	"math"
	"reflect"
	"sync"

	"mobula/graph"
	"mobula/graph/ship"
	"mobula/graph/spec"
	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/registry"
)

// Processes runs the tasks of a graph in worker processes, which the program's executable is started again for as for any
// isolated task: one task a process at a time, n of them at once, 0: as many as GOMAXPROCS says. The graph is scheduled in the goroutine that
// asks. Results stay in the store; only what is wanted is read here.
//
//	mean, err := spec.Get[float64](ctx, mobula.Processes(0), g, spec.K("mean"))
//
// The context belongs to a cluster; functions are registered (Register0 to Register5). What was said of a function as it was registered
// counts for its Go, not here: annotate tasks instead.
func Processes(n int) spec.Executor { return ship.Processes{Runtime: &graphs, Tasks: n} }

// Distributed runs a graph on the node: it is shipped once, and the node's scheduler sends its tasks to the job's workers. The rest is as
// with Processes.
func Distributed(opts ...GraphOption) spec.Executor {
	x := distributed{Runtime: &graphs, Saturation: graph.DefaultSaturation, Failures: ship.Failures}
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

var graphs = ship.Runtime{
	Types:  types,
	Binder: func(c *client.Client) codec.Binder { return binder{c} },
	Put: func(ctx context.Context, tc *client.TaskContext, e *codec.Encoded) (*client.Handle, error) {
		h, _, err := putEncoded(ctx, tc, e)
		return h, err
	},
	Hold: failure,
	Lookup: func(name string) (*spec.Func, bool) {
		f, ok := graphFunctions.Load(name)
		if !ok {
			return nil, false
		}
		return f.(*spec.Func), true
	},
}

// graphFunctions are the registered functions that tasks of graphs may call, as *spec.Func by name.
var graphFunctions sync.Map

// inGraphs makes the function one that tasks of graphs may call.
func (f *function) inGraphs(body any) *function {
	f.body = body
	if fn, err := spec.FuncOf(f.name, body); err == nil { // else a graph that has it says what is wrong
		graphFunctions.Store(f.name, fn)
	}
	return f
}

// graphFunction is what the handles give package spec.
func (f *function) graphFunction() (string, any) {
	if f == nil {
		return "", nil
	}
	return f.name, f.body
}

var _ = registerGraphTask()

// registerGraphTask registers the function that each task of a graph is a call of.
func registerGraphTask() struct{} {
	registry.Register(&registry.Function{Name: ship.Func, Invoke: guard(runGraphTask)})
	return struct{}{}
}

func runGraphTask(ctx context.Context, c *registry.Call) ([]registry.Output, any, error) {
	fn, args, err := graphs.Open(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	r, err := fn.Call(ctx, args)
	if err != nil {
		return nil, nil, err
	}
	tc := client.FromContext(ctx)
	if tc == nil {
		return nil, nil, errs.New(errs.CodeInvalid, "%s: the context belongs to no task", fn.Name)
	}
	v := reflect.New(fn.Out).Elem()
	v.Set(r)
	outs := make([]registry.Output, 1)
	plan := types.PlanOf(fn.Out)
	if b := takeResult(tc, 0, plan, v.Addr().UnsafePointer()); b != nil {
		outs[0] = registry.Output{Meta: plan.Meta(), Size: b.size, Buffer: b.raw}
		return outs, nil, nil
	}
	e, err := plan.EncodeValue(v, tc.Client.InlineMax())
	if err != nil {
		return nil, nil, argErrorOf("result", 0, err)
	}
	outs[0] = registry.Output{Meta: e.Meta, Refs: e.Refs, Size: e.Size, Inline: e.Inline, Fill: e.Fill}
	if len(e.Refs) > 0 {
		outs[0].Keep = r.Interface() // its references, until the owner knows of them
	}
	return outs, nil, nil
}
