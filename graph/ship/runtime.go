package ship

import (
	"context"
	"reflect"

	"mobula/graph/spec"
	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/wire"
)

// Func is the registered name of the function that every task of a plan calls.
const Func = "mobula/graph-task"

// Runtime is what the package needs of package mobula.
type Runtime struct {
	Types  *codec.Registry
	Binder func(c *client.Client) codec.Binder // of references in values
	// Put makes an object of a value.
	Put func(ctx context.Context, tc *client.TaskContext, e *codec.Encoded) (*client.Handle, error)
	// Hold prepares a task's error for the program: objects that the error refers to live as long as the program has it. The caller holds the
	// failed object until then.
	Hold func(c *client.Client, err error) error
	// Lookup finds a registered function that tasks may call.
	Lookup func(name string) (*spec.Func, bool)
}

// taskOf is the task, or the driver's own code, that runs a graph.
func taskOf(ctx context.Context) (*client.TaskContext, error) {
	if tc := client.FromContext(ctx); tc != nil {
		return tc, nil
	}
	return nil, errs.New(errs.CodeInvalid, "the context belongs to no cluster: pass on the one that Main or the task got, or use Cluster.Context")
}

// fetch reads a result into memory of its own.
func (rt *Runtime) fetch(ctx context.Context, c *client.Client, h *client.Handle, t reflect.Type) (reflect.Value, error) {
	d, err := c.Get1(ctx, h)
	if err != nil {
		return reflect.Value{}, rt.Hold(c, err)
	}
	defer d.Release()
	out := reflect.New(t).Elem()
	err = rt.Types.PlanOf(t).DecodeValue(d.Value, false, out, rt.Binder(c))
	return out, err
}

// failure is the error of a task whose result is an error.
func failure(key spec.Key, r *wire.Result) error {
	if r.Err == nil {
		return errs.New(errs.CodeUnknown, "%q failed, and no reason was given", key)
	}
	return r.Err
}
