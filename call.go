package mobula

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/wire"
)

// call builds one task's spec. It lives on the caller's stack; the spec, its arguments and the bytes
// of small values are one allocation.
type call struct {
	ctx     context.Context
	tc      *client.TaskContext
	f       *function
	spec    *wire.TaskSpec
	scratch []byte
	err     error
	large   []*client.Handle // put for this call, released after it
	room    *client.Room     // of the actor that is called; nil: it has no limit, or it is not known here
	waits   bool             // for room
	inside  int              // bytes of values in the message, those of a few bytes aside
}

// frame is a spec with room for its arguments and their small values.
type frame[A, B any] struct {
	spec    wire.TaskSpec
	args    A
	scratch B
}

func newSpec(n int) (*wire.TaskSpec, []byte) {
	switch n {
	case 0:
		return new(wire.TaskSpec), nil
	case 1:
		s := new(frame[[1]wire.Arg, [16]byte])
		s.spec.Args = s.args[:]
		return &s.spec, s.scratch[:0]
	case 2:
		s := new(frame[[2]wire.Arg, [24]byte])
		s.spec.Args = s.args[:]
		return &s.spec, s.scratch[:0]
	case 3:
		s := new(frame[[3]wire.Arg, [32]byte])
		s.spec.Args = s.args[:]
		return &s.spec, s.scratch[:0]
	}
	return &wire.TaskSpec{Args: make([]wire.Arg, n)}, make([]byte, 0, min(16*n, 96))
}

func begin[O any](ctx context.Context, k *call, f *function, n int, opts []O) {
	k.ctx, k.f = ctx, f
	if k.tc, k.err = taskOf(ctx); k.err != nil {
		return
	}
	if f == nil {
		k.err = errs.New(errs.CodeUnknownFunction, "the handle is the zero value: use the one that Register gave")
		return
	}
	o, deadline, err := resolve(ctx, f, opts)
	if err != nil {
		k.err = err
		return
	}
	k.waits = f.base.waitForRoom || waitsForRoom(opts)
	k.spec, k.scratch = newSpec(n)
	s := k.spec
	s.ID, s.Parent = k.tc.NextTask(), k.tc.Base()
	s.Kind, s.Opts = f.kind, o
	if !deadline.IsZero() {
		s.Deadline = k.tc.Client.At(deadline)
	}
	s.Trace = k.tc.Trace
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		s.Trace = wire.TraceContext{TraceID: sc.TraceID(), SpanID: sc.SpanID(), Flags: byte(sc.TraceFlags())}
	}
	if s.Trace = k.tc.Client.Trace(s.Trace, s.ID); s.Trace.Sampled() {
		s.Submitted = k.tc.Client.Now()
	}
	if n := f.calls.Add(1); n < 8 || n%callsiteEvery == 0 {
		s.Callsite = callsite()
	}
}

// put sets the i-th argument. The caller keeps it alive until the spec is sent; were it stored in
// k, every argument would be moved to the heap.
func put[T any](k *call, i int, a Arg[T]) {
	if k.err != nil {
		return
	}
	dst := &k.spec.Args[i]
	switch a := a.(type) {
	case Value[T]:
		t := codec.Type[T]{Plan: k.f.in[i]}
		v := a.v
		at := len(k.scratch)
		if b, ok := t.AppendSmall(k.scratch, &v); ok {
			k.scratch = b
			dst.Value = wire.Value{Meta: t.Meta(), Data: b[at:len(b):len(b)]}
			return
		}
		e, err := t.Encode(&v, nil, k.tc.Client.InlineMax())
		if err != nil {
			k.err = argError(k.f.name, i, err)
			return
		}
		k.value(dst, &e)
		runtime.KeepAlive(v)
	case Ref[T]:
		h, err := a.cell.handleOf(k.tc.Client)
		if err != nil {
			k.err = argError(k.f.name, i, err)
			return
		}
		dst.Ref = h.ID()
	default:
		k.err = errs.New(errs.CodeInvalid, "%s: argument %d is nil, want V(value) or a Ref", k.f.name, i)
	}
}

// putAll sets the arguments from the i-th on.
func putAll[T any](k *call, i int, refs []Ref[T]) {
	if k.err != nil {
		return
	}
	for n, r := range refs {
		h, err := r.cell.handleOf(k.tc.Client)
		if err != nil {
			k.err = argError(k.f.name, i+n, err)
			return
		}
		k.spec.Args[i+n].Ref = h.ID()
	}
}

// value passes an encoded value: in the message, or through the store if it is large.
func (k *call) value(dst *wire.Arg, e *codec.Encoded) {
	if e.Fill == nil && e.Size <= min(k.tc.Client.InlineMax(), wire.MessageValues-k.inside) {
		k.inside += e.Size
		dst.Value = e.Value()
		return
	}
	h, err := seal(k.ctx, k.tc.Client, k.tc.NextPut(), e)
	if err != nil {
		k.err = err
		return
	}
	k.large = append(k.large, h)
	dst.Ref = h.ID()
}

