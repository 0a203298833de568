package mobula

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/join"
	"mobula/internal/registry"
	"mobula/internal/state"
	"mobula/wire"
)

// fakeNode serves one client in memory, so that the API can be tested alone. It is owner, store and
// executor in one, without their rules: every task runs in a goroutine as soon as its arguments are
// there.
type fakeNode struct {
	t  testing.TB
	c  *client.Client
	in chan []wire.Msg

	work sync.WaitGroup // tasks
	done chan struct{}

	mu      sync.Mutex
	objects map[ids.ObjectID]wire.Result
	bytes   map[uint64][]byte // extents by offset
	next    uint64
	granted map[ids.ObjectID]uint64
	waiting map[ids.ObjectID][]func(wire.Result)
	held    map[ids.ObjectID]int
	cancels map[ids.TaskID]context.CancelFunc
	actors  map[ids.ActorID]*fakeActor
	names   map[string]ids.ActorID
	streams map[ids.TaskID]*fakeStream
	specs   []*wire.TaskSpec
}

type fakeActor struct {
	self  any
	calls chan func()
	dead  bool
}

type fakeStream struct {
	items []wire.Result
	end   *wire.Result // its Kind is ResultNone or ResultError
	asked []uint32
}

// startFake gives a cluster over a fake node.
func startFake(t testing.TB) (*Cluster, context.Context, *fakeNode) {
	f := &fakeNode{t: t, in: make(chan []wire.Msg, 1<<16), done: make(chan struct{}),
		objects: map[ids.ObjectID]wire.Result{}, bytes: map[uint64][]byte{}, granted: map[ids.ObjectID]uint64{},
		waiting: map[ids.ObjectID][]func(wire.Result){}, held: map[ids.ObjectID]int{}, cancels: map[ids.TaskID]context.CancelFunc{},
		actors: map[ids.ActorID]*fakeActor{}, names: map[string]ids.ActorID{}, streams: map[ids.TaskID]*fakeStream{}}
	f.c = client.New(client.Config{Port: f, Memory: f, Log: slog.New(slog.DiscardHandler),
		Welcome: &wire.Welcome{Client: 1, Node: "fake", Job: 7, Root: ids.RootTask(7, 1), Namespace: "test"}})
	go f.serve()
	c := &Cluster{session: &join.Session{Client: f.c, Node: "fake", Leave: func(ctx context.Context) error {
		err := f.c.Close(ctx)
		f.mu.Lock()
		for _, cancel := range f.cancels {
			cancel()
		}
		for _, a := range f.actors {
			close(a.calls)
		}
		f.mu.Unlock()
		f.work.Wait()
		return err
	}}}
	t.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c, c.Context(t.Context()), f
}

func (f *fakeNode) Send(msgs ...wire.Msg) error {
	f.in <- append([]wire.Msg(nil), msgs...)
	return nil
}

func (f *fakeNode) Close() error {
	close(f.in)
	<-f.done
	return nil
}

func (f *fakeNode) Map(e wire.Extent, _ bool) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes[e.Off], nil
}

func (f *fakeNode) serve() {
	defer close(f.done)
	for batch := range f.in {
		for _, m := range batch {
			f.handle(m)
		}
	}
}

func (f *fakeNode) reply(m wire.Msg) { f.c.Deliver([]wire.Msg{m}) }

func (f *fakeNode) handle(m wire.Msg) {
	switch m := m.(type) {
	case *wire.Submit:
		f.submit(m.Spec)
	case *wire.PutValue:
		f.resolve(m.ID, wire.Result{Kind: wire.ResultInline, Value: m.Value, Size: uint64(len(m.Value.Data))})
	case *wire.Create:
		f.mu.Lock()
		f.next += 1 << 20
		f.bytes[f.next] = make([]byte, m.Size)
		f.granted[m.ID] = f.next
		off := f.next
		f.mu.Unlock()
		f.reply(&wire.Created{Req: m.Req, ID: m.ID, Extent: wire.Extent{Off: off, Size: m.Size}})
	case *wire.Seal:
		f.resolve(m.ID, wire.Result{Kind: wire.ResultStored, Value: m.Value, Size: m.Size})
	case *wire.Get:
		f.get(m)
	case *wire.AddRef:
		f.mu.Lock()
		f.held[m.ID]++
		f.mu.Unlock()
	case *wire.Release:
		f.mu.Lock()
		for _, id := range m.IDs {
			delete(f.held, id)
		}
		f.mu.Unlock()
	case *wire.Cancel:
		f.mu.Lock()
		cancel := f.cancels[m.Task]
		f.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case *wire.KillActor:
		f.mu.Lock()
		if a := f.actors[m.Actor]; a != nil {
			a.dead = true
		}
		f.mu.Unlock()
	case *wire.StreamNext:
		f.streamNext(m)
	case *wire.Request:
		f.request(m)
	}
}

