package inspect

import (
	"cmp"
	"context"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/raylet/owner"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// What whoever runs the node may end: the owner of a job gets the same messages as from the job's own programs.

// Cancel cancels a task, or the one that makes an object.
func (n *Inspector) Cancel(ctx context.Context, r state.CancelRequest) (done state.Cancelling, err error) {
	id, _, err := n.subject(r.ID)
	if err != nil {
		return done, err
	}
	if id.IsPut() {
		return done, errs.New(errs.CodeInvalid, "object %v was put: there is no task to cancel", id)
	}
	o, err := n.ownerOf(id.Task.Job(), "task "+id.Task.String())
	if err != nil {
		return done, err
	}
	if done, found, err := cancelCall(ctx, n, o, id.Task, r); found || err != nil {
		return done, err
	}
	was, err := n.taskIn(ctx, o, id.Task)
	switch {
	case err != nil:
		return done, err
	case was == nil:
		return done, errs.New(errs.CodeNotFound, "task %v is not known: it has ended and nothing refers to its results, or there never was one", id.Task)
	case was.State.Terminal() && was.Kind == wire.TaskActorCreate && was.Of != nil && was.Of.State != actor.Dead:
		return done, errs.New(errs.CodeInvalid, "task %v has created actor %v, which is %v: kill that", id.Task, was.Of.ID, was.Of.State)
	}
	done = state.Cancelling{Task: id.Task.String(), Name: taskName(was.Opts), Was: was.State.String(), State: was.State.String(), Ended: was.State.Terminal()}
	n.Log.Info("a task is cancelled by request", "task", done.Task, "name", done.Name, "force", r.Force, "recursive", r.Recursive)
	if err := o.Ref.Send(ctx, owner.CancelRequested{Task: id.Task, Force: r.Force, Recursive: r.Recursive}); err != nil {
		return done, err
	}
	now, err := n.taskIn(ctx, o, id.Task)
	if now != nil {
		done.State = now.State.String()
	}
	return done, err
}

// taskIn asks an owner for a task; nil: it has none.
func (n *Inspector) taskIn(ctx context.Context, o *Owner, id ids.TaskID) (*owner.TaskWhy, error) {
	return InOwner(ctx, o, func(c *owner.Core) *owner.TaskWhy {
		if w, ok := c.WhyTask(id); ok {
			return &w
		}
		return nil
	})
}

// Kill ends an actor, by its id or its name.
func (n *Inspector) Kill(ctx context.Context, r state.KillRequest) (done state.Killed, err error) {
	if r.Actor == "" {
		return done, errs.New(errs.CodeInvalid, "which actor? give its id or its name")
	}
	id, was, o, err := n.findActor(ctx, r)
	if err != nil {
		return done, err
	}
	done = state.Killed{Actor: was.ID.String(), Type: taskName(was.Opts), Name: was.Opts.ActorName, Was: was.State.String(), State: was.State.String()}
	n.Log.Info("an actor is killed by request", "actor", done.Actor, "type", done.Type, "restart", r.Restart)
	if err := o.Ref.Send(ctx, owner.FromDirectory{Msg: owner.KillRequested{Actor: id, Restart: r.Restart}}); err != nil {
		return done, err
	}
	now, err := actorIn(ctx, o, id)
	switch {
	case now != nil:
		done.State = now.State.String()
	case err == nil || n.ended(o): // it was the last of its job
		done.State, err = actor.Dead.String(), nil
	}
	return done, err
}

// findActor finds an actor by its id, or else by its name.
func (n *Inspector) findActor(ctx context.Context, r state.KillRequest) (id ids.ActorID, was *owner.ActorView, o *Owner, err error) {
	if id, err = parseActor(r.Actor); err == nil {
		if o = n.node.Owner(id.Job()); o != nil {
			if was, err = actorIn(ctx, o, id); was != nil || err != nil {
				return id, was, o, err
			}
		}
	}
	if id, err = n.node.Named(ctx, r.Namespace, r.Actor); err == nil {
		if o, err = n.ownerOf(id.Job(), "actor "+id.String()); err == nil {
			was, err = actorIn(ctx, o, id)
		}
	}
	switch e := errs.From(err); {
	case err != nil && (e.Code == errs.CodeNotFound || n.node.Nameless() && e.Code == errs.CodeInvalid), err == nil && was == nil:
		return id, nil, o, errs.New(errs.CodeNotFound, "no actor has the id %q, or is named so in namespace %q; lists show both", r.Actor, cmp.Or(r.Namespace, n.Namespace))
	}
	return id, was, o, err
}

// actorIn asks an owner for an actor; nil: it has none.
func actorIn(ctx context.Context, o *Owner, id ids.ActorID) (*owner.ActorView, error) {
	return InOwner(ctx, o, func(c *owner.Core) *owner.ActorView {
		if v, ok := c.Actor(id); ok {
			return &v
		}
		return nil
	})
}

func parseActor(s string) (ids.ActorID, error) {
	id, err := ids.ParseTask(s)
	return ids.ActorID(id), err
}
