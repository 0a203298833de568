package run

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fxamacker/cbor/v2"

	"mobula/actors"
	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/inbox"
	"mobula/internal/registry"
	"mobula/telemetry"
	"mobula/wire"
)

// Capacity is what a node has for graphs.
type Capacity struct {
	Threads int   // slots
	Memory  int64 // bytes of results that it may hold before root tasks wait; 0: not said
	Limit   int64 // bytes that its processes and its store may take together; 0: no limit
}

// Host is the node that graphs run on.
type Host struct {
	Capacity
	Parent actors.Parent // of the graphs' actors
	Heaps  func() int64  // what the node's processes take, in bytes; asked where there is a Limit

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

// heapsInterval is how often a graph looks at what heaps take.
const heapsInterval = 50 * time.Millisecond

// Function is the function under Func.
func (h *Host) Function() *registry.Function {
	return &registry.Function{Name: Func, Invoke: h.invoke}
}

func (h *Host) invoke(ctx context.Context, call *registry.Call) ([]registry.Output, any, error) {
	tc := client.FromContext(ctx)
	if tc == nil || tc.Spec == nil || len(call.Inputs) != 2 {
		return nil, nil, errs.New(errs.CodeInvalid, "%s takes a request and a value with references, and got %d arguments", Func, len(call.Inputs))
	}
	if tc.Blocker != nil {
		tc.Blocker.Blocked(ctx, nil) // it needs no slot, and nothing is to wait behind it
	}
	w, err := parse(call.Inputs[0].Value.Data)
	if call.Inputs[0].Release != nil {
		call.Inputs[0].Release()
	}
	if err != nil {
		return nil, nil, err
	}
	refs := call.Inputs[1].Value.Refs
	if len(refs) < w.nblobs+w.nouter {
		return nil, nil, invalid("%d references came, for %d blobs and %d outer objects", len(refs), w.nblobs, w.nouter)
	}
	r := &runner{
		name: fmt.Sprintf("graph/%d", h.number.Add(1)), started: time.Now(),
		h: h, w: w, c: tc.Client, parent: tc.Task, trace: traceOf(tc), emit: call.Emit, ctx: ctx, ledger: newLedger(w.graph.Len()),
		watch: tc.Client.NewWatcher(), unneeded: tc.Unneeded, outer: refs[w.nblobs:], done: make(chan struct{}),
		seceded: make(chan seceded), gone: make(chan struct{}),
		blobs: blobs{c: tc.Client, ids: refs[:w.nblobs]}, opts: newOptions(w),
	}
	h.enter(r)
	defer h.leave(r)
	if err := r.run(); err != nil || w.Events {
		return nil, nil, err
	}
	sum, err := cbor.Marshal(r.summary)
	return []registry.Output{{Meta: bytesMeta, Size: len(sum), Inline: sum}}, nil, err
}

// traceOf is the trace of what a task submits.
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
	w        *work
	c        *client.Client
	parent   ids.TaskID
	trace    wire.TraceContext // of its tasks: the graph's run is their parent
	emit     func(registry.Output) error
	ctx      context.Context
	ledger   *ledger
	watch    *client.Watcher
	unneeded *inbox.Inbox[uint32]
	outer    []ids.ObjectID
	blobs    blobs
	opts     *options

	seceded chan seceded
	gone    chan struct{} // closed when nobody takes them any more

	indexing sync.Once
	index    map[ids.TaskID]int32 // of tasks, by id; made when it is asked for

	// Written before done is closed.
	done    chan struct{}
	err     error
	summary *Summary
	over    bool
}

func (r *runner) run() error {
	defer close(r.gone)
	defer r.ledger.releaseAll()
	defer r.blobs.close()
	ref, err := actors.Spawn(r.h.Parent, actors.Spec[event, effect]{
		Kind: "graph", Name: r.name,
		New: func(actors.Start) (actors.Core[event, effect], []event, error) {
			c, err := newCore(r.w, r.ledger, r.h.Capacity)
			if r.h.Limit > 0 {
				return c, []event{heaps{r.h.Heaps()}, begin{}}, err
			}
			return c, []event{begin{}}, err
		},
		Do: r.do,
		OnPoison: func(_ *actors.Ref[event], _ event, err error) {
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
func (r *runner) feed(ref *actors.Ref[event]) error {
	var look <-chan time.Time
	if r.h.Limit > 0 {
		t := time.NewTicker(heapsInterval)
		defer t.Stop()
		look = t.C
	}
	for {
		select {
		case <-look:
			if err := ref.Send(r.ctx, heaps{r.h.Heaps()}); err != nil {
				return err
			}
		case <-r.watch.Ready():
			if err := ref.Send(r.ctx, resolved{r.watch.Take(nil)}); err != nil {
				return err
			}
		case ev := <-r.seceded:
			if err := ref.Send(r.ctx, ev); err != nil {
				return err
			}
		case <-r.unneeded.Ready():
			if err := ref.Send(r.ctx, unneeded{r.unneeded.Take()}); err != nil {
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

func (r *runner) end(err error) {
	if !r.over {
		r.over, r.err = true, err
		close(r.done)
	}
}

// cancelAll cancels what is under way: nobody will take it.
func (r *runner) cancelAll() {
	for t := range r.ledger.tasks {
		if r.ledger.tasks[t].state == sent {
			r.c.Abandon(r.id(int32(t)))
		}
	}
}

func (r *runner) id(t int32) ids.TaskID { return ids.Derive(r.parent, uint64(t)+1) }

func (r *runner) do(self *actors.Ref[event], e effect) {
	switch e := e.(type) {
	case submit:
		if err := r.submit(e.task); err != nil {
			self.Deliver(refused{e.task, err})
		}
	case release:
		r.ledger.release(e.task)
	case releasePart:
		r.ledger.releasePart(e.task, e.part)
	case withdraw:
		r.watch.Forget(int(e.task))
		r.c.Abandon(r.id(e.task))
		r.ledger.release(e.task)
	case pass:
		r.pass(e.chain)
	case tell:
		r.summary = e.Summary
		if !r.w.Events {
			return
		}
		if err := r.tell(&e.Event); err != nil {
			r.end(err)
		}
	case over:
		r.end(nil)
	}
}

func (r *runner) tell(ev *Event) error {
	b, err := cbor.Marshal(ev)
	if err != nil {
		return err
	}
	return r.emit(registry.Output{Meta: bytesMeta, Size: len(b), Inline: b})
}
