package shell

import (
	"slices"

	"mobula/internal/queue"
	"mobula/remote"
)

// saved is what has to outlive the core of a peer. After each step it has what the core has; a step that panics leaves it as it was.
type saved struct {
	kept    remote.Kept
	waiting queue.Queue[[]byte] // not acknowledged
}

func newSaved() saved { return saved{kept: remote.Kept{First: 1}} }

// core makes a core of it.
func (s *saved) core(cfg remote.Config) *remote.Peer {
	return remote.Rebuild(cfg, s.kept, slices.Clone(s.waiting.All()))
}

// commit takes over what the core has after a step. sent is the message of the step, if there was one. It gives how many messages are not there any
// more, and their bytes; sent is one of them if the core has refused it.
func (s *saved) commit(p *remote.Peer, sent []byte) (messages, bytes int) {
	switch { // a step that sends acknowledges nothing
	case sent == nil:
	case p.Waiting() > s.waiting.Len():
		s.waiting.Push(sent)
	default:
		messages, bytes = 1, len(sent)
	}
	for s.waiting.Len() > p.Waiting() {
		messages, bytes = messages+1, bytes+len(s.waiting.Pop())
	}
	s.kept = p.Kept()
	return messages, bytes
}
