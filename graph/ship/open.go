package ship

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"mobula/graph/spec"
	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/registry"
	"mobula/wire"
)

// decoding takes any number of arguments, nested to any depth that the driver has written.
var decoding = sync.OnceValues(cbor.DecOptions{MaxArrayElements: math.MaxInt32, MaxNestedLevels: math.MaxUint16}.DecMode)

// Open reads a call of Func: the function that it calls, and its arguments, which may alias the call's inputs.
func (rt *Runtime) Open(ctx context.Context, c *registry.Call) (*spec.Func, []reflect.Value, error) {
	if len(c.Inputs) == 0 {
		return nil, nil, errs.New(errs.CodeInvalid, "%s is called for tasks of graphs alone, with a payload", Func)
	}
	var call payload
	dec, err := decoding()
	if err == nil {
		err = dec.Unmarshal(c.Inputs[0].Value.Data, &call)
	}
	if err != nil {
		return nil, nil, errs.New(errs.CodeNotDecodable, "the payload of a graph's task: %v", err)
	}
	fn, err := rt.lookup(call.Func)
	if err != nil {
		return nil, nil, err
	}
	if len(call.Args) != len(fn.In) {
		return nil, nil, errs.New(errs.CodeRegistryMismatch, "%s: called with %d arguments, this binary's takes %d: driver and worker must be built from the same source", call.Func, len(call.Args), len(fn.In))
	}
	r := &reader{Runtime: rt, inputs: c.Inputs}
	if tc := client.FromContext(ctx); tc != nil {
		r.binder = rt.Binder(tc.Client)
	}
	args := make([]reflect.Value, len(fn.In))
	for i := range args {
		if args[i], err = r.value(&call.Args[i], fn.In[i]); err != nil {
			return nil, nil, fmt.Errorf("%s: argument %d: %w", call.Func, i, err)
		}
	}
	return fn, args, nil
}

func (rt *Runtime) lookup(name string) (*spec.Func, error) {
	if fn, ok := rt.Lookup(name); ok {
		return fn, nil
	}
	return nil, errs.New(errs.CodeUnknownFunction, "function %q is not registered in this worker's binary, or no task of a graph can call it: register it at package level", name)
}

// reader makes a call's arguments.
type reader struct {
	*Runtime
	inputs []registry.Input
	binder codec.Binder
}

func (r *reader) value(a *arg, t reflect.Type) (reflect.Value, error) {
	switch a.Kind {
	case spec.Literal:
		if a.Input == 0 {
			return r.decode(wire.Value{Meta: a.Meta, Data: a.Data}, t)
		}
		return r.input(a.Input, t)
	case spec.Result:
		from := t
		if a.From != "" {
			fn, err := r.lookup(a.From)
			if err != nil {
				return reflect.Value{}, err
			}
			from = fn.Out
		}
		v, err := r.input(a.Input, from)
		if err != nil {
			return v, err
		}
		return spec.As(v, t), nil
	}
	e := spec.Expr{Kind: a.Kind, Type: t, Names: a.Names}
	parts := make([]reflect.Value, len(a.Elems))
	for i := range parts {
		var err error
		if parts[i], err = r.value(&a.Elems[i], e.Elem()); err != nil {
			return reflect.Value{}, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return e.Assemble(parts), nil
}

func (r *reader) input(i int32, t reflect.Type) (reflect.Value, error) {
	if i < 1 || int(i) >= len(r.inputs) {
		return reflect.Value{}, errs.New(errs.CodeNotDecodable, "input %d of a call with %d", i, len(r.inputs))
	}
	return r.decode(r.inputs[i].Value, t)
}

func (r *reader) decode(v wire.Value, t reflect.Type) (reflect.Value, error) {
	out := reflect.New(t).Elem()
	err := r.Types.PlanOf(t).DecodeValue(v, true, out, r.binder)
	return out, err
}
