package owner

import (
	"mobula/internal/direct"
	"mobula/raylet/owner/actor"
)

// What the core of ways is told of actors. It is told at the end of a step, of each actor that has changed its state in it, or was asked for: actorRec.shown has
// what it was told last.

// holdsResources tells whether an actor's calls have something to give back while they wait, which only the owner can.
func (a *actorRec) holdsResources() bool {
	for _, r := range a.opts.Resources {
		if r.Amount > 0 {
			return true
		}
	}
	return false
}

// showInstances tells of what has become of actors in this step.
func (st *straight) showInstances() {
	for i := 0; i < len(st.actors.touched); i++ {
		a := st.actors.touched[i]
		a.touched = false
		st.show(a)
	}
	clear(st.actors.touched)
	st.actors.touched = st.actors.touched[:0]
}

// show tells what was not told yet of an actor's instance: its end, the actor's, or that there is one.
func (st *straight) show(a *actorRec) {
	if a.state == actor.Alias {
		return // nobody was told of it
	}
	if is := &a.shown; is.id != 0 && (a.lease == nil || a.lease.id != is.id) {
		gone := direct.HostGone{Actor: a.id, Instance: is.id}
		host := is.host
		is.id, is.host = 0, nil
		st.tellEnd(a, gone.Instance)
		if host.gone {
			st.tell(gone)
		}
	}
	switch {
	case a.ended() && !a.shown.dead:
		st.tellEnd(a, 0)
	case a.state == actor.Alive && a.lease != nil && a.shown.id == 0:
		w := a.lease.worker
		a.shown.id, a.shown.host = a.lease.id, w
		st.tell(direct.Began{Actor: a.id, Instance: a.lease.id, Host: w.id, ByOwner: !w.straight})
	}
}

// tellEnd says that an instance has ended, with what a call is told that comes now.
func (st *straight) tellEnd(a *actorRec, of direct.Instance) {
	ev := direct.Ended{Actor: a.id, Instance: of, Dead: a.ended(), Keeps: a.keepsCalls()}
	if ev.Dead {
		a.shown.dead = true
		ev.Err = st.calls.callDied(a)
	} else {
		ev.Err = st.calls.unavailable(a)
	}
	st.tell(ev)
}

// processGone says that a process has ended: as one that calls, and as that of actors.
func (st *straight) processGone(cl *clientRec) {
	if st.ways == nil || !cl.straight {
		return
	}
	st.tasks.makerGone(cl.id)
	st.tell(direct.CallerGone{Client: cl.id})
	st.tell(direct.ProcessGone{Host: cl.id})
}
