package node

import (
	"mobula/internal/client"
	"mobula/internal/direct/talk"
	"mobula/internal/ids"
	"mobula/internal/node/route"
	"mobula/wire"
)

// Calls of actors that go straight (decision 0038), as far as the node has to do with them: what is said of them between clients and the
// owners here passes the node as any message does.

// envStraight turns straight calls off in the node that a program has in its process. It is no setting: it goes when straight calls are all that there is.
const envStraight = "MOBULA_STRAIGHT_CALLS"

// envChannels has calls go straight between processes too. It is no setting: it goes when they do by default.
const envChannels = "MOBULA_STRAIGHT_CHANNELS"

// channels reads whether the environment turns channels between processes on.
func channels(getenv func(string) string) bool { return getenv(envChannels) == "1" }

// callsByOwner reads whether the environment turns straight calls off.
func callsByOwner(getenv func(string) string) bool { return getenv(envStraight) == "0" }

// callers are the clients in this process that may have calls of a job which its owner does not know.
func (n *Node) callers(job ids.JobID) (all []*client.Client) {
	if n.cfg.CallsByOwner {
		return nil
	}
	for _, s := range n.sessions.all() {
		if s.job == job && s.inside != nil {
			all = append(all, s.inside)
		}
	}
	return all
}

// TellEnded has the owner of a job told of all calls that have ended.
func (v inspected) TellEnded(job ids.JobID) {
	for _, c := range v.n.callers(job) {
		c.TellEnded()
	}
}

// Underway gives the calls of a job that go straight and have not ended.
func (v inspected) Underway(job ids.JobID) (all []talk.Underway) {
	for _, c := range v.n.callers(job) {
		all = append(all, c.Underway()...)
	}
	return all
}

// Came is what a call that went straight has come to, where its process has that.
func (v inspected) Came(task ids.TaskID) (at talk.Came, known bool) {
	for _, c := range v.n.callers(task.Job()) {
		if at, known = c.Came(task); known {
			break
		}
	}
	return at, known
}

// Cancel cancels a call that goes straight in the process that has made it.
func (v inspected) Cancel(by ids.ClientID, m wire.Cancel) error {
	for _, c := range v.n.callers(m.Task.Job()) {
		if c.ID() == by {
			return c.Cancel(m)
		}
	}
	return nil // its process is gone: the call too, or the owner has it
}

// refer gives what of a client's messages can go to an owner on another node, to which no call goes straight: its calls go by that owner.
func (s *session) refer(msgs []wire.Msg) []wire.Msg {
	kept := make([]wire.Msg, 0, len(msgs))
	for _, m := range msgs {
		if !route.OfStraightCalls(m) {
			kept = append(kept, m)
			continue
		}
		switch m := m.(type) {
		case *wire.AskWay:
			s.Push(&wire.Way{Actor: m.Actor, ByOwner: true})
		case *wire.Adopt:
			kept = append(kept, &wire.Submit{Spec: m.Spec})
			s.Push(&wire.Adopted{Task: m.Spec.ID})
		case *wire.Mark: // it has its place behind what goes on
			kept = append(kept, m)
		}
	}
	s.Flush()
	return kept
}

// marked answers for an owner that has ended: nothing that was said to it is still to be taken.
func (s *session) marked(msgs []wire.Msg) {
	for _, m := range msgs {
		if m, ok := m.(*wire.Mark); ok {
			s.Push((*wire.Marked)(m))
		}
	}
	s.Flush()
}
