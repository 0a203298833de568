package worker

import (
	"runtime/debug"
	"slices"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/wire"
)

// running is a call that a goroutine of a mailbox runs.
type running struct {
	in    *direct.Incoming
	cl    *call
	r     *runner
	owned bool // the owner has pushed it
	await bool // the instance is closed when it has ended
}

// early is why a call is interrupted that has not come to its goroutine yet.
type early struct {
	in    *direct.Incoming
	why   *errs.Error
	await bool
}

// answer is what a call that went straight has come to: one allocation, where it has a single result.
type answer struct {
	out direct.Outcome
	talk.Answer
	one [1]wire.Result
}

// nothing is the outcome of all calls without a result.
var nothing direct.Outcome

// run runs a call, on a goroutine of the mailbox, as a lane runs a task.
func (h *hosted) run(in *direct.Incoming, f *direct.Finished) {
	own, _ := in.Payload.(*owned)
	t, s, err := h.task(in, own)
	if err != nil {
		f.Outcome = &direct.Outcome{Err: err}
		return
	}
	r := h.begin(in, own, t)
	r.straight = s
	d := &r.report
	var rep *report
	var ans *answer
	var one *[1]wire.Result
	switch {
	case own != nil:
		rep = new(report)
		d, one = &rep.d, &rep.r
		d.Task, d.Attempt, d.Lease = t.Spec.ID, t.Attempt, own.it.lease
	case t.Spec.Opts.NumReturns != 0:
		ans = new(answer)
		one = &ans.one
	}
	h.e.running.Add(1)
	var keep any
	normal := false
	defer func() {
		if !normal {
			p := recover()
			d.Results, d.Items = nil, 0
			d.Err, keep = r.crashed(p), p
			r.logUnheard(d.Err)
			d.Broke, _ = h.a.breaks(d.Err)
		}
		f.Panicked = d.Broke
		r.tidy(d)
		if own != nil {
			f.Outcome = h.ownedRan(own, rep, keep)
		} else {
			f.Outcome = ans.outcome(d, keep, h.ran(r.call))
		}
		r.call, r.straight, r.report = nil, nil, wire.Done{}
	}()
	// A write to read-only memory fails this call, and not the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	keep = r.invoke(d, one)
	normal = true
}

// task is what a call asks for.
func (h *hosted) task(in *direct.Incoming, own *owned) (wire.ExecTask, talk.Straight, *errs.Error) {
	if own != nil {
		return own.it.t, nil, nil
	}
	if k, ok := in.Payload.(*shell.Call); ok {
		if s, ok := k.Own.(talk.Straight); ok {
			if spec := s.TaskSpec(); spec.Kind == wire.TaskActorCall && spec.Opts.NumReturns != wire.Streaming {
				return wire.ExecTask{Spec: spec, Attempt: uint32(in.Tries) + 1}, s, nil
			}
		}
	}
	return wire.ExecTask{}, nil, errs.New(errs.CodeProtocol, "call %v has come straight to actor %v, and is none that can", in.ID, h.a.id)
}

