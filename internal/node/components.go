package node

import (
	"context"

	"mobula/actors"
	"mobula/internal/node/inspect"
	"mobula/objectstore"
	"mobula/raylet/owner"
)

// Components lists the live supervision tree, parents before children, in order of start.
func (n *Node) Components() []actors.Info { return n.sys.Tree() }

// Restarts counts the restarts of components since the node's start, by kind: of those too that have ended.
func (n *Node) Restarts() map[string]uint64 { return n.sys.Restarts() }

// StoreStats is the state of the object store, in bytes and objects.
func (n *Node) StoreStats(ctx context.Context) (objectstore.Stats, error) {
	return n.store.actor.Stats(ctx)
}

// OwnerStats is what each job's owner counts, and has at the moment. An owner that ends meanwhile is
// left out. It waits for the owners' mailboxes.
func (n *Node) OwnerStats(ctx context.Context) ([]OwnerStats, error) {
	var all []OwnerStats
	for _, o := range n.owners.all() {
		answer := make(chan OwnerStats, 1)
		ask := inspect.Question{Ask: func(c *owner.Core) { answer <- OwnerStats{c.Counters(), c.Gauges()} }}
		if err := o.ref.Send(ctx, ask); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			continue // the job has just ended
		}
		select {
		case s := <-answer:
			all = append(all, s)
		case <-o.ref.Done():
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return all, nil
}

// OwnerStats is one job's.
type OwnerStats struct {
	owner.Counters
	owner.Gauges
}
