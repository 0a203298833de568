package node

import (
	"context"
	"fmt"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
)

// Agrees tells how this node's list of the cluster's nodes differs from what it should be: those of up are alive in their present lives, answer, and have said what they
// have free; those of over are dead, or have left. nil: it does not differ.
func (n *Node) Agrees(ctx context.Context, up, over []*Node) error {
	select {
	case n.requests.running <- struct{}{}: // it is a request as those of clients are
		defer func() { <-n.requests.running }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	page, err := n.requests.nodes(ctx, state.Query{Limit: state.MaxLimit})
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name(), err)
	}
	row := func(o *Node) *state.Node {
		if i := slices.IndexFunc(page.Rows, func(r state.Node) bool { return r.ID == o.ID() }); i >= 0 {
			return &page.Rows[i]
		}
		return nil
	}
	for _, o := range up {
		r, silent := row(o), slices.IndexFunc(page.Unreachable, func(u state.Unreachable) bool { return u.Node == o.Name() })
		switch {
		case r == nil:
			return errs.New(errs.CodeNoNode, "node %s does not know node %s", n.Name(), o.Name())
		case r.State != state.NodeAlive || r.Epoch != o.numbers.Epoch():
			return errs.New(errs.CodeNoNode, "node %s takes node %s for %s in its life %d, which is its %d.", n.Name(), o.Name(), r.State, r.Epoch, o.numbers.Epoch())
		case silent >= 0:
			return errs.New(errs.CodeNoNode, "node %s does not hear node %s: %s", n.Name(), o.Name(), page.Unreachable[silent].Why)
		case o != n && !n.wired.hasReport(o.numbers.Row().Home): // by now that of its present life, which has answered
			return errs.New(errs.CodeNoNode, "node %s has not heard what node %s has free", n.Name(), o.Name())
		}
	}
	for _, o := range over {
		if r := row(o); r != nil && r.State != state.NodeDead {
			return errs.New(errs.CodeNoNode, "node %s takes node %s for %s, which is gone", n.Name(), o.Name(), r.State)
		}
	}
	return nil
}

// hasReport tells whether a node has said in its present life what it has free.
func (w *wired) hasReport(node ids.Home) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reports[node]
}