// begin gives a call a runner. One that was interrupted already has a context that has ended.
func (h *hosted) begin(in *direct.Incoming, own *owned, t wire.ExecTask) *runner {
	cl := &call{lane: h.lane, lease: h.a.lease}
	cl.tc.Client, cl.tc.Task, cl.tc.Attempt = h.e.c, t.Spec.ID, t.Attempt
	cl.tc.Trace, cl.tc.Spec, cl.tc.Once = t.Spec.Trace, t.Spec, h.once
	cl.ctx.cfg, cl.ctx.tc = &h.e.cfg, &cl.tc
	cl.ctx.deadline = t.Spec.Deadline
	cl.tc.Own = &cl.ctx
	var now int64
	if own != nil {
		cl.received = own.it.received
		cl.tc.Blocker, cl.tc.Unneeded = cl, own.it.unneeded
	}
	if own != nil || t.Spec.Deadline != 0 || t.Spec.Submitted != 0 {
		now = h.e.cfg.Now()
		cl.started.Store(max(now, cl.received))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	run := running{in: in, cl: cl, r: h.runnerLocked(), owned: own != nil}
	run.r.call, run.r.task, run.r.now = cl, t, now
	if i := slices.IndexFunc(h.early, func(x early) bool { return x.in == in }); i >= 0 {
		run.await = h.early[i].await
		cl.ctx.cancel(h.early[i].why)
		h.early = slices.Delete(h.early, i, i+1)
	}
	h.runs = append(h.runs, run)
	if own != nil {
		own.cl = cl
	}
	return run.r
}

// runnerLocked is a runner that has nothing to run. mu is held.
func (h *hosted) runnerLocked() *runner {
	n := len(h.spare)
	if n == 0 {
		return newRunner(h.lane)
	}
	r := h.spare[n-1]
	h.spare[n-1] = nil
	h.spare = h.spare[:n-1]
	return r
}

// ran says when a call ran whose caller has noted when it made it; of others nobody takes the time.
func (h *hosted) ran(cl *call) *talk.Ran {
	if cl.tc.Spec.Submitted == 0 {
		return nil
	}
	at := cl.started.Load()
	return &talk.Ran{Worker: h.e.c.ID(), Lease: h.a.lease, Times: wire.Times{Received: at, Started: at, Ended: h.e.cfg.Now()}}
}

// outcome is what is told of a call that went straight.
func (a *answer) outcome(d *wire.Done, keep any, ran *talk.Ran) *direct.Outcome {
	if d.Err == nil && d.Results == nil && keep == nil && ran == nil {
		return &nothing
	}
	if a == nil {
		a = new(answer)
	}
	a.Ran = ran
	if a.Results, a.Keep = d.Results, keep; keep != nil {
		a.Results = slices.Clone(d.Results) // who has a result does not keep that too
	}
	a.out = direct.Outcome{Value: &a.Answer, Err: d.Err}
	for i := range a.Results {
		v := &a.Results[i].Value
		a.out.Bytes += int64(len(v.Data) + len(v.Meta))
	}
	return &a.out
}

// Ran says that a call's Run is over, and its runner free.
func (h *hosted) Ran(in *direct.Incoming) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.runs {
		if h.runs[i].in != in {
			continue
		}
		if h.runs[i].await {
			h.awaited--
			h.settledLocked()
		}
		h.spare = append(h.spare, h.runs[i].r)
		last := len(h.runs) - 1
		h.runs[i] = h.runs[last]
		h.runs[last] = running{}
		h.runs = h.runs[:last]
		return
	}
}

// Interrupt has the context of a call end: once what was said before is, since then the method goes on.
func (h *hosted) Interrupt(in *direct.Incoming) {
	h.mu.Lock()
	defer h.mu.Unlock()
	why := h.reason(in)
	for i := range h.runs {
		if r := &h.runs[i]; r.in == in {
			h.awaitLocked(&r.await)
			cl := r.cl
			h.orderLocked(order{then: func() { cl.ctx.cancel(why) }})
			return
		}
	}
	x := early{in: in, why: why}
	h.awaitLocked(&x.await)
	h.early = append(h.early, x)
}

// awaitLocked has the instance closed only when a call has ended that the stop has interrupted. mu is held.
func (h *hosted) awaitLocked(await *bool) {
	if h.stopped && !*await {
		*await = true
		h.awaited++
	}
}

// reason is why a call is interrupted.
func (h *hosted) reason(in *direct.Incoming) *errs.Error {
	if h.why != nil {
		why := *h.why
		if h.closing {
			why.Task = in.ID.String()
		}
		return &why
	}
	if own, _ := in.Payload.(*owned); own == nil {
		if t, _, err := h.task(in, own); err == nil && t.Spec.Deadline != 0 && h.e.cfg.Now() >= t.Spec.Deadline {
			return &errs.Error{Code: errs.CodeDeadline, Msg: "the call's deadline passed while it ran", Task: in.ID.String()}
		}
	}
	return cancelled(in.ID)
}