func (f *fakeNode) get(m *wire.Get) {
	f.await(m.ID, func(r wire.Result) {
		out := &wire.Resolved{ID: m.ID, Fetch: m.Fetch, Result: r}
		if m.Fetch && r.Kind == wire.ResultStored {
			f.mu.Lock()
			out.Extent = wire.Extent{Off: f.granted[m.ID], Size: r.Size}
			f.mu.Unlock()
		}
		f.reply(out)
	})
}

// await calls back, now or later, without the lock.
func (f *fakeNode) await(id ids.ObjectID, call func(wire.Result)) {
	f.mu.Lock()
	r, ok := f.objects[id]
	if !ok {
		f.waiting[id] = append(f.waiting[id], call)
	}
	f.mu.Unlock()
	if ok {
		call(r)
	}
}

func (f *fakeNode) resolve(id ids.ObjectID, r wire.Result) {
	f.mu.Lock()
	if _, dup := f.objects[id]; !dup {
		f.objects[id] = r
	}
	calls := f.waiting[id]
	delete(f.waiting, id)
	f.mu.Unlock()
	for _, call := range calls {
		call(r)
	}
}

func failed(err error) wire.Result {
	return wire.Result{Kind: wire.ResultError, Err: errs.From(err)}
}

func (f *fakeNode) fail(spec *wire.TaskSpec, err error) {
	if spec.Opts.NumReturns == wire.Streaming {
		r := failed(err)
		f.endStream(spec.ID, &r)
	}
	for i := range spec.Opts.NumReturns {
		f.resolve(spec.ID.Return(int(i)), failed(err))
	}
}

func (f *fakeNode) submit(spec *wire.TaskSpec) {
	f.mu.Lock()
	f.specs = append(f.specs, spec)
	ctx, cancel := context.WithCancel(context.Background())
	f.cancels[spec.ID] = cancel
	switch spec.Kind {
	case wire.TaskActorCreate:
		if name := spec.Opts.ActorName; name != "" {
			if old, taken := f.names[name]; taken {
				f.mu.Unlock()
				if spec.Opts.GetIfExists {
					f.resolve(spec.ID.Return(0), wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: old[:]}})
				} else {
					f.fail(spec, errs.New(errs.CodeNameTaken, "actor name %q", name))
				}
				return
			}
			f.names[name] = spec.Actor
		}
		f.actors[spec.Actor] = &fakeActor{calls: make(chan func(), 1<<12)}
	case wire.TaskActorCall:
		if a := f.actors[spec.Actor]; a == nil || a.dead {
			f.mu.Unlock()
			f.fail(spec, errs.New(errs.CodeActorDied, "actor %v", spec.Actor))
			return
		}
	}
	if spec.Opts.NumReturns == wire.Streaming {
		f.streams[spec.ID] = &fakeStream{}
	}
	f.mu.Unlock()
	inputs := make([]registry.Input, len(spec.Args))
	left := 1
	var mu sync.Mutex
	var bad error
	arrived := func() {
		mu.Lock()
		left--
		run, err := left == 0, bad
		mu.Unlock()
		if run {
			if err != nil {
				f.fail(spec, err)
				return
			}
			f.start(ctx, spec, inputs)
		}
	}
	for i := range spec.Args {
		if spec.Args[i].Ref.IsZero() {
			inputs[i].Value = spec.Args[i].Value
			continue
		}
		mu.Lock()
		left++
		mu.Unlock()
		f.await(spec.Args[i].Ref, func(r wire.Result) {
			mu.Lock()
			switch r.Kind {
			case wire.ResultError:
				bad = r.Err
			case wire.ResultStored:
				f.mu.Lock()
				inputs[i].Value = wire.Value{Meta: r.Value.Meta, Data: f.bytes[f.granted[spec.Args[i].Ref]], Refs: r.Value.Refs}
				f.mu.Unlock()
				inputs[i].Release = func() {}
			default:
				inputs[i].Value = r.Value
			}
			mu.Unlock()
			arrived()
		})
	}
	arrived()
}

func (f *fakeNode) start(ctx context.Context, spec *wire.TaskSpec, inputs []registry.Input) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch spec.Kind {
	case wire.TaskNormal:
		f.work.Go(func() { f.run(ctx, spec, inputs, nil) })
	case wire.TaskActorCreate:
		a := f.actors[spec.Actor]
		f.work.Go(func() {
			f.run(ctx, spec, inputs, a)
			for call := range a.calls {
				call()
			}
		})
	case wire.TaskActorCall:
		a := f.actors[spec.Actor]
		a.calls <- func() { f.run(ctx, spec, inputs, a) }
	}
}

