package spec

import (
	"context"
	"reflect"
)

// Executor runs plans: Sync, Threads, and mobula.Processes and mobula.Distributed.
type Executor interface {
	// Run gives the results of p.Wanted, in that order, each of its function's type. When it returns, no task of
	// the plan runs in this process. The error of a task is a *TaskError.
	Run(ctx context.Context, p *Plan) ([]reflect.Value, error)
}

// Get runs the wanted part of a graph, and gives the results in the nesting of want: for a Key its result, for a list of keys
// a list, and so on for nested lists and maps. T is the type of that, or any: float64 for a Key, []float64 for a []Key, []any
// for any list.
//
// The error is an *InvalidError, a *graph.MissingError, *graph.CycleError or *graph.DuplicateError, before anything has
// run; the *TaskError of the first task that failed; or, if ctx ends first, an error that matches its cause.
func Get[T any](ctx context.Context, x Executor, g *Graph, want any) (T, error) {
	var none T
	p, err := g.plan(want, reflect.TypeFor[T]())
	if err != nil {
		return none, err
	}
	var results []reflect.Value
	if len(p.Wanted) > 0 {
		if results, err = x.Run(ctx, p); err != nil {
			return none, err
		}
	}
	at := make(map[int32]int, len(p.Wanted))
	for i, t := range p.Wanted {
		at[t] = i
	}
	out := p.result.Eval(func(t int32) reflect.Value { return results[at[t]] })
	var got T
	reflect.ValueOf(&got).Elem().Set(out) // not by Interface, which loses the type of a nil interface
	return got, nil
}
