package inspect

import (
	"context"
	"fmt"

	"mobula/internal/direct"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/raylet/owner"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// Calls of actors that go past the owner of their job (decision 0038) are asked for where they are: in the processes that make them. In lists they are rows like those of
// tasks. What the owner was told of one is overruled by what its process says.

// callsOf are those of one job that have not ended.
type callsOf struct {
	views  []owner.TaskView
	at     map[ids.TaskID]*talk.Underway
	actors map[ids.ActorID]*owner.ActorView // that they are of, with them among what is pending
}

// underway asks the processes of a job, and its owner where their actors are.
func underway(ctx context.Context, n *Inspector, o *Owner) (out callsOf, err error) {
	all := n.node.Underway(o.Job)
	if len(all) == 0 {
		return out, nil
	}
	out.at = make(map[ids.TaskID]*talk.Underway, len(all))
	for i := range all {
		out.at[all[i].ID] = &all[i]
	}
	type known struct {
		actors map[ids.ActorID]*owner.ActorView
		born   map[ids.TaskID]int64
	}
	k, err := InOwner(ctx, o, func(c *owner.Core) known {
		k := known{map[ids.ActorID]*owner.ActorView{}, map[ids.TaskID]int64{}}
		for i := range all {
			id := all[i].Spec.Actor
			if _, asked := k.actors[id]; !asked {
				k.actors[id] = nil
				if v, ok := c.Actor(id); ok {
					k.actors[id] = &v
				}
			}
			if all[i].Known {
				if w, ok := c.WhyTask(all[i].ID); ok {
					k.born[all[i].ID] = w.Born
				}
			}
		}
		return k
	})
	if err != nil {
		return out, err
	}
	out.actors = k.actors
	for i := range all {
		u, a := &all[i], k.actors[all[i].Spec.Actor]
		countCall(a, u)
		v := callView(u, a)
		if born := k.born[u.ID]; born != 0 {
			v.Born = born
		}
		out.views = append(out.views, v)
	}
	return out, nil
}

// countCall adds a call that the owner does not count to its actor.
func countCall(a *owner.ActorView, u *talk.Underway) {
	if a == nil || u.Known {
		return
	}
	if a.Pending++; u.Place != direct.OnItsWay {
		a.Queued++
	}
}

// callState is a call's state, as one of the owner's would be shown that is where it is.
func callState(u *talk.Underway) task.State {
	switch {
	case u.Runs:
		return task.Running
	case u.Place == direct.OnItsWay:
		return task.Submitted
	case u.Place == direct.NeedsArg:
		return task.PendingArgs
	}
	return task.PendingActor
}

// callView is a call as lists show it. The time at which it was made is known of some; of the others their order.
func callView(u *talk.Underway, a *owner.ActorView) owner.TaskView {
	s := u.Spec
	v := owner.TaskView{ID: s.ID, Opts: s.Opts, Spec: s, Kind: s.Kind, State: callState(u), Attempt: uint32(u.Tries), Born: s.Submitted, Actor: s.Actor}
	if v.Born == 0 {
		v.Born = int64(u.Order)
	}
	if u.Place == direct.OnItsWay {
		v.Attempt++
		if v.Lease = u.To; a != nil {
			v.Worker = a.Worker
		}
	}
	if v.State != task.Running {
		v.Since = s.Submitted
	}
	return v
}

// explainCall says why a call is where it is; false: it is none that goes straight, or it has ended.
func explainCall(ctx context.Context, n *Inspector, o *Owner, id ids.TaskID) (ex state.Explanation, found bool, err error) {
	calls, err := underway(ctx, n, o)
	u := calls.at[id]
	if err != nil || u == nil {
		return ex, false, err
	}
	a := calls.actors[u.Spec.Actor]
	v := callView(u, a)
	row := n.taskRow(&v)
	ex = state.Explanation{ID: row.ID, Kind: "task", State: row.State, Task: &row}
	ex.Summary = callSummary(n, &ex, u, &owner.TaskWhy{TaskView: v, Of: a})
	return ex, true, nil
}

func callSummary(n *Inspector, ex *state.Explanation, u *talk.Underway, w *owner.TaskWhy) string {
	if w.Of == nil {
		return "waits for its actor"
	}
	if w.Of.State != actor.Alive && u.Place != direct.OnItsWay {
		return n.actorTurn(ex, w)
	}
	name := aboutActor(ex, w.Of)
	switch {
	case u.Runs:
		return fmt.Sprintf("runs on %s, attempt %d", n.workerName(w.Worker), w.Attempt)
	case u.Aside:
		return fmt.Sprintf("is in the mailbox of %s on %s, and waits there until the process that has made it takes the answers that it has", name, n.workerName(w.Worker))
	}
	switch u.Place {
	case direct.OnItsWay:
		return fmt.Sprintf("waits for its turn in the mailbox of %s on %s behind %s", name, n.workerName(w.Worker), places(u.Ahead))
	case direct.NeedsArg:
		return "waits for its arguments"
	case direct.BehindOthers:
		return fmt.Sprintf("waits for its turn on %s behind %s of the same caller", name, places(u.Ahead))
	case direct.BehindWay:
		return fmt.Sprintf("waits for earlier calls of the same caller to %s, which went another way", name)
	case direct.NeedsWord:
		return fmt.Sprintf("was sent to %s, whose process or instance has ended, and waits to hear what follows", name)
	case direct.NeedsCredit:
		return fmt.Sprintf("waits until %s has taken some of the calls that are on their way to it: they have many bytes", name)
	case direct.NeedsWay:
	}
	return "waits to hear how calls get to " + name
}

// explainCame tells of a call that has ended, and whose result only its process has.
func explainCame(n *Inspector, id ids.TaskID) (ex state.Explanation, known bool) {
	at, known := n.node.Came(id)
	if !known {
		return ex, false
	}
	v := owner.TaskView{ID: id, Opts: at.Spec.Opts, Spec: at.Spec, Kind: at.Spec.Kind, State: cameTo(at.Err), Attempt: 1, Born: at.Spec.Submitted, Actor: at.Spec.Actor, Reason: at.Err}
	row := n.taskRow(&v)
	ex = state.Explanation{ID: row.ID, Kind: "task", State: row.State, Task: &row, Summary: "finished"}
	if at.Err != nil {
		ex.Summary = fmt.Sprintf("%s: %s", row.State, at.Err.Error())
	}
	ex.Details = append(ex.Details, "its result is in the process that has made it, and nobody else knows it")
	return ex, true
}

func cameTo(err *errs.Error) task.State {
	switch {
	case err == nil:
		return task.Finished
	case err.Code == errs.CodeCancelled:
		return task.Cancelled
	}
	return task.Failed
}

// explainResult tells of the result of a call of which the owner does not know.
func explainResult(ctx context.Context, n *Inspector, o *Owner, id ids.ObjectID) (ex state.Explanation, known bool, err error) {
	if at, ended := n.node.Came(id.Task); ended {
		ex = state.Explanation{ID: id.String(), Kind: "object", State: object.Inline.String(),
			Summary: fmt.Sprintf("%d bytes in the process that has made the call of %s; nobody else knows it", at.Bytes, at.Spec.Opts.Func)}
		if at.Err != nil {
			ex.State, ex.Summary = object.Failed.String(), "stands for an error: "+at.Err.Error()
		}
		return ex, true, nil
	}
	next, known, err := explainCall(ctx, n, o, id.Task)
	if err != nil || !known {
		return ex, false, err
	}
	return state.Explanation{ID: id.String(), Kind: "object", State: object.Pending.String(), Next: &next,
		Summary: fmt.Sprintf("is not there yet: its task %v (%s) is %s", id.Task, next.Task.Func, next.State)}, true, nil
}

// cancelCall cancels a call in the process that has made it; false: it is none that the owner does not know.
func cancelCall(ctx context.Context, n *Inspector, o *Owner, id ids.TaskID, r state.CancelRequest) (done state.Cancelling, found bool, err error) {
	calls, err := underway(ctx, n, o)
	u := calls.at[id]
	if err != nil || u == nil || u.Known { // the owner has a cancel of one that it knows passed on
		return done, false, err
	}
	done = state.Cancelling{Task: id.String(), Name: taskName(u.Spec.Opts), Was: callState(u).String(), State: callState(u).String()}
	n.Log.Info("a call is cancelled by request", "task", done.Task, "name", done.Name, "force", r.Force, "recursive", r.Recursive)
	if err := n.node.Cancel(u.Client, wire.Cancel{Task: id, Force: r.Force, Recursive: r.Recursive}); err != nil {
		return done, true, err
	}
	if calls, err = underway(ctx, n, o); err != nil {
		return done, true, err
	}
	if now := calls.at[id]; now != nil {
		done.State = callState(now).String()
	} else if at, known := n.node.Came(id); known {
		done.State = cameTo(at.Err).String()
	} else {
		done.State = task.Cancelled.String()
	}
	return done, true, nil
}
