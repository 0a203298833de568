package mobula

import (
	"context"

	"mobula/internal/call"
)

// This file has what the generated handles (zz_*.go) share: they resolve options and types, then pass the call
// to the engine (internal/call).

// register registers a function under the name by which workers find it.
func register[O any](name string, s call.Shape, opts []O, invoke call.Invoke) *call.Function {
	return call.Register(name, s, options(call.Defaults, opts), invoke)
}

// pythonFunc makes what the handles of a Python function or class share.
func pythonFunc[O any](module, name string, s call.Shape, opts []O) *call.Function {
	return call.NewPython(module, name, s, options(call.Defaults, opts))
}

// pythonMethod is pythonFunc for a method of a class.
func pythonMethod[T any](actor ActorType[T], name string, s call.Shape, opts []CallOption) *call.Function {
	return call.NewPythonMethod(actor.class(nil), name, s, options(call.Defaults, opts))
}

func methodName[T any](actor ActorType[T], name string) string {
	return actor.class(nil).Name() + "." + name
}

func begin[O any](ctx context.Context, k *call.Call, f *call.Function, n int, opts []O) {
	if len(opts) == 0 {
		k.Begin(ctx, f, n, nil)
		return
	}
	o := options(f.Options(), opts)
	k.Begin(ctx, f, n, &o)
}

// beginTell begins a call of a method whose result nobody wants.
func beginTell(ctx context.Context, k *call.Call, f *call.Function, n int, opts []CallOption) {
	if len(opts) == 0 {
		k.BeginTell(ctx, f, n, nil)
		return
	}
	o := options(f.Options(), opts)
	k.BeginTell(ctx, f, n, &o)
}

// put sets the i-th argument. The caller keeps it alive until the spec is sent: k does not store
// it, because that would move every argument to the heap.
func put[T any](k *call.Call, i int, a Arg[T]) {
	switch a := a.(type) {
	case Value[T]:
		call.PutValue(k, i, a.v)
	case Ref[T]:
		k.PutRef(i, a.cell)
	default:
		k.PutNone(i)
	}
}

// putAll sets the arguments from the i-th on.
func putAll[T any](k *call.Call, i int, refs []Ref[T]) {
	for n, r := range refs {
		k.PutRef(i+n, r.cell)
	}
}

// result submits and gives the reference to the only result.
func result[R any](k *call.Call) Ref[R] { return Ref[R]{k.Result()} }

// results submits and gives the references to n results.
func results[R any](k *call.Call, n int) []Ref[R] {
	hs := k.Submit()
	refs := make([]Ref[R], max(n, 1))
	for i := range refs {
		refs[i] = Ref[R]{k.Nth(hs, i)}
	}
	return refs
}

// stream submits a streaming task.
func stream[T any](k *call.Call) *Stream[T] {
	s := new(Stream[T])
	s.s.Open(k)
	return s
}
