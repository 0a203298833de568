package call

import (
	"context"
	"runtime"
	"strconv"

	"go.opentelemetry.io/otel/trace"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Call builds one task's spec. It lives on the caller's stack; the spec, its arguments and the bytes
// of small values are one allocation. The first error is kept: later steps do nothing.
type Call struct {
	ctx     context.Context
	tc      *client.TaskContext
	f       *Function
	spec    *wire.TaskSpec
	scratch []byte
	err     error
	large   []*client.Handle // objects put for this call, released after it
	room    *client.Room     // room of the called actor; nil: it has no limit, or the limit is not known here
	waits   bool             // for room
	tells   bool             // it has no result
	inside  int              // bytes of values in the message, not counting those of a few bytes
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

// Begin begins a call of f with n arguments. A nil o means the options that f was registered with.
func (k *Call) Begin(ctx context.Context, f *Function, n int, o *Options) {
	k.ctx, k.f = ctx, f
	if k.tc, k.err = taskOf(ctx); k.err != nil {
		return
	}
	if f == nil {
		k.err = errs.New(errs.CodeUnknownFunction, "the handle is the zero value: use the one that Register gave")
		return
	}
	opts, deadline, err := f.Resolve(ctx, o)
	if err != nil {
		k.err = err
		return
	}
	if k.tells && o == nil {
		opts = f.told
	}
	k.waits = f.base.WaitForRoom || o != nil && o.WaitForRoom
	k.spec, k.scratch = newSpec(n)
	s := k.spec
	s.ID, s.Parent = k.tc.NextTask(), k.tc.Base()
	s.Kind, s.Opts = f.Kind, opts
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

// BeginN begins a call for so many results.
func (k *Call) BeginN(ctx context.Context, f *Function, n, results int, o Options) {
	if f != nil && results < 1 {
		k.err = errs.New(errs.CodeInvalid, "%s: asked for %d results, want at least 1", f.name, results)
		return
	}
	o.returns = Count(results)
	k.Begin(ctx, f, n, &o)
}

// BeginTell begins a call without a result, so nobody can wait for its end. A nil o means the options that f was registered with.
func (k *Call) BeginTell(ctx context.Context, f *Function, n int, o *Options) {
	if o != nil {
		o.returns = 0
	}
	k.tells = true
	k.Begin(ctx, f, n, o)
}

// Err is why the call cannot be made.
func (k *Call) Err() error { return k.err }

// PutValue sets the i-th argument.
func PutValue[T any](k *Call, i int, v T) {
	if k.err != nil {
		return
	}
	dst := &k.spec.Args[i]
	t := codec.Type[T]{Plan: k.f.In[i]}
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
	k.tc.Client.AnnounceOthers(k.ctx, e.Refs)
	k.value(dst, &e)
	runtime.KeepAlive(v)
}

// PutRef sets the i-th argument to the object that c names. The caller keeps c alive until the spec is sent: k does
// not store it, because that would move every argument to the heap.
func (k *Call) PutRef(i int, c *Cell) {
	if k.err != nil {
		return
	}
	h, err := c.handleOf(k.tc.Client)
	if err != nil {
		k.err = argError(k.f.name, i, err)
		return
	}
	k.spec.Args[i].Ref = h.Passed()
}

// PutNone refuses the i-th argument, which is nil.
func (k *Call) PutNone(i int) {
	if k.err == nil {
		k.err = errs.New(errs.CodeInvalid, "%s: argument %d is nil, want V(value) or a Ref", k.f.name, i)
	}
}

// On makes the call one of an actor's method. The caller keeps actor alive until the spec is sent.
func (k *Call) On(actor *Cell) {
	if k.err != nil {
		return
	}
	h, err := actor.handleOf(k.tc.Client)
	if err != nil {
		k.err = err
		return
	}
	k.spec.Actor = ids.ActorID(h.ID().Task)
	k.room = actor.life.room
}

// value passes an encoded value: in the message, or through the store if it is large.
func (k *Call) value(dst *wire.Arg, e *codec.Encoded) {
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

// argError adds which argument it was; the error of a failed reference stays as it is.
func argError(name string, i int, err error) error {
	e := errs.From(err)
	if e.Code == errs.CodeNotEncodable || e.Code == errs.CodeInvalid {
		return &errs.Error{Code: e.Code, Msg: name + ": argument " + strconv.Itoa(i) + ": " + e.Msg}
	}
	return e
}

// Submit sends the task, and gives the handles of its results, for Nth.
func (k *Call) Submit() []*client.Handle {
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

// send submits the task. If it calls an actor, it has its place in the actor's room.
func (k *Call) send() (hs []*client.Handle) {
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

// notCalled is the error of a call with a cancelled context.
func notCalled(name string, cause error) error {
	e := &errs.Error{Code: errs.CodeCancelled, Name: name, Msg: name + " was not called: its context had ended"}
	if cause != context.Canceled { //nolint:errorlint // one that was given is told
		e.Msg += ": " + cause.Error()
		e.Cause = []*errs.Error{errs.From(cause)}
	}
	return e
}

// Result submits the task and gives the reference to its only result.
func (k *Call) Result() *Cell {
	hs := k.Submit()
	return k.Nth(hs, 0)
}

// Nth gives the reference to the i-th result, after Submit.
func (k *Call) Nth(hs []*client.Handle, i int) *Cell {
	if k.err != nil {
		return failedCell(k.err)
	}
	return k.cell(hs[i])
}

func (k *Call) cell(h *client.Handle) *Cell {
	if k.f.resultsAreSmall() {
		return k.f.nursery.cell(k.tc.Client, h, k.f)
	}
	return newCell(k.tc.Client, h, k.f)
}
