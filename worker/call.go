package worker

import (
	"context"
	"runtime/debug"
	"sync/atomic"

	"mobula/internal/client"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// call is one attempt at a task while it runs. User code may keep its context, so it is
// never used again.
type call struct {
	ctx taskCtx
	tc  client.TaskContext
	*tracked
}

// tracked is what its owner is told of a call. One that went straight has none, since it is not the owner's.
type tracked struct {
	lane      *lane
	lease     ids.LeaseID
	received  int64
	started   atomic.Int64 // read when the call is abandoned
	abandoned bool         // guarded by lane.mu
	borrowed  bool         // the reader's goroutine runs it
	block     blocking
}

// newCall makes a call of the owner's.
func newCall(l *lane, lease ids.LeaseID, received int64, borrowed bool) *call {
	c := new(struct {
		call    call
		tracked tracked
	})
	c.tracked.lane, c.tracked.lease, c.tracked.received, c.tracked.borrowed = l, lease, received, borrowed
	c.call.tracked = &c.tracked
	return &c.call
}

func (cl *call) id() ids.TaskID { return cl.tc.Task }

// runner is a goroutine of a lane, with the memory that it reuses between tasks.
type runner struct {
	lane     *lane
	call     *call // the one under way
	task     wire.ExecTask
	borrows  bool          // the reader's goroutine runs it
	straight talk.Straight // the call came so; nil: by the owner
	gone     bool          // its call was abandoned: another runner took its place
	now      int64         // when the last call ended; 0: not known

	opts   *wire.TaskOptions // options of the last task, and its function
	fn     *registry.Function
	arg    registry.Call
	inputs []registry.Input
	args   loans
	reads  []client.Data    // stored arguments of a call that went straight
	report wire.Done        // of a call that went straight
	made   []*client.Buffer // buffers granted and not sealed
}

func newRunner(l *lane) *runner { return &runner{lane: l} }

// run takes tasks until the lane has had none for some time. A function that calls runtime.Goexit ends the
// goroutine: another takes its place.
func (r *runner) run() {
	clean := false
	defer func() {
		if !clean && !r.gone {
			next := newRunner(r.lane)
			if !r.lane.e.spawn(next.run) {
				r.lane.mu.Lock()
				r.lane.runners--
				r.lane.mu.Unlock()
			}
		}
	}()
	for r.lane.next(r) {
		r.execute()
	}
	clean = true
}

// begin makes the call of the next task. The lane's mu is held.
func (r *runner) begin(it *item) {
	cl := newCall(r.lane, it.lease, it.received, r.borrows)
	cl.tc.Client, cl.tc.Task, cl.tc.Attempt = r.lane.e.c, it.t.Spec.ID, it.t.Attempt
	cl.tc.Trace, cl.tc.Spec = it.t.Spec.Trace, it.t.Spec
	cl.tc.Blocker, cl.tc.Unneeded = cl, it.unneeded
	cl.ctx.cfg, cl.ctx.tc = &r.lane.e.cfg, &cl.tc
	cl.ctx.deadline = it.t.Spec.Deadline
	cl.tc.Own = &cl.ctx
	r.call, r.task = cl, it.t
}

// report is a Done with room for a single result: one allocation.
type report struct {
	d wire.Done
	r [1]wire.Result
}

// execute runs the task in hand and hands its report to the lane.
func (r *runner) execute() {
	e, cl := r.lane.e, r.call
	if r.now < cl.received { // the runner was idle, so this call did not begin when the last one ended
		r.now = e.cfg.Now()
	}
	cl.started.Store(r.now)
	rep := new(report)
	d := &rep.d
	d.Task, d.Attempt, d.Lease = cl.id(), cl.tc.Attempt, cl.lease
	e.running.Add(1)
	var keep any
	normal := false
	defer func() {
		if normal {
			return
		}
		d.Results, d.Items = nil, 0
		p := recover()
		d.Err = r.crashed(p)
		a, first := r.lane.actor, false
		if a != nil {
			d.Broke, first = a.breaks(d.Err)
		}
		err := d.Err
		r.logUnheard(err)
		r.finish(d, p)
		if first {
			e.giveUp(a, err, p)
		}
	}()
	// A write to read-only memory fails this task, and not the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	keep = r.invoke(d, &rep.r)
	normal = true
	r.finish(d, keep)
}

// finish ends the call, however it ended.
func (r *runner) finish(d *wire.Done, keep any) {
	r.tidy(d)
	r.lane.e.running.Add(-1)
	if !r.lane.ended(r.call, d, keep) {
		r.gone = true
	}
	r.call = nil
}

// tidy lets go of what the call had, and completes its report.
func (r *runner) tidy(d *wire.Done) {
	e, cl := r.lane.e, r.call
	if d.Err != nil {
		for _, b := range r.made {
			b.Abort()
		}
	}
	clear(r.made)
	r.made = r.made[:0]
	r.args.giveBack()
	for _, d := range r.reads {
		d.Release()
	}
	clear(r.reads)
	r.reads = r.reads[:0]
	clear(r.inputs)
	r.inputs = r.inputs[:0]
	r.arg = registry.Call{}
	r.task = wire.ExecTask{}
	cl.ctx.end()
	if d.Err != nil && d.Err.Task == "" {
		d.Err.Task = cl.id().String()
	}
	if cl.tc.Blocker == nil { // it went straight
		return
	}
	r.now = e.cfg.Now()
	d.Times = wire.Times{Received: cl.received, Started: cl.started.Load(), Ended: r.now}
	cl.block.over(cl)
}

// invoke looks up the function, maps the arguments, calls the function and fills the report; one is room for a single result. It returns what
// must be kept until the report is sent.
func (r *runner) invoke(d *wire.Done, one *[1]wire.Result) (keep any) {
	e, cl, spec := r.lane.e, r.call, r.task.Spec
	fn, werr := r.function(spec)
	if werr == nil {
		werr = r.prepare(spec, fn)
	}
	if werr == nil {
		werr = r.arguments(spec)
	}
	if werr != nil {
		e.abandonCreation(spec, werr)
		d.Err = werr
		return nil
	}
	var ctx context.Context = &cl.ctx
	var after func(error)
	if e.cfg.Context != nil {
		ctx, after = e.cfg.Context(ctx, spec, cl.tc.Attempt)
	}
	if spec.Opts.NumReturns == wire.Streaming {
		s := e.openStream(r.lane, cl, spec)
		defer e.closeStream(s)
		r.arg.Emit = s.emit
		defer func() { d.Items = s.count() }()
	}
	r.arg.Inputs, r.arg.Drops = r.inputs, spec.Opts.NumReturns == 0 && spec.Kind == wire.TaskActorCall
	outs, instance, err := r.enter(ctx, fn)
	switch {
	case err != nil:
	case spec.Opts.NumReturns != wire.Streaming:
		d.Results, keep, err = r.results(ctx, one, outs)
	case len(outs) > 0:
		err = errs.New(errs.CodeRegistryMismatch, "%s: called as a stream, this binary has it as a function of %d results", fn.Name, len(outs))
	}
	if err == nil && spec.Kind == wire.TaskActorCreate {
		err = e.actorMade(spec, instance)
	} else if err != nil {
		e.abandonCreation(spec, errs.From(err).Bare())
	}
	if after != nil {
		after(err)
	}
	if err != nil {
		d.Results = nil
		d.Err, keep = r.failed(err), err
		r.logUnheard(d.Err)
	}
	return keep
}

// prepare sets everything of the call but its arguments, and refuses one past its deadline.
func (r *runner) prepare(spec *wire.TaskSpec, fn *registry.Function) *errs.Error {
	cl := r.call
	if cause := cl.ctx.cause(); cause != nil { // cancelled before it ran
		own := *errs.From(cause) // which calls that were cancelled together share
		return &own
	}
	if fn.Kind != spec.Kind {
		return errs.New(errs.CodeRegistryMismatch, "function %q is registered as another kind here (%d) than in the caller (%d): run the same binary everywhere", fn.Name, fn.Kind, spec.Kind)
	}
	if spec.Deadline != 0 && r.now >= spec.Deadline {
		return errs.New(errs.CodeDeadline, "the task's deadline passed before it started")
	}
	if a := r.lane.actor; a != nil {
		r.arg.Instance, cl.tc.Hosted = a.instance, a.at
	} else if spec.Kind == wire.TaskActorCreate {
		cl.tc.Hosted = r.lane.e.instanceOf(ids.ActorID(spec.ID))
	}
	return nil
}
