package shell

import (
	"github.com/hashicorp/memberlist"

	"mobula/remote/membership"
)

// queue is what is to be gossiped. A later word of a node takes the place of the one before.
type queue struct {
	memberlist.TransmitLimitedQueue
}

// newQueue makes one that passes each word to membership.Fanout nodes. Memberlist's own multiplies that by the order of magnitude of the cluster's
// size; here a node that missed a load waits for the next.
func newQueue() *queue {
	return &queue{memberlist.TransmitLimitedQueue{RetransmitMult: membership.Fanout, NumNodes: func() int { return 9 }}}
}

// word is a memberlist.NamedBroadcast.
type word struct {
	name    string
	message []byte
	done    chan<- struct{} // closed when nobody is told any more; nil: nobody asks
}

func (q *queue) load(l membership.Load) {
	q.QueueBroadcast(&word{name: "load " + l.Life.Home.String(), message: l.Message()})
}

func (q *queue) goodbye(g membership.Goodbye, done chan<- struct{}) {
	q.QueueBroadcast(&word{name: "goodbye " + membership.Name(g.Life), message: g.Message(), done: done})
}

func (q *queue) take(overhead, limit int) [][]byte { return q.GetBroadcasts(overhead, limit) }

// Name implements memberlist.NamedBroadcast.
func (w *word) Name() string { return w.name }

// Message implements memberlist.Broadcast.
func (w *word) Message() []byte { return w.message }

// Invalidates implements memberlist.Broadcast.
func (w *word) Invalidates(other memberlist.Broadcast) bool {
	o, ok := other.(*word)
	return ok && o.name == w.name
}

// Finished implements memberlist.Broadcast.
func (w *word) Finished() {
	if w.done != nil {
		close(w.done)
	}
}
