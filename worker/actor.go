package worker

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// actor is one actor instance: a mailbox (a lane) for each concurrency group.
type actor struct {
	id       ids.ActorID
	name     string // of its type
	instance any    // written before its lanes are released
	groups   map[string]*lane
	lanes    []*lane
	made     atomic.Bool
	stopped  atomic.Bool
	grace    func() (context.Context, context.CancelFunc)
	log      func(msg string, args ...any)
}

// newActor makes the mailboxes when the creation comes, so that calls that come before it
// has run wait for it.
func (e *Executor) newActor(spec *wire.TaskSpec) {
	id := ids.ActorID(spec.ID)
	e.stopActor(id, true) // an earlier attempt's, if there is one
	a := &actor{id: id, name: spec.Opts.Func, groups: make(map[string]*lane), log: e.log.Warn,
		grace: func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.WithoutCancel(e.cfg.Base), e.cfg.StopGrace)
		}}
	add := func(name string, limit int32) {
		l := newLane(e, int(max(1, limit)), a)
		l.held = true
		a.groups[name] = l
		a.lanes = append(a.lanes, l)
	}
	add("", spec.Opts.MaxConcurrency)
	for _, g := range spec.Opts.Groups {
		if g.Name != "" {
			add(g.Name, g.Max)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.actors[id] = a
}

// group is the mailbox for a call.
func (e *Executor) group(spec *wire.TaskSpec) (*lane, *errs.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.actors[spec.Actor]
	if a == nil {
		return nil, notHere(spec.Actor)
	}
	l := a.groups[spec.Opts.Group]
	if l == nil {
		return nil, errs.New(errs.CodeInvalid, "actor %v (%s) has no concurrency group %q: name it when the actor is created", a.id, a.name, spec.Opts.Group)
	}
	return l, nil
}

// notHere is the error of a call that came when its actor had been stopped here: whether for good its owner says.
func notHere(id ids.ActorID) *errs.Error {
	return errs.New(errs.CodeActorUnavailable, "actor %v is not in this worker any more", id)
}

// actorMade lets the calls start.
func (e *Executor) actorMade(spec *wire.TaskSpec, instance any) error {
	if instance == nil {
		err := errs.New(errs.CodeTaskFailed, "%s: the constructor gave no instance", spec.Opts.Func)
		e.abandonCreation(spec, err)
		return err
	}
	e.mu.Lock()
	a := e.actors[ids.ActorID(spec.ID)]
	e.mu.Unlock()
	if a == nil || a.stopped.Load() { // stopped while it was being made
		(&actor{instance: instance, name: spec.Opts.Func, log: e.log.Warn}).closeInstance(e.cfg.Base)
		return errs.New(errs.CodeActorDied, "actor %v was stopped while it was created", ids.ActorID(spec.ID))
	}
	a.instance = instance
	a.made.Store(true)
	for _, l := range a.lanes {
		l.release()
	}
	return nil
}

// abandonCreation fails the calls that wait for an actor whose creation failed.
func (e *Executor) abandonCreation(spec *wire.TaskSpec, err *errs.Error) {
	if spec.Kind != wire.TaskActorCreate {
		return
	}
	e.removeActor(ids.ActorID(spec.ID), &errs.Error{Code: errs.CodeActorDied, Msg: fmt.Sprintf("actor %v could not be created", spec.ID), Cause: []*errs.Error{err}})
}

// removeActor takes an actor out and fails what waits in its mailboxes.
func (e *Executor) removeActor(id ids.ActorID, why *errs.Error) *actor {
	e.mu.Lock()
	a := e.actors[id]
	delete(e.actors, id)
	e.mu.Unlock()
	if a == nil {
		return nil
	}
	a.stopped.Store(true)
	for _, l := range a.lanes {
		for _, it := range l.takeItems() {
			e.refuse(&it.t, it.lease, it.received, why)
		}
	}
	return a
}

// stopActor ends an instance: queued calls fail, running ones are cancelled, and when
// they have returned the instance is closed.
func (e *Executor) stopActor(id ids.ActorID, restarts bool) {
	why := errs.New(errs.CodeActorDied, "actor %v was stopped", id)
	if restarts {
		why = errs.New(errs.CodeActorUnavailable, "actor %v was stopped, to restart", id)
	}
	a := e.removeActor(id, why)
	if a == nil {
		return
	}
	for _, l := range a.lanes {
		l.cancelAll(why)
	}
	e.spawn(func() {
		for _, l := range a.lanes {
			l.settle()
		}
		if a.made.Load() {
			ctx, cancel := a.grace()
			defer cancel()
			a.closeInstance(ctx)
		}
		for _, l := range a.lanes {
			l.close()
		}
	})
}

// closeInstance lets the instance clean up, if it knows how to: Stop(ctx) or Close().
func (a *actor) closeInstance(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			a.log("an actor panicked while it was closed", "actor", a.id, "type", a.name, "panic", p)
		}
	}()
	var err error
	switch i := a.instance.(type) {
	case interface{ Stop(context.Context) error }:
		err = i.Stop(ctx)
	case interface{ Stop(context.Context) }:
		i.Stop(ctx)
	case io.Closer:
		err = i.Close()
	}
	if err != nil {
		a.log("an actor's close failed", "actor", a.id, "type", a.name, "err", err)
	}
}