// argError says which argument; a failed reference's own error stays what it is.
func argError(name string, i int, err error) error {
	e := errs.From(err)
	if e.Code == errs.CodeNotEncodable || e.Code == errs.CodeInvalid {
		return &errs.Error{Code: e.Code, Msg: name + ": argument " + strconv.Itoa(i) + ": " + e.Msg}
	}
	return e
}

// submit sends the task.
func (k *call) submit() []*client.Handle {
	var hs []*client.Handle
	follows := k.err == nil && k.spec.Kind != wire.TaskActorCreate && k.spec.Opts.NumReturns != 0 && k.tc.Follows(k.ctx)
	if follows {
		if cause := k.tc.Cancelled(k.ctx); cause != nil {
			k.err = notCalled(k.f.name, cause)
		}
	}
	if k.err == nil && k.room != nil {
		k.err = k.room.Enter(k.ctx, k.spec.Actor, k.waits)
	}
	if k.err == nil {
		hs = k.send()
	}
	if follows && k.err == nil {
		k.tc.Client.Follow(k.ctx, k.tc, k.spec.ID, hs)
	}
	for _, h := range k.large {
		h.Release()
	}
	return hs
}

// send submits the task, which has its place in its actor's room.
func (k *call) send() (hs []*client.Handle) {
	if k.room == nil {
		hs, k.err = k.tc.Client.Submit(k.ctx, k.spec)
		return hs
	}
	var end []*client.Handle
	if k.spec.Opts.NumReturns <= 0 {
		end = []*client.Handle{k.tc.Client.EndOfCall(k.spec)}
		defer end[0].Release()
	}
	hs, k.err = k.tc.Client.Submit(k.ctx, k.spec)
	switch {
	case k.err != nil:
		k.room.Called(nil)
	case end != nil:
		k.room.Called(end)
	default:
		k.room.Called(hs)
	}
	return hs
}

// notCalled is the error of a call whose context was cancelled before.
func notCalled(name string, cause error) error {
	e := &errs.Error{Code: errs.CodeCancelled, Name: name, Msg: name + " was not called: its context had ended"}
	if cause != context.Canceled { //nolint:errorlint // one that was given is told
		e.Msg += ": " + cause.Error()
		e.Cause = []*errs.Error{errs.From(cause)}
	}
	return e
}

// result submits and gives the reference to the only result.
func result[R any](k *call) Ref[R] {
	hs := k.submit()
	if k.err != nil {
		return Ref[R]{failedCell(k.err)}
	}
	return Ref[R]{k.cell(hs[0])}
}

func (k *call) cell(h *client.Handle) *cell {
	if k.f.resultsAreSmall() {
		return k.f.nursery.cell(k.tc.Client, h, k.f)
	}
	return newCell(k.tc.Client, h, k.f)
}

// nth gives the reference to the i-th of several results, after submit.
func nth[R any](k *call, hs []*client.Handle, i int) Ref[R] {
	if k.err != nil {
		return Ref[R]{failedCell(k.err)}
	}
	return Ref[R]{k.cell(hs[i])}
}

// callsiteEvery: looking up the caller costs half a microsecond, so few calls pay it.
const callsiteEvery = 128

var callsites sync.Map // [siteDepth]uintptr -> "file.go:12"

const siteDepth = 6 // frames from callsite's caller that reach user code

// callsite is the first caller outside the generated handles.
func callsite() string {
	var pcs [siteDepth]uintptr
	n := runtime.Callers(3, pcs[:])
	if s, ok := callsites.Load(pcs); ok {
		return s.(string)
	}
	site := ""
	frames := runtime.CallersFrames(pcs[:n])
	for handle, more := false, n > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		file := f.File[strings.LastIndexByte(f.File, '/')+1:]
		if strings.HasPrefix(file, "zz_") {
			handle = true
		} else if handle {
			site = file + ":" + strconv.Itoa(f.Line)
			break
		}
	}
	callsites.Store(pcs, site)
	return site
}

// beginN begins a call for n results.
func beginN(ctx context.Context, k *call, f *function, args, n int, opts []TaskOption) {
	if n < 1 {
		k.err = errs.New(errs.CodeInvalid, "%s: asked for %d results, want at least 1", f.name, n)
		return
	}
	begin(ctx, k, f, args, append(opts[:len(opts):len(opts)], returnsOption(n)))
}

// returnsOption is how many results are asked for.
type returnsOption int

func (returnsOption) taskOption() {}
func (returnsOption) callOption() {}

// beginTell begins a call of which no result is kept.
func beginTell(ctx context.Context, k *call, f *function, args int, opts []CallOption) {
	begin(ctx, k, f, args, append(opts[:len(opts):len(opts)], returnsOption(0)))
}

// nths gives the references to all results, after submit.
func nths[R any](k *call, hs []*client.Handle, n int) []Ref[R] {
	refs := make([]Ref[R], max(n, 1))
	for i := range refs {
		refs[i] = nth[R](k, hs, i)
	}
	return refs
}
