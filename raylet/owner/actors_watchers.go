package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// Clients that watch an actor are told where it stands, at once and at each change. Who watches is not in the log: after a
// restart the clients say it again, and are told what is true then.

// watchActor begins or ends a client's watch of an actor, of this job or another.
func (as *actors) watchActor(cl *clientRec, m *wire.WatchActor) {
	if m.Done {
		if a := as.byID[m.Actor]; a != nil {
			a = a.real()
			a.watchers = slices.DeleteFunc(a.watchers, func(w watcher) bool { return w.client == cl && w.as == m.Actor })
			as.maybeForgetForeign(a)
		}
		return
	}
	a := as.actorFor(m.Actor)
	w := watcher{client: cl, as: m.Actor}
	if !slices.Contains(a.watchers, w) && !a.ended() {
		a.watchers = append(a.watchers, w)
	}
	as.tellWatcher(a, w)
}

// flushNews tells the watchers of every actor that moved in this step where it stands now. Of a dead one there is nothing more to
// hear.
func (as *actors) flushNews() {
	for _, a := range as.movedActor {
		a.moved = false
		for _, w := range a.watchers {
			as.tellWatcher(a, w)
		}
		if a.state == actor.Dead {
			a.watchers = nil
			as.maybeForgetForeign(a)
		}
	}
	clear(as.movedActor)
	as.movedActor = as.movedActor[:0]
}

func (as *actors) tellWatcher(a *actorRec, w watcher) {
	m := &wire.ActorNews{Actor: w.as, Restarts: uint32(max(a.restarts, 0))}
	switch a.state {
	case actor.Locating:
		return // its job says
	case actor.Alive, actor.Stopping:
		m.State = wire.ActorAlive
	case actor.Restarting:
		m.State, m.Err = wire.ActorRestarting, a.cause
	case actor.Dead:
		m.State, m.Err = wire.ActorDead, a.cause
		if m.Err == nil {
			m.Err = errs.New(errs.CodeActorDied, "actor %v has ended, and nothing more is known of it", a.id)
		}
	default:
		m.State = wire.ActorStarting
	}
	as.toClient(w.client, m)
}

// moveWatchers takes those who watch an alias to the actor that has its name.
func (as *actors) moveWatchers(from, to *actorRec) {
	ws := from.watchers
	from.watchers = nil
	for _, w := range ws {
		if to.state != actor.Dead {
			to.watchers = append(to.watchers, w)
		}
		as.tellWatcher(to, w)
	}
}

// forgetWatcher drops the watches of a client that is gone.
func (a *actorRec) forgetWatcher(cl *clientRec) {
	if len(a.watchers) > 0 {
		a.watchers = slices.DeleteFunc(a.watchers, func(w watcher) bool { return w.client == cl })
	}
}
