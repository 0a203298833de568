package node

import (
	"mobula/internal/direct/talk"
	"mobula/wire"
)

// Calls of actors that go straight (decision 0038), as far as the node has to do with them: what is said of them between clients in this process and the
// owners here passes the node as any message does, and goes over no socket.

// envStraight turns straight calls on in the node that a program has in its process. It is no setting: it goes when straight calls are all that there is.
const envStraight = "MOBULA_STRAIGHT_CALLS"

// straightCalls reads whether the environment turns straight calls on.
func straightCalls(getenv func(string) string) bool { return getenv(envStraight) == "1" }

// refer gives what of a client's messages can go to an owner on another node, to which no call goes straight: its calls go by that owner.
func (s *session) refer(msgs []wire.Msg) []wire.Msg {
	kept := make([]wire.Msg, 0, len(msgs))
	for _, m := range msgs {
		if !talk.Is(m) {
			kept = append(kept, m)
			continue
		}
		switch m := m.(type) {
		case *talk.AskWay:
			s.Push(&talk.Way{Actor: m.Actor, ByOwner: true})
		case *talk.Adopt:
			kept = append(kept, &wire.Submit{Spec: m.Spec})
			s.Push(&talk.Adopted{Task: m.Spec.ID})
		}
	}
	s.Flush()
	return kept
}
