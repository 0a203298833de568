package node

import (
	"context"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/trust"
	"mobula/remote/membership"
)

// awaitTime bounds how long a node waits, at its start, for reports of others.
const awaitTime = 10 * time.Second

// await lets a node be up when it is known where work may come from or go to. A driver's node has heard then from each node that runs work, as far as it knows
// them: before that nothing can be scheduled. A node that joins has heard from the control plane's servers, where programs are most likely: they know it.
func (w *wired) await(ctx context.Context) error {
	if !w.on() || w.serves() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	if w.until(ctx, w.heardAllLocked) != nil {
		w.cfg.Logger.Warn("not all nodes of the cluster were heard from yet: until then some work cannot be scheduled")
	}
	return nil
}

// Meet waits until this node has heard what others have free, so that it can give them work.
func (n *Node) Meet(ctx context.Context, others ...*Node) error {
	for _, o := range others {
		heard := func() bool { return n.wired.reports[o.numbers.Row().Home] }
		if o != n && n.wired.until(ctx, heard) != nil {
			return errs.New(errs.CodeNoNode, "node %s has not heard of node %s: %v", n.Name(), o.Name(), context.Cause(ctx))
		}
	}
	return nil
}

// until waits until something that follows from the news of other nodes is so. It is asked with w.mu held.
func (w *wired) until(ctx context.Context, isLocked func() bool) error {
	for {
		w.mu.Lock()
		if w.news == nil {
			w.news = make(chan struct{})
		}
		is, news := isLocked(), w.news
		w.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reported notes that a node has said what it has free, or that the life which did is over.
func (w *wired) reported(node ids.Home, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reports[node] != is {
		w.reports[node] = is
		w.changedLocked()
	}
}

// heardAllLocked tells whether each node that is waited for has reported, and there is one. Nodes that are over do not count. w.mu is held.
func (w *wired) heardAllLocked() bool {
	known := 0
	for h, b := range w.beats {
		waits := b.Node.Role == membership.Control || w.member.Role() == trust.Driver && b.Node.Role == membership.Data
		if !waits || w.lives.over(b.Node.Life) {
			continue
		}
		if !w.reports[h] {
			return false
		}
		known++
	}
	return known > 0
}

// changedLocked wakes who waits for news of the other nodes. w.mu is held.
func (w *wired) changedLocked() {
	if w.news != nil {
		close(w.news)
		w.news = nil
	}
}
