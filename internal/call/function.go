package call

import (
	"context"
	"hash/fnv"
	"strings"
	"sync/atomic"
	"time"

	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/registry"
	"mobula/wire"
)

// Types of other packages that the generated handles use.
type (
	// Plan is how values of one type are laid out.
	Plan = codec.Plan
	// Task is the call as the worker runs it: its inputs, and more.
	Task = registry.Call
	// Output is an encoded result.
	Output = registry.Output
	// Invoke decodes the inputs, calls the function and encodes its results. The second result is the instance that an actor's
	// constructor made.
	Invoke = func(ctx context.Context, t *Task) ([]Output, any, error)
)

// The kinds of function.
const (
	Plain     = wire.TaskNormal
	Construct = wire.TaskActorCreate
	Method    = wire.TaskActorCall
)

// Streaming is the number of results of a function that yields a stream.
const Streaming = wire.Streaming

// Shape is what a function takes and gives.
type Shape struct {
	Kind    wire.TaskKind
	In, Out []*Plan
	Returns int32 // results of a call that asks for no other number
}

// Function is what all handles of a function share. It is nil in a zero handle.
type Function struct {
	Shape
	name string
	body any // the Go function, if tasks of graphs may call it

	base    Options
	plain   *wire.TaskOptions // options of a call without options
	told    *wire.TaskOptions // the same without a result
	err     error             // why no call can be made
	options optionTable

	// How references to its results are held; see Cell.
	bounded bool          // they are small by their types alone
	stored  atomic.Bool   // one result was large
	small   atomic.Uint32 // seen so far
	nursery nursery

	calls atomic.Uint32 // for sampling call sites
}

// Register makes a function that workers find by its name.
func Register(name string, s Shape, base Options, invoke Invoke) *Function {
	f := New(name, s, base)
	registry.Register(&registry.Function{Name: name, Signature: s.signature(), Kind: s.Kind, Method: s.Kind == Method, Invoke: guard(invoke)})
	return f
}

// New makes a Function. If its default options are wrong, every call gives that error.
func New(name string, s Shape, base Options) *Function {
	f := &Function{Shape: s, name: name, base: base, err: base.err, bounded: true}
	f.base.returns, f.base.actor = s.Returns, s.Kind == Construct
	f.base.Deadline, f.base.err = time.Time{}, nil // a default deadline would count from the program's start
	if f.err == nil {
		f.plain, f.err = f.options.get(f.base.Class, name)
	}
	if f.err == nil && s.Kind == Method {
		told := f.base.Class
		told.returns = 0
		f.told, f.err = f.options.get(told, name)
	}
	for _, p := range s.Out {
		f.bounded = f.bounded && p.Bounded()
	}
	return f
}

// Name is the name that workers find it by.
func (f *Function) Name() string { return f.name }

// Options gives a copy of the default options of the function's calls, for a call to change.
func (f *Function) Options() Options {
	if f == nil {
		return Options{} // Begin gives the error
	}
	return f.base
}

// signature is a hash of what two binaries must agree on.
func (s Shape) signature() uint64 {
	var b strings.Builder
	b.WriteByte('0' + byte(s.Kind))
	for _, p := range s.In {
		b.WriteString("," + p.Name())
	}
	b.WriteString("->")
	for _, p := range s.Out {
		b.WriteString("," + p.Name())
	}
	if s.Returns == wire.Streaming {
		b.WriteString("...")
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(b.String()))
	return h.Sum64()
}

const trustAfter = 32 // after this many small results, further ones are expected to be small

// saw notes how large a result was.
func (f *Function) saw(stored bool) {
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

func (f *Function) resultsAreSmall() bool {
	return f.bounded || f.small.Load() >= trustAfter && !f.stored.Load()
}

// MissingInput is the error of a call with another number of arguments than this binary's function takes.
func MissingInput(name string, want, have int) error {
	return errs.New(errs.CodeRegistryMismatch, "%s: called with %d arguments, this binary's takes %d: driver and worker must be built from the same source", name, have, want)
}
