package worker

import (
	"runtime/debug"
	"slices"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
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
	one  [1]wire.Result
	room [16]byte // of a small result
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
		one, r.arg.Room = &ans.one, ans.room[:0]
	}
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
		if own == nil {
			r.call.tc.Ended()
		}
		if own != nil {
			f.Outcome = h.ownedRan(own, rep, keep)
		} else {
			h.shows(d, in, f)
			f.Outcome = ans.outcome(d, keep, h.ran(r))
		}
		r.call, r.straight, r.report = nil, nil, wire.Done{}
	}()
	debug.SetPanicOnFault(true) // a write to read-only memory fails this call, and not the process
	keep = r.invoke(d, one)
	normal = true
}

// task is what a call asks for.
func (h *hosted) task(in *direct.Incoming, own *owned) (wire.ExecTask, talk.Straight, *errs.Error) {
	if own != nil {
		return own.it.t, nil, nil
	}
	of := in.Payload
	if k, ok := of.(*shell.Call); ok {
		of = k.Own
	}
	if s, ok := of.(talk.Straight); ok {
		if spec := s.TaskSpec(); spec.Kind == wire.TaskActorCall {
			return wire.ExecTask{Spec: spec, Attempt: uint32(in.Tries) + 1, Args: s.Arguments()}, s, nil
		}
	}
	return wire.ExecTask{}, nil, errs.New(errs.CodeProtocol, "call %v has come straight to actor %v, and is none that can", in.ID, h.a.id)
}

// begin gives a call a runner. One that was interrupted already has a context that has ended.
func (h *hosted) begin(in *direct.Incoming, own *owned, t wire.ExecTask) *runner {
	var cl *call
	if own == nil {
		cl = h.newCall(in)
	} else {
		cl = newCall(h.lane, h.a.lease, own.it.received, false)
	}
	cl.tc.Client, cl.tc.Task, cl.tc.Attempt = h.e.c, t.Spec.ID, t.Attempt
	cl.tc.Trace, cl.tc.Spec, cl.tc.Once = t.Spec.Trace, t.Spec, h.once
	cl.ctx.cfg, cl.ctx.tc = &h.e.cfg, &cl.tc
	cl.ctx.deadline = t.Spec.Deadline
	cl.tc.Own = &cl.ctx
	var now int64
	cl.tc.Straight = own == nil
	if own != nil {
		cl.tc.Blocker, cl.tc.Unneeded = cl, own.it.unneeded
	}
	if own != nil || t.Spec.Deadline != 0 || t.Spec.Submitted != 0 {
		now = h.e.cfg.Now()
	}
	if own != nil {
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

// newCall makes a call that has come straight.
func (h *hosted) newCall(in *direct.Incoming) *call {
	if k, ok := in.Payload.(*shell.Call); ok && k.Bytes <= blockCost {
		return h.e.calls.next()
	}
	return new(call)
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

// shows has the owner hear of what references in results are before it hears of the caller's. Where that is in another process, it waits until owners have taken these, and
// stored results and the items of a stream too.
func (h *hosted) shows(d *wire.Done, in *direct.Incoming, f *direct.Finished) {
	refers := passesRefs(d)
	if refers {
		h.e.c.Uncork()
	}
	if _, far := in.Payload.(*farCall); !far {
		return
	}
	f.Holds = refers
	if !refers && d.Items == 0 && !slices.ContainsFunc(d.Results, func(r wire.Result) bool { return r.Kind == wire.ResultStored }) {
		return
	}
	var refs []ids.ObjectID
	if d.Err != nil {
		refs = d.Err.AllRefs()
	}
	for i := range d.Results {
		refs = append(refs, d.Results[i].Value.Refs...)
	}
	h.e.c.OwnersKnow(refs)
}

// passesRefs tells whether there are references in what a call has come to.
func passesRefs(d *wire.Done) bool {
	if d.Err != nil {
		return len(d.Err.AllRefs()) > 0
	}
	return slices.ContainsFunc(d.Results, func(r wire.Result) bool { return len(r.Value.Refs) > 0 })
}

// ran says when a call ran whose caller has noted when it made it; of others nobody takes the time.
func (h *hosted) ran(r *runner) *wire.Run {
	if r.call.tc.Spec.Submitted == 0 {
		return nil
	}
	return &wire.Run{Worker: h.e.c.ID(), Lease: h.a.lease, Times: wire.Times{Received: r.now, Started: r.now, Ended: h.e.cfg.Now()}}
}

// outcome is what is told of a call that went straight.
func (a *answer) outcome(d *wire.Done, keep any, ran *wire.Run) *direct.Outcome {
	if d.Err == nil && d.Results == nil && d.Items == 0 && keep == nil && ran == nil {
		return &nothing
	}
	if a == nil {
		a = new(answer)
	}
	a.Ran, a.Items = ran, d.Items
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

// Interrupt has the context of a call end: once what was said before is, since then the method goes on. Where that is asked for, what it has made is cancelled first: the
// owner knows whose that is as long as the method runs.
func (h *hosted) Interrupt(f direct.HostEffect) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in, wish := f.Call, f.Wish
	why := h.reason(in)
	for i := range h.runs {
		if r := &h.runs[i]; r.in == in {
			h.awaitLocked(&r.await)
			cl := r.cl
			h.orderLocked(order{then: func() {
				if wish.Recursive {
					h.e.c.CancelMade(&cl.tc, wish)
				}
				cl.ctx.cancel(why)
			}})
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
