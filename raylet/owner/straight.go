package owner

import (
	"mobula/internal/direct"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// Calls of actors that go straight, from the process that calls to the actor's, past the owner (decision 0038). The core direct.Ways decides; here it
// is told of actors and processes, and what it asks for becomes messages. straight_adopted.go has the calls of which the owner is told.
//
// A rebuilt core knows no channel of those before it, and none that it gives has the number of one of those; nor the calls that were adopted and had not
// ended. A client that is asked for its Holdings says Linked of each channel, Adopt of each such call, and then what it holds. What it does not say again the core
// does not know: the end of a channel is not told it, its calls are not there. Nor does the core know which questions it had asked of processes of actors, or
// they had answered, about the calls of processes that were gone before: those are lost, and who holds their results is told that they are.

// talk takes a message about calls that go straight, and is false if it is none. Where none do, calls go by the owner.
func (st *straight) talk(cl *clientRec, m wire.Msg) bool {
	if st.ways == nil {
		return st.refer(cl, m)
	}
	switch m := m.(type) {
	case *talk.AskWay:
		st.askWay(cl, m.Actor)
	case *talk.AskWord:
		st.tell(direct.WordAsked{Channel: m.Channel})
	case *talk.HangUp:
		st.tell(direct.HungUp{Channel: m.Channel})
	case *talk.Linked:
		st.linked(cl, m)
	case *talk.Lives:
		st.tell(direct.Lives{Channel: m.Channel})
	case *talk.Adopt:
		st.adopt(cl, m)
	case *talk.Told:
		st.told(cl, m)
	default:
		return false
	}
	return true
}

// refer has a client submit its calls, as if nothing had ever gone another way.
func (st *straight) refer(cl *clientRec, m wire.Msg) bool {
	switch m := m.(type) {
	case *talk.AskWay:
		st.toClient(cl, &talk.Way{Actor: m.Actor, ByOwner: true})
	case *talk.Adopt:
		st.life.submit(cl, m.Spec)
		st.toClient(cl, &talk.Adopted{Task: m.Spec.ID})
	case *talk.AskWord, *talk.HangUp, *talk.Linked, *talk.Lives, *talk.Told:
	default:
		return false
	}
	return true
}

// askWay answers how a client's calls get to an actor, or has it wait for the actor's next instance.
func (st *straight) askWay(cl *clientRec, id ids.ActorID) {
	a := st.actors.byID[id]
	if a == nil || a.rec == nil || a.alias != nil || a.opts.GetIfExists && a.state == actor.Claiming { // a call says what is to be said of it
		st.toClient(cl, &talk.Way{Actor: id, ByOwner: true})
		return
	}
	if err := st.calls.refusesCalls(a); err != nil {
		st.toClient(cl, &talk.Way{Actor: id, Dead: a.ended() || a.stop != nil, Err: err})
		return
	}
	st.show(a)
	st.tell(direct.WayAsked{Client: cl.id, Actor: id, ByOwner: !cl.local || a.holdsResources(), Keeps: a.keepsCalls()})
}

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
		st.tell(direct.Began{Actor: a.id, Instance: a.lease.id, Host: w.id, ByOwner: !w.local})
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
	if st.ways == nil || !cl.local {
		return
	}
	st.tell(direct.CallerGone{Client: cl.id})
	st.tell(direct.ProcessGone{Host: cl.id})
}

// linked takes note of a channel of a core before this one. What becomes of an instance that nobody has any more is known when all clients have spoken.
func (st *straight) linked(cl *clientRec, m *talk.Linked) {
	a := st.actors.byID[m.Actor]
	switch {
	case m.Actor.Job() != st.cfg.Job, m.Instance == 0: // no channel leads there
		return
	case a == nil:
		st.toClient(cl, &talk.Over{Actor: m.Actor, Over: direct.Over{Channel: m.Channel, Next: direct.NextNone, Err: st.calls.callDied(st.actors.actorFor(m.Actor))}})
		return
	}
	st.show(a)
	has := direct.HasChannel{Client: cl.id, Actor: m.Actor, Instance: m.Instance, Channel: m.Channel}
	switch now := &a.shown; {
	case now.id == m.Instance:
		has.Host = now.host.id
		st.tell(has)
	case now.id == 0 && st.recovering && !a.ended():
		now.id, now.host = m.Instance, st.goneHost()
		st.tell(has)
		st.actors.noteInstance(a)
	default:
		st.tell(has)
		st.tellEnd(a, m.Instance)
		st.tell(direct.HostGone{Actor: a.id, Instance: m.Instance})
	}
}

// goneHost stands for a process of which only the actor's clients speak.
func (st *straight) goneHost() *clientRec { return &clientRec{gone: true} }

