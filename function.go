package mobula

import (
	"context"
	"hash/fnv"
	"reflect"
	"strings"
	"sync/atomic"

	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/registry"
	"mobula/wire"
)

// function is what the handles of one function share.
type function struct {
	name    string
	kind    wire.TaskKind
	in, out []*codec.Plan
	body    any // the Go function, where tasks of graphs may call it

	base    optionKey
	plain   *wire.TaskOptions // of a call without options
	err     error             // why none can be made
	options optionTable

	// How references to its results are held; see cell.
	bounded bool          // by its types alone they are small
	stored  atomic.Bool   // one of them was large
	small   atomic.Uint32 // seen so far
	nursery nursery

	calls atomic.Uint32 // for sampling call sites
}

type invoker func(ctx context.Context, c *registry.Call) ([]registry.Output, any, error)

// newFunction registers a function.
func newFunction[O any](name string, kind wire.TaskKind, method bool, in, out []*codec.Plan, returns int32, defaultOpts []O, invoke invoker) *function {
	f := newCallee(name, kind, in, out, returns, defaultOpts)
	registry.Register(&registry.Function{Name: name, Signature: signature(kind, in, out, returns), Kind: kind, Method: method, Invoke: guard(invoke)})
	return f
}

// newCallee makes what a function's calls need. Where its default options are wrong every call says so.
func newCallee[O any](name string, kind wire.TaskKind, in, out []*codec.Plan, returns int32, defaultOpts []O) *function {
	f := &function{name: name, kind: kind, in: in, out: out, base: defaults, bounded: true}
	f.base.returns, f.base.actor = returns, kind == wire.TaskActorCreate
	for i := range defaultOpts {
		if _, err := f.base.apply(any(defaultOpts[i])); err != nil && f.err == nil {
			f.err = err
		}
	}
	if f.err == nil {
		f.plain, f.err = f.options.get(f.base, name)
	}
	for _, p := range out {
		f.bounded = f.bounded && p.Bounded()
	}
	return f
}

// signature is a hash of what two binaries must agree on.
func signature(kind wire.TaskKind, in, out []*codec.Plan, returns int32) uint64 {
	var b strings.Builder
	b.WriteByte('0' + byte(kind))
	for _, p := range in {
		b.WriteString("," + p.Name())
	}
	b.WriteString("->")
	for _, p := range out {
		b.WriteString("," + p.Name())
	}
	if returns == wire.Streaming {
		b.WriteString("...")
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(b.String()))
	return h.Sum64()
}

func planOf[T any]() *codec.Plan { return types.PlanOf(reflect.TypeFor[T]()) }

const trustAfter = 32 // small results seen before those to come are taken to be small

// saw notes how large a result was.
func (f *function) saw(stored bool) {
	if f == nil || f.bounded {
		return
	}
	if stored {
		if !f.stored.Load() {
			f.stored.Store(true)
		}
	} else if f.small.Load() < trustAfter {
		f.small.Add(1)
	}
}

func (f *function) resultsAreSmall() bool {
	return f.bounded || f.small.Load() >= trustAfter && !f.stored.Load()
}

func missingInput(name string, want, have int) error {
	return errs.New(errs.CodeRegistryMismatch, "%s: called with %d arguments, this binary's takes %d: driver and worker must be built from the same source", name, have, want)
}
