package shell

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fxamacker/cbor/v2"

	"mobula/actors"
	"mobula/graph/run"
	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/inbox"
	"mobula/internal/registry"
	"mobula/telemetry"
	"mobula/wire"
)

// Host runs graphs on a node.
type Host struct {
	Capacity func() run.Capacity // changes as nodes come and go
	Limit    int64               // bytes that the node's processes and its store may take together; 0: no limit
	Parent   actors.Parent       // parent of the graphs' actors
	Heaps    func() int64        // bytes that the node's processes take; called only if there is a Limit

	number atomic.Uint64

	mu      sync.Mutex
	running map[*runner]struct{} // guarded by mu
}

func (h *Host) enter(r *runner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil {
		h.running = make(map[*runner]struct{})
	}
	h.running[r] = struct{}{}
}

func (h *Host) leave(r *runner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.running, r)
}

// How often a graph reads Heaps, and Capacity.
const (
	heapsInterval    = 50 * time.Millisecond
	capacityInterval = time.Second
)

// Function is the function under run.Func.
func (h *Host) Function() *registry.Function {
	return &registry.Function{Name: run.Func, Invoke: h.invoke}
}

func (h *Host) invoke(ctx context.Context, call *registry.Call) ([]registry.Output, any, error) {
	tc := client.FromContext(ctx)
	if tc == nil || tc.Spec == nil || len(call.Inputs) != 2 {
		return nil, nil, errs.New(errs.CodeInvalid, "%s takes a request and a value with references, and got %d arguments", run.Func, len(call.Inputs))
	}
	if tc.Blocker != nil {
		tc.Blocker.Blocked(ctx, nil) // it needs no slot, and nothing should wait behind it
	}
	w, err := parse(call.Inputs[0].Value.Data)
	if call.Inputs[0].Release != nil {
		call.Inputs[0].Release()
	}
	if err != nil {
		return nil, nil, err
	}
	refs := call.Inputs[1].Value.Refs
	if len(refs) < w.BlobCount()+w.OuterCount() {
		return nil, nil, errs.New(errs.CodeInvalid, "graph: %d references came, for %d blobs and %d outer objects", len(refs), w.BlobCount(), w.OuterCount())
	}
	r := &runner{
		name: fmt.Sprintf("graph/%d", h.number.Add(1)), started: time.Now(),
		h: h, w: w, c: tc.Client, parent: tc.Task, trace: traceOf(tc), emit: call.Emit, ctx: ctx, ledger: run.NewLedger(w.Len()), handles: make([][]*client.Handle, w.Len()),
		watch: tc.Client.NewWatcher(), unneeded: tc.Unneeded, outer: refs[w.BlobCount():], done: make(chan struct{}),
		seceded: make(chan run.Seceded), gone: make(chan struct{}),
		blobs: blobs{c: tc.Client, ids: refs[:w.BlobCount()]}, opts: run.NewOptions(w),
	}
	h.enter(r)
	defer h.leave(r)
	if err := r.run(); err != nil || w.Events {
		return nil, nil, err
	}
	sum, err := cbor.Marshal(r.summary)
	return []registry.Output{{Meta: bytesMeta, Size: len(sum), Inline: sum}}, nil, err
}

// traceOf is the trace of tasks that a task submits.
func traceOf(tc *client.TaskContext) wire.TraceContext {
	if tc.Spec.Trace.Sampled() {
		return telemetry.Run(tc.Spec, tc.Attempt)
	}
	return tc.Spec.Trace
}

// runner is the shell of one graph.
type runner struct {
	name    string // of its actor
	started time.Time

	h        *Host
	w        *run.Work
	c        *client.Client
	parent   ids.TaskID
	trace    wire.TraceContext // of its tasks; the graph's run is their parent
	emit     func(registry.Output) error
	ctx      context.Context
	ledger   *run.Ledger
	handles  [][]*client.Handle // of each task's results; nil: not submitted, or released
	gauges   gauges
	watch    *client.Watcher
	unneeded *inbox.Inbox[uint32]
	outer    []ids.ObjectID
	blobs    blobs
	opts     *run.Options

	seceded chan run.Seceded
	gone    chan struct{} // closed when nobody takes events any more

	indexing sync.Once
	index    map[ids.TaskID]int32 // tasks by id; made on first use

	// Written before done is closed.
	done    chan struct{}
	err     error
	summary *run.Summary
	over    bool
}