// renumber keeps the channels of a rebuilt core apart from those before it.
func (st *straight) renumber(epoch uint64) {
	if st.ways != nil {
		st.ways.CountFrom(direct.Channel(epoch << channelBits))
	}
}

const channelBits = 32 // of a channel's number, which one core counts

// forgetReaped tells, at the end of a step, which calls have ended in it, and drops what is known of calls and actors of which nobody can ask any more.
func (st *straight) forgetReaped() {
	if st.ways == nil {
		return
	}
	for _, t := range st.tasks.reaped {
		switch {
		case st.tasks.task(t.id()) != nil: // it came again
		case t.isCreation():
			st.tell(direct.Forgotten{Actor: t.actor.id})
		case t.x != nil && t.x.adopted != nil:
			st.tell(direct.Freed{Call: t.id()})
		}
	}
	st.hearOfEnds()
	st.doAll()
}

// tell steps the core of ways, after it has heard of the calls that have ended, and does what it asks for. What that leads to is done behind it.
func (st *straight) tell(ev direct.WaysEvent) {
	st.hearOfEnds()
	st.todo = append(st.todo, st.ways.Step(st.now, ev)...)
	st.doAll()
}

// hearOfEnds tells the core of ways which calls have ended.
func (st *straight) hearOfEnds() {
	for _, id := range st.tasks.settled {
		st.todo = append(st.todo, st.ways.Step(st.now, direct.Resolved{Call: id})...)
	}
	st.tasks.settled = st.tasks.settled[:0]
}

func (st *straight) doAll() {
	if st.busy {
		return
	}
	st.busy = true
	for i := 0; i < len(st.todo); i++ {
		e := st.todo[i]
		st.do(&e)
	}
	clear(st.todo)
	st.todo, st.busy = st.todo[:0], false
}

func (st *straight) do(e *direct.WaysEffect) {
	switch e.Do {
	case direct.Open:
		st.open(e)
	case direct.GoByOwner:
		st.say(e.Client, &talk.Way{Actor: e.Actor, ByOwner: true})
	case direct.SayNoWay:
		st.say(e.Client, &talk.Way{Actor: e.Actor, Dead: e.Dead, Err: e.Err})
	case direct.SayOver:
		st.say(e.Client, &talk.Over{Actor: e.Actor, Over: e.Over})
	case direct.AskHost:
		st.say(e.Host, &talk.StillThere{Instance: e.Instance, Channel: e.Channel})
	case direct.TellAdopted:
		st.say(e.Client, &talk.Adopted{Task: e.Call})
	case direct.AskWhere:
		st.say(e.Host, &talk.Where{Instance: e.Instance, Channel: e.Channel, Numbers: []uint64{e.No}})
	case direct.DropChannel:
		st.say(e.Host, &talk.Dropped{Instance: e.Instance, Channel: e.Channel})
	case direct.ResolveCall:
		st.resolveCall(e)
	case direct.MakeCall:
		st.makeCall(e)
	case direct.AnswerCaller: // it has its handles, and asks for what it wants
	}
}

// open tells a client of its channel. In one process it links the mailbox itself, so the host hears nothing.
func (st *straight) open(e *direct.WaysEffect) {
	a := st.actors.byID[e.Actor]
	if a == nil {
		st.say(e.Client, &talk.Way{Actor: e.Actor, Err: errs.New(errs.CodeActorUnavailable, "actor %v is gone", e.Actor)})
		return
	}
	st.say(e.Client, &talk.Way{Actor: e.Actor, Instance: e.Instance, Channel: e.Channel, Retries: a.opts.MaxTaskRetries, Groups: a.groupNames()})
}

// groupNames are an actor's concurrency groups, as its worker counts them: first what is in none.
func (a *actorRec) groupNames() []string {
	names := []string{""}
	for _, g := range a.opts.Groups {
		if g.Name != "" {
			names = append(names, g.Name)
		}
	}
	return names
}

func (st *straight) say(to ids.ClientID, m wire.Msg) {
	if cl := st.clients.client(to); cl != nil {
		st.toClient(cl, m)
	}
}

// answerDropped answers what a client has asked with a message that was dropped, and is false if that cannot be.
func (st *straight) answerDropped(from ids.ClientID, m wire.Msg, err *errs.Error) bool {
	switch m := m.(type) {
	case *talk.AskWay:
		st.say(from, &talk.Way{Actor: m.Actor, ByOwner: true})
	case *talk.Adopt:
		st.life.objects.dropped[ids.ObjectID{Task: m.Spec.ID}] = err
		st.say(from, &talk.Adopted{Task: m.Spec.ID})
	case *talk.HangUp, *talk.Linked:
	default:
		return false
	}
	return true
}
