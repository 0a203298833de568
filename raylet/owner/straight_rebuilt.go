package owner

import (
	"mobula/internal/direct"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// A rebuilt core knows no channel of those before it, and none that it gives has the number of one of those; nor the calls that were adopted and had not
// ended. A client that is asked for its Holdings says Linked of each channel, Adopt of each such call, and then what it holds. What it does not say again the core
// does not know: the end of a channel is not told it, its calls are not there. Nor does the core know which questions it had asked of processes of actors, or
// they had answered, about the calls of processes that were gone before: those are lost, and who holds their results is told that they are.

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
	a.passed = true
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

// answerDropped answers what a client has asked with a message that was dropped, and is false if that cannot be.
func (st *straight) answerDropped(from ids.ClientID, m wire.Msg, err *errs.Error) bool {
	switch m := m.(type) {
	case *talk.AskWay:
		st.say(from, &talk.Way{Actor: m.Actor, ByOwner: true})
	case *talk.Adopt:
		st.objects.dropped[ids.ObjectID{Task: m.Spec.ID}] = err
		st.say(from, &talk.Adopted{Task: m.Spec.ID})
	case *talk.HangUp, *talk.Linked:
	default:
		return false
	}
	return true
}
