package spec

import (
	"context"
	"reflect"

	"mobula/graph/internal/drive"
)

// runner is a drive.Runner whose results are in this process.
type runner interface {
	drive.Runner
	of(tasks []int32) []reflect.Value
}

// run runs the plan with tasks in this process.
func (p *Plan) run(ctx context.Context, lim drive.Limits, r runner) ([]reflect.Value, error) {
	if err := drive.Run(ctx, p.Graph, lim, r); err != nil {
		return nil, p.Failed(ctx, err)
	}
	return r.of(p.Wanted), nil
}

// results are the results that are still needed, by task.
type results struct {
	p      *Plan
	values []reflect.Value
}

func newResults(p *Plan) results { return results{p, make([]reflect.Value, len(p.Tasks))} }

// Free implements drive.Runner.
func (r *results) Free(t int32) { r.values[t] = reflect.Value{} }

func (r *results) of(tasks []int32) []reflect.Value {
	out := make([]reflect.Value, len(tasks))
	for i, t := range tasks {
		out[i] = r.values[t]
	}
	return out
}

// call runs a task. A panic becomes its error.
func (r *results) call(ctx context.Context, t int32) (out reflect.Value, err error) {
	x := &r.p.Tasks[t]
	defer func() {
		if p := recover(); p != nil {
			err = x.Func.panicked(p)
		}
	}()
	args := make([]reflect.Value, len(x.Args), len(x.Args)+1)
	for i, a := range x.Args {
		args[i] = a.Eval(func(t int32) reflect.Value { return r.values[t] })
	}
	return x.Func.Call(ctx, args)
}