func (r *runner) run() error {
	defer close(r.gone)
	defer r.releaseAll()
	defer r.blobs.close()
	ref, err := actors.Spawn(r.h.Parent, actors.Spec[run.Event, run.Effect]{
		Kind: "graph", Name: r.name,
		New: func(actors.Start) (actors.Core[run.Event, run.Effect], []run.Event, error) {
			c, err := run.NewCore(r.w, r.ledger, r.h.Capacity(), r.h.Limit)
			if err != nil {
				return nil, nil, err
			}
			first := []run.Event{run.Begin{}}
			if r.h.Limit > 0 {
				first = []run.Event{run.Heaps{Bytes: r.h.Heaps()}, run.Begin{}}
			}
			return counted{c, &r.gauges}, first, nil
		},
		Do: r.do,
		OnPoison: func(_ *actors.Ref[run.Event], _ run.Event, err error) {
			r.end(fmt.Errorf("the graph's scheduler failed twice on one event: %w", err))
		},
	})
	if err != nil {
		return err
	}
	err = r.feed(ref)
	stop, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), stopTimeout)
	defer cancel()
	if e := ref.Stop(stop); err == nil && e != nil {
		err = e
	}
	if err != nil {
		r.cancelAll()
	}
	return err
}

// feed passes results on until the graph has ended.
func (r *runner) feed(ref *actors.Ref[run.Event]) error {
	var look <-chan time.Time
	var watched []client.Watched
	var has run.Capacity // as it was told last
	count := time.NewTicker(capacityInterval)
	defer count.Stop()
	if r.h.Limit > 0 {
		t := time.NewTicker(heapsInterval)
		defer t.Stop()
		look = t.C
	}
	for {
		select {
		case <-look:
			if err := ref.Send(r.ctx, run.Heaps{Bytes: r.h.Heaps()}); err != nil {
				return err
			}
		case <-count.C:
			now := r.h.Capacity()
			if now == has {
				continue
			}
			has = now
			if err := ref.Send(r.ctx, run.Resized{Capacity: has}); err != nil {
				return err
			}
		case <-r.watch.Ready():
			watched = r.watch.Take(watched[:0])
			ev := resolved(watched)
			clear(watched) // do not keep the results
			if err := ref.Send(r.ctx, ev); err != nil {
				return err
			}
		case ev := <-r.seceded:
			if err := ref.Send(r.ctx, ev); err != nil {
				return err
			}
		case <-r.unneeded.Ready():
			if err := ref.Send(r.ctx, run.Unneeded{Promises: r.unneeded.Take()}); err != nil {
				return err
			}
		case <-r.done:
			return r.err
		case <-ref.Done():
			return errs.New(errs.CodeComponentFailed, "the graph's scheduler failed too often")
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case <-r.c.Done():
			return r.c.Err()
		}
	}
}

// resolved makes the core's event for results that are there.
func resolved(of []client.Watched) run.Resolved {
	out := make([]run.Result, len(of))
	for i, x := range of {
		out[i] = run.Result{Task: int32(x.Token), Result: x.Result}
	}
	return run.Resolved{Of: out}
}

// release gives up a task's results.
func (r *runner) release(t int32) {
	for _, h := range r.handles[t] {
		if h != nil {
			h.Release()
		}
	}
	r.handles[t] = nil
	r.ledger.Release(t)
}

func (r *runner) releaseAll() {
	for t := range int32(r.w.Len()) {
		r.release(t)
	}
}

func (r *runner) end(err error) {
	if !r.over {
		r.over, r.err = true, err
		close(r.done)
	}
}

// cancelAll cancels tasks under way: nobody will take their results.
func (r *runner) cancelAll() {
	for t := range int32(r.w.Len()) {
		if r.ledger.Outcome(t) == run.Sent {
			r.c.Abandon(r.id(t))
		}
	}
}

func (r *runner) id(t int32) ids.TaskID { return ids.Derive(r.parent, uint64(t)+1) }

func (r *runner) do(self *actors.Ref[run.Event], e run.Effect) {
	switch e := e.(type) {
	case run.Submit:
		if err := r.submit(e.Task); err != nil {
			self.Deliver(run.Refused{Task: e.Task, Err: r.refused(e.Task, err)})
		}
	case run.Release:
		r.release(e.Task)
	case run.ReleasePart:
		if hs := r.handles[e.Task]; int(e.Part) < len(hs) && hs[e.Part] != nil {
			hs[e.Part].Release()
			hs[e.Part] = nil
		}
	case run.Withdraw:
		r.watch.Forget(int(e.Task))
		r.c.Abandon(r.id(e.Task))
		r.release(e.Task)
	case run.Pass:
		r.pass(e.Chain)
	case run.Tell:
		r.summary = e.Summary
		if !r.w.Events {
			return
		}
		if err := r.tell(&e.StreamEvent); err != nil {
			r.end(err)
		}
	case run.Over:
		r.end(e.Err)
	}
}

func (r *runner) tell(ev *run.StreamEvent) error {
	b, err := cbor.Marshal(ev)
	if err != nil {
		return err
	}
	return r.emit(registry.Output{Meta: bytesMeta, Size: len(b), Inline: b})
}
