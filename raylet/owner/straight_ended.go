package owner

import (
	"time"

	"mobula/internal/errs"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// This file is what the owner is told of calls that have ended elsewhere: it counts them among its own, and passes on what is recorded of some.

// callsEnded takes what has become of calls of which the owner was not told before.
func (st *straight) callsEnded(m *wire.EndedCalls) {
	for i := range m.Counts {
		n := &m.Counts[i]
		st.stats.Retried += n.Retried
		st.callsCame(n.Opts, task.Finished, n.Finished)
		st.callsCame(n.Opts, task.Failed, n.Failed)
		st.callsCame(n.Opts, task.Cancelled, n.Cancelled)
	}
	for i := range m.Calls {
		st.callEnded(&m.Calls[i])
	}
}

// callsCame counts calls of which only the number is known.
func (st *straight) callsCame(opts *wire.TaskOptions, to task.State, n uint64) {
	if n == 0 {
		return
	}
	st.countEnded(to, n)
	if st.cfg.Transitions {
		spec := &wire.TaskSpec{Kind: wire.TaskActorCall, Opts: opts}
		st.changes = append(st.changes, Transition{Spec: spec, State: to, At: st.now, Count: n})
	}
}

func (st *straight) countEnded(to task.State, n uint64) {
	st.stats.Submitted += n
	switch to {
	case task.Finished:
		st.stats.Finished += n
	case task.Cancelled:
		st.stats.Cancelled += n
	default:
		st.stats.Failed += n
	}
}

// callEnded counts a call, and tells what has become of it.
func (st *straight) callEnded(k *wire.EndedCall) {
	to := task.Finished
	switch {
	case k.Err == nil:
	case k.Err.Code == errs.CodeCancelled:
		to = task.Cancelled
	default:
		to = task.Failed
	}
	st.countEnded(to, 1)
	if !st.cfg.Transitions {
		return
	}
	ch := Transition{Spec: k.Spec, State: task.PendingActor, At: k.At}
	if k.Spec.Submitted != 0 {
		ch.At = k.Spec.Submitted
	}
	st.changes = append(st.changes, ch)
	if k.Ran != nil { // when it was sent nobody has noted: at once, most likely
		ch.State, ch.Attempt, ch.Worker, ch.Lease = task.Submitted, uint32(k.Tries)+1, k.Ran.Worker, k.Ran.Lease
		st.changes = append(st.changes, ch, ranAs(k.Spec, ch.Attempt, k.Ran))
	}
	ch.Took = time.Duration(-1)
	if k.Spec.Submitted != 0 {
		ch.Took = max(0, time.Duration(k.At-k.Spec.Submitted))
	}
	ch.State, ch.At, ch.Reason = to, k.At, k.Err
	st.changes = append(st.changes, ch)
}

// ranAs tells telemetry of a run.
func ranAs(spec *wire.TaskSpec, attempt uint32, r *wire.Run) Transition {
	return Transition{Spec: spec, State: task.Running, Attempt: attempt, Worker: r.Worker, Lease: r.Lease, At: r.Times.Started, Times: &r.Times}
}

// elsewhere says of a change of a call that another process has what the owner does not see: it waits for its actor, if its process does not know better, and has done so
// since it was made.
func (ch *Transition) elsewhere(t *taskRec) {
	if ch.State != task.PendingArgs {
		ch.Attempt = t.tries + 1
		return
	}
	ch.State, ch.Attempt = task.PendingActor, 0
	if t.spec.Submitted != 0 {
		ch.At = t.spec.Submitted
	}
}
