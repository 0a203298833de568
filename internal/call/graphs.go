package call

import (
	"context"
	"reflect"
	"sync"

	"mobula/graph/ship"
	"mobula/graph/spec"
	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/registry"
)

// Graphs is the part of the engine that running graphs needs.
var Graphs = ship.Runtime{
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

// InGraphs lets tasks of graphs call the function.
func (f *Function) InGraphs(body any) *Function {
	f.body = body
	if fn, err := spec.FuncOf(f.name, body); err == nil { // else a graph that uses it gives the error
		graphFunctions.Store(f.name, fn)
	}
	return f
}

// GraphFunction gives name and Go function, for package spec.
func (f *Function) GraphFunction() (string, any) {
	if f == nil {
		return "", nil
	}
	return f.name, f.body
}

var _ = registerGraphTask()

// registerGraphTask registers the function that each task of a graph calls.
func registerGraphTask() struct{} {
	registry.Register(&registry.Function{Name: ship.Func, Invoke: guard(runGraphTask)})
	return struct{}{}
}

func runGraphTask(ctx context.Context, c *Task) ([]Output, any, error) {
	fn, args, err := Graphs.Open(ctx, c)
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
	outs := make([]Output, 1)
	plan := types.PlanOf(fn.Out)
	if b := takeResult(tc, 0, plan, v.Addr().UnsafePointer()); b != nil {
		outs[0] = Output{Meta: plan.Meta(), Size: b.size, Buffer: b.raw}
		return outs, nil, nil
	}
	e, err := plan.EncodeValue(v, tc.Client.InlineMax())
	if err != nil {
		return nil, nil, argErrorOf("result", 0, err)
	}
	outs[0] = Output{Meta: e.Meta, Refs: e.Refs, Size: e.Size, Inline: e.Inline, Fill: e.Fill}
	if len(e.Refs) > 0 {
		outs[0].Keep = r.Interface() // its references, until the owner knows of them
	}
	return outs, nil, nil
}
