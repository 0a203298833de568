package worker

import (
	"fmt"
	"sync"
	"sync/atomic"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// actor is one actor instance: a mailbox (a lane) for each concurrency group.
type actor struct {
	id       ids.ActorID
	lease    ids.LeaseID
	name     string // of its type
	onPanic  wire.OnPanic
	instance any              // written before its lanes are released
	groups   map[string]*lane // with names; nil: there are none
	lanes    []*lane
	made     atomic.Bool
	stopped  atomic.Bool                // it takes no more calls
	closing  atomic.Bool                // a goroutine closes it
	killed   atomic.Bool                // it was killed, its creation failed or a call panicked: its close hook is not called
	broken   atomic.Pointer[errs.Error] // the panic that has ended it; nil: none
	once     sync.Once                  // of its close hook
	life     chan struct{}              // closed when the actor should end
	at       *client.Hosted             // what its calls know of it: who keeps their contexts keeps that, and not the instance
	over     sync.Once                  // of life

	numbers map[string]int         // of its concurrency groups with names, where a mailbox runs its calls; its only lane holds those that come before it is made
	hosted  atomic.Pointer[hosted] // nil: it is not made yet, or has none
}

// newActor makes the mailboxes when the creation arrives, so that calls that arrive before the constructor has run
// wait for it.
func (e *Executor) newActor(spec *wire.TaskSpec, lease ids.LeaseID) {
	id := ids.ActorID(spec.ID)
	e.dropActor(id, true) // of an earlier attempt, if there is one
	a := &actor{id: id, lease: lease, name: spec.Opts.Func, onPanic: spec.Opts.OnPanic, life: make(chan struct{})}
	a.at = &client.Hosted{Actor: id, Instance: lease, Life: a.life}
	add := func(limit int32) *lane {
		if e.cfg.Mailboxes != nil && len(a.lanes) > 0 {
			return a.lanes[0]
		}
		l := newLane(e, int(max(1, limit)), a)
		l.held = true
		a.lanes = append(a.lanes, l)
		return l
	}
	add(spec.Opts.MaxConcurrency)
	for _, g := range spec.Opts.Groups {
		if g.Name == "" {
			continue
		}
		if a.groups == nil {
			a.groups = make(map[string]*lane)
		}
		a.groups[g.Name] = add(g.Max)
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
		return nil, actorStopped(spec.Actor)
	}
	if err := a.broken.Load(); err != nil {
		return nil, err
	}
	if a.stopped.Load() {
		return nil, errs.New(errs.CodeActorDied, "actor %v (%s) is being stopped", a.id, a.name)
	}
	if spec.Opts.Group == "" {
		return a.lanes[0], nil
	}
	l := a.groups[spec.Opts.Group]
	if l == nil {
		return nil, errs.New(errs.CodeInvalid, "actor %v (%s) has no concurrency group %q: name it when the actor is created", a.id, a.name, spec.Opts.Group)
	}
	return l, nil
}

// actorStopped is the error of a call that arrived after its actor was stopped here. The owner knows whether the actor
// is dead or restarts.
func actorStopped(id ids.ActorID) *errs.Error {
	return errs.New(errs.CodeActorUnavailable, "actor %v is not in this worker any more", id)
}

// actorMade lets the actor's calls start.
func (e *Executor) actorMade(spec *wire.TaskSpec, instance any) error {
	if instance == nil {
		err := errs.New(errs.CodeTaskFailed, "%s: the constructor gave no instance", spec.Opts.Func)
		e.abandonCreation(spec, err)
		return err
	}
	e.mu.Lock()
	a := e.actors[ids.ActorID(spec.ID)]
	e.mu.Unlock()
	if a == nil || a.stopped.Load() { // stopped while it was constructed
		_, _ = e.closeInstance(&actor{id: ids.ActorID(spec.ID), instance: instance, name: spec.Opts.Func}) // closeInstance logs its error
		return errs.New(errs.CodeActorDied, "actor %v was stopped while it was created", ids.ActorID(spec.ID))
	}
	a.instance = instance
	if e.cfg.Mailboxes != nil {
		e.host(a, spec.Opts)
		return nil
	}
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
