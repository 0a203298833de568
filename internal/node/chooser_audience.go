package node

import (
	"sync"

	"mobula/internal/ids"
	"mobula/raylet/cluster"
)

// audience is whom the node's reports are told.
type audience struct {
	mu sync.Mutex
	of *cluster.Audience // guarded by mu; nil: nobody has said anything
}

// lock locks it, for whoever uses it then.
func (a *audience) lock() *cluster.Audience {
	a.mu.Lock()
	if a.of == nil {
		a.of = cluster.NewAudience()
	}
	return a.of
}

// note takes what an event says of a node, and tells whether that is to be told soon what this one has free.
func (a *audience) note(ev cluster.Event) (soon bool) {
	switch ev := ev.(type) {
	case cluster.NodeReport:
		soon = a.lock().Heard(&ev.Node)
	case cluster.NodeGone:
		a.lock().Gone(ev.Node)
	default:
		return false
	}
	a.mu.Unlock()
	return soon
}

// next gives who is to be told a report, the node itself among them.
func (a *audience) next(r *cluster.Reporter, n *cluster.Node, now int64, others, busy []ids.Home) []ids.Home {
	of := a.lock()
	defer a.mu.Unlock()
	due := r.Due(now, len(others), of.Of(n, others), busy)
	of.Told(n, due)
	return due
}
