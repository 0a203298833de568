package owner

import (
	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// A rebuilt core knows no channel of those before it, and none that it gives has the number of one of those; nor the calls that were adopted and had not
// ended. A client that is asked for its Holdings says Runs of each call that runs there and has made something, Linked of each channel, Adopt of each such call, and then what it holds. What it does not say again the core
// does not know: the end of a channel is not told it, its calls are not there. Nor does the core know which questions it had asked of processes of actors, or
// they had answered, about the calls of processes that were gone before: those are lost, and who holds their results is told that they are.

// adoptCalls takes what clients have said of their channels and calls before anything else that they have said, and before it looks at what tasks of the log wait for: what
// one has passed on others ask for, and tasks may have it as an argument.
func (rc *recovery) adoptCalls() {
	if rc.straight.ways == nil {
		return
	}
	p := rc.pause
	p.adopters = make(map[ids.ClientID]bool)
	for _, cl := range rc.clients.byID {
		p.adopters[cl.id] = cl.joined
	}
	for i, ev := range p.held {
		p.at = i
		if ev, ok := ev.(FromClient); ok && p.adopters[ev.Client] {
			for _, m := range ev.Msgs {
				if tellsOfCalls(m) {
					rc.up.message(rc.clients.client(ev.Client), m)
				}
			}
		}
	}
	unsure := rc.life.unsure
	rc.life.unsure, rc.life.awaitsCalls = nil, false
	for _, t := range unsure {
		rc.life.await(t)
	}
}

// tellsOfCalls tells of the messages by which a client says what the log does not know. The end of a stream comes behind its items.
func tellsOfCalls(m wire.Msg) bool {
	switch m := m.(type) {
	case *wire.Linked:
		return true
	case *wire.Adopt:
		return m.Outcome == nil || m.Spec.Opts.NumReturns != wire.Streaming
	}
	return false
}

// linked takes note of a channel of a core before this one. What becomes of an instance that nobody has any more is known when all clients have spoken.
func (st *straight) linked(cl *clientRec, m *wire.Linked) {
	a := st.actors.byID[m.Actor]
	switch {
	case m.Actor.Job() != st.cfg.Job, m.Instance == 0: // no channel leads there
		return
	case a == nil:
		st.toClient(cl, &wire.Over{Actor: m.Actor, Channel: m.Channel, Next: wire.NextNone, Err: st.calls.callDied(st.actors.actorFor(m.Actor))})
		return
	}
	a.passed = true
	st.show(a)
	has := direct.HasChannel{Client: cl.id, Actor: m.Actor, Instance: m.Instance, Channel: direct.Channel(m.Channel)}
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

// answerDropped answers what a client has asked with a message that was dropped, and is false if that cannot be.
func (st *straight) answerDropped(from ids.ClientID, m wire.Msg, err *errs.Error) bool {
	switch m := m.(type) {
	case *wire.AskWay:
		st.say(from, &wire.Way{Actor: m.Actor, ByOwner: true})
	case *wire.Adopt:
		st.objects.dropped[ids.ObjectID{Task: m.Spec.ID}] = err
		st.say(from, &wire.Adopted{Task: m.Spec.ID})
	case *wire.Mark:
		st.say(from, (*wire.Marked)(m))
	case *wire.HangUp, *wire.Linked, *wire.Waits, *wire.WaitOver, *wire.Runs, *wire.Ran, *wire.CancelMade:
	default:
		return false
	}
	return true
}
