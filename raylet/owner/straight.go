package owner

import (
	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// Calls of actors that go straight, from the process that calls to the actor's, past the owner (decision 0038). The core direct.Ways decides; here it
// is told of actors and processes, and what it asks for becomes messages. straight_instances.go has what it is told of actors,
// straight_adopted.go the calls of which the owner is told, straight_rebuilt.go what a core that was made again lacks.

// straight is the owner's part of calls that go past it: who has a channel to which instance, and the calls of others that it was told of.
type straight struct {
	*step
	journal *journal
	tasks   *tasks
	objects *objects
	clients *clients
	values  *values
	streams *streams
	calls   *calls
	actors  *actors
	life    *life
	ways    *direct.Ways        // nil: every call goes by the owner
	todo    []direct.WaysEffect // of ways, in order
	busy    bool                // todo is being done
}

func newStraight(s *step, j *journal, ts *tasks, os *objects, cs *clients, vs *values, ss *streams, cc *calls, as *actors, lf *life) *straight {
	st := &straight{step: s, journal: j, tasks: ts, objects: os, clients: cs, values: vs, streams: ss, calls: cc, actors: as, life: lf}
	if s.cfg.StraightCalls {
		st.ways = direct.NewWays()
	}
	return st
}

// talk takes a message about calls that go straight, and is false if it is none. Where none do, or from the client none can, calls go by the owner.
func (st *straight) talk(cl *clientRec, m wire.Msg) bool {
	switch m := m.(type) {
	case *wire.EndedCalls:
		st.callsEnded(m)
		return true
	case *wire.Mark:
		st.toClient(cl, (*wire.Marked)(m))
		return true
	}
	if st.ways == nil || !cl.straight {
		return st.refer(cl, m)
	}
	switch m := m.(type) {
	case *wire.AskWay:
		st.askWay(cl, m.Actor)
	case *wire.AskWord:
		st.tell(direct.WordAsked{Channel: direct.Channel(m.Channel)})
	case *wire.HangUp:
		st.tell(direct.HungUp{Channel: direct.Channel(m.Channel)})
	case *wire.Linked:
		st.linked(cl, m)
	case *wire.Lives:
		st.tell(direct.Lives{Channel: direct.Channel(m.Channel)})
	case *wire.Adopt:
		st.adopt(cl, m)
	case *wire.Told:
		st.told(cl, m)
	case *wire.Runs:
		st.tasks.startsMaking(m, cl.id)
	case *wire.Ran:
		st.tasks.stopsMaking(m.Task, cl.id)
	case *wire.CancelMade:
		st.life.cancelMade(m.Task, direct.Wish(m.Wish))
	default:
		return false
	}
	return true
}

// refer has a client submit its calls, as if nothing had ever gone another way.
func (st *straight) refer(cl *clientRec, m wire.Msg) bool {
	switch m := m.(type) {
	case *wire.AskWay:
		st.toClient(cl, &wire.Way{Actor: m.Actor, ByOwner: true})
	case *wire.Adopt:
		st.life.submit(cl, m.Spec)
		st.toClient(cl, &wire.Adopted{Task: m.Spec.ID})
	case *wire.AskWord, *wire.HangUp, *wire.Linked, *wire.Lives, *wire.Told, *wire.Runs, *wire.Ran, *wire.CancelMade:
	default:
		return false
	}
	return true
}

// askWay answers how a client's calls get to an actor, or has it wait for the actor's next instance.
func (st *straight) askWay(cl *clientRec, id ids.ActorID) {
	a := st.actors.byID[id]
	if a == nil || a.rec == nil || a.alias != nil || a.opts.GetIfExists && a.state == actor.Claiming { // a call says what is to be said of it
		st.toClient(cl, &wire.Way{Actor: id, ByOwner: true})
		return
	}
	if err := st.calls.refusesCalls(a); err != nil {
		st.toClient(cl, &wire.Way{Actor: id, Dead: a.ended() || a.stop != nil, Err: err})
		return
	}
	st.show(a)
	st.tell(direct.WayAsked{Client: cl.id, Actor: id, ByOwner: !cl.straight || a.holdsResources(), Keeps: a.keepsCalls()})
}

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

// hearOfEnds tells the core of ways which calls were cancelled and which have ended.
func (st *straight) hearOfEnds() {
	for _, u := range st.tasks.unwanted {
		st.todo = append(st.todo, st.ways.Step(st.now, direct.CancelAsked{Call: u.call, Wish: u.wish})...)
	}
	st.tasks.unwanted = st.tasks.unwanted[:0]
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
		st.say(e.Client, &wire.Way{Actor: e.Actor, ByOwner: true})
	case direct.SayNoWay:
		st.say(e.Client, &wire.Way{Actor: e.Actor, Dead: e.Dead, Err: e.Err})
	case direct.SayOver:
		st.say(e.Client, overOf(e.Actor, &e.Over))
	case direct.AskHost:
		st.say(e.Host, &wire.StillThere{Instance: e.Instance, Channel: uint64(e.Channel)})
	case direct.TellAdopted:
		st.say(e.Client, &wire.Adopted{Task: e.Call})
	case direct.AskWhere:
		st.say(e.Host, &wire.Where{Instance: e.Instance, Channel: uint64(e.Channel), Numbers: []uint64{e.No}})
	case direct.PassCancel:
		st.say(e.Client, &wire.CancelCall{Task: e.Call, Actor: e.Actor, Wish: wire.Wish(e.Wish)})
	case direct.AskEnd:
		st.say(e.Host, &wire.Unwanted{Instance: e.Instance, Channel: uint64(e.Channel), No: e.No, Wish: wire.Wish(e.Wish)})
	case direct.DropChannel:
		st.say(e.Host, &wire.Dropped{Instance: e.Instance, Channel: uint64(e.Channel)})
	case direct.ResolveCall:
		st.resolveCall(e)
	case direct.MakeCall:
		st.makeCall(e)
	case direct.AnswerCaller: // it has its handles, and asks for what it wants
	}
}

// open tells a client of its channel. In one process it links the mailbox itself, so the host hears nothing; else the node gives both an end.
func (st *straight) open(e *direct.WaysEffect) {
	a := st.actors.byID[e.Actor]
	if a == nil {
		st.say(e.Client, &wire.Way{Actor: e.Actor, Err: errs.New(errs.CodeActorUnavailable, "actor %v is gone", e.Actor)})
		return
	}
	a.passed = true
	var host ids.ClientID // of an instance that has ended meanwhile: none
	if a.shown.id == e.Instance && a.shown.host != nil {
		host = a.shown.host.id
	}
	st.say(e.Client, &wire.Way{Actor: e.Actor, Instance: e.Instance, Host: host, Channel: uint64(e.Channel), Retries: a.opts.MaxTaskRetries, Groups: a.groupNames()})
}

// overOf is the node's word on a channel, as its client is told it.
func overOf(id ids.ActorID, o *direct.Over) *wire.Over {
	return &wire.Over{Actor: id, Channel: uint64(o.Channel), Next: wire.Next(o.Next), Keeps: o.Keeps, Err: o.Err}
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