func (f *fakeNode) run(ctx context.Context, spec *wire.TaskSpec, inputs []registry.Input, a *fakeActor) {
	if ctx.Err() != nil {
		f.fail(spec, errs.New(errs.CodeCancelled, "task %v", spec.ID))
		return
	}
	if spec.Deadline != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, time.Unix(0, spec.Deadline))
		defer cancel()
	}
	fn, ok := registry.Lookup(spec.Opts.Func)
	if !ok {
		f.fail(spec, errs.New(errs.CodeUnknownFunction, "%s", spec.Opts.Func))
		return
	}
	call := &registry.Call{Inputs: inputs}
	if fn.Method {
		call.Instance = a.self
	}
	i := 0
	call.Emit = func(o registry.Output) error {
		f.emit(spec.ID, f.store(spec.ID.Return(i), o))
		i++
		return ctx.Err()
	}
	tc := &client.TaskContext{Client: f.c, Task: spec.ID, Spec: spec}
	outs, self, err := f.invoke(client.WithTask(ctx, tc), fn, call)
	if err != nil {
		if ctx.Err() != nil {
			err = errs.New(errs.CodeCancelled, "task %v", spec.ID)
		} else if e := errs.From(err); e.Code == errs.CodeUnknown || e.Code == errs.CodeUser || len(e.Cause) > 0 {
			err = &errs.Error{Code: errs.CodeTaskFailed, Name: fn.Name, Msg: err.Error(), Cause: []*errs.Error{e}}
		}
		f.fail(spec, err)
		return
	}
	if a != nil && !fn.Method {
		a.self = self
	}
	if spec.Opts.NumReturns == wire.Streaming {
		f.endStream(spec.ID, &wire.Result{})
	}
	for i, o := range outs {
		f.resolve(spec.ID.Return(i), f.store(spec.ID.Return(i), o))
	}
}

func (f *fakeNode) invoke(ctx context.Context, fn *registry.Function, call *registry.Call) (outs []registry.Output, self any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &errs.Error{Code: errs.CodeTaskFailed, Name: fn.Name, Msg: fmt.Sprint(r), Stack: string(debug.Stack()), Cause: []*errs.Error{errs.New(errs.CodePanic, "%v", r)}}
		}
	}()
	return fn.Invoke(ctx, call)
}

func (f *fakeNode) store(id ids.ObjectID, o registry.Output) wire.Result {
	v := wire.Value{Meta: o.Meta, Data: o.Inline, Refs: o.Refs}
	switch {
	case o.Buffer != nil:
		if err := o.Buffer.SealReturn(o.Meta, o.Refs); err != nil {
			return failed(err)
		}
		return wire.Result{Kind: wire.ResultStored, Value: wire.Value{Meta: o.Meta}, Size: uint64(o.Size)}
	case o.Fill != nil || o.Size > wire.InlineMax:
		data := make([]byte, o.Size)
		if o.Fill != nil {
			o.Fill(data)
		} else {
			copy(data, o.Inline)
		}
		f.mu.Lock()
		f.next += 1 << 20
		f.bytes[f.next], f.granted[id] = data, f.next
		f.mu.Unlock()
		return wire.Result{Kind: wire.ResultStored, Value: wire.Value{Meta: o.Meta, Refs: o.Refs}, Size: uint64(o.Size)}
	}
	return wire.Result{Kind: wire.ResultInline, Value: v, Size: uint64(o.Size)}
}

func (f *fakeNode) emit(task ids.TaskID, r wire.Result) {
	f.mu.Lock()
	s := f.streams[task]
	f.resolveLocked(task.Return(len(s.items)), r)
	s.items = append(s.items, r)
	f.mu.Unlock()
	f.serveStream(task)
}

func (f *fakeNode) resolveLocked(id ids.ObjectID, r wire.Result) { f.objects[id] = r }

func (f *fakeNode) endStream(task ids.TaskID, end *wire.Result) {
	f.mu.Lock()
	f.streams[task].end = end
	f.mu.Unlock()
	f.serveStream(task)
}

func (f *fakeNode) streamNext(m *wire.StreamNext) {
	f.mu.Lock()
	s := f.streams[m.Task]
	s.asked = append(s.asked, m.Index)
	f.mu.Unlock()
	f.serveStream(m.Task)
}

func (f *fakeNode) serveStream(task ids.TaskID) {
	f.mu.Lock()
	s := f.streams[task]
	var out []wire.Msg
	var rest []uint32
	for _, i := range s.asked {
		switch {
		case int(i) < len(s.items):
			out = append(out, &wire.StreamItem{Task: task, Index: i, Result: s.items[i]})
		case s.end != nil:
			out = append(out, &wire.StreamItem{Task: task, Index: i, Result: *s.end})
		default:
			rest = append(rest, i)
		}
	}
	s.asked = rest
	f.mu.Unlock()
	f.c.Deliver(out)
}

func (f *fakeNode) request(m *wire.Request) {
	out := &wire.Reply{Req: m.Req}
	var q state.ActorRequest
	if err := cbor.Unmarshal(m.Body, &q); err != nil {
		out.Err = errs.From(err)
	} else if f.mu.Lock(); m.Method == state.MethodActorGet {
		if id, ok := f.names[q.Name]; ok {
			out.Body, _ = cbor.Marshal(state.ActorReply{Actor: id[:]})
		} else {
			out.Err = errs.New(errs.CodeNotFound, "no actor %q", q.Name)
		}
		f.mu.Unlock()
	} else {
		f.mu.Unlock()
		out.Err = errs.New(errs.CodeNotFound, "no method %q", m.Method)
	}
	f.reply(out)
}
