package node

import (
	"context"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/internal/state"
)

// methodLoad is what the nodes are asked that are listed: empty; inspect.Load.
const methodLoad = "node.load"

// loadWithin is how long a node that is listed may take to say what it has free: the list tells who is there even if that is nobody.
const loadWithin = time.Second

// nodes lists the nodes of the cluster by the control plane's table, and adds what each of them on the page has free, as it says itself.
func (r *requests) nodes(ctx context.Context, q state.Query) (page state.Page[state.Node], err error) {
	l, err := r.inspect.Nodes(ctx, q)
	if page = l.Page; err != nil {
		return page, err
	}
	row := make(map[ids.Home]*state.Node)
	var to scope
	for i := range page.Rows {
		home, err := ids.ParseHome(page.Rows[i].ID)
		if err != nil {
			return page, err
		}
		row[home] = &page.Rows[i]
		switch {
		case home == r.numbers.Row().Home:
			to.here = true
		case r.links.alone() || page.Rows[i].State == state.NodeDead:
		case slices.Contains(r.cfg.Cluster.Others(), home):
			to.nodes = append(to.nodes, home)
		default:
			page.Unreachable = append(page.Unreachable, state.Unreachable{Node: page.Rows[i].Name, Why: "this node does not know yet where it is"})
		}
	}
	parts, missing, err := everywhere(ctx, r, to, loadWithin, methodLoad, func(ids.Home) (empty, error) { return empty{}, nil }, r.inspect.Load)
	if err != nil {
		return page, err
	}
	for _, p := range parts {
		n := row[p.node]
		n.Free, n.StoreLimit, n.StoreHeld = p.out.Free, p.out.StoreLimit, p.out.StoreHeld
	}
	for _, m := range missing {
		if !slices.ContainsFunc(page.Unreachable, func(u state.Unreachable) bool { return u.Node == m.Node }) {
			page.Unreachable = append(page.Unreachable, m)
		}
	}
	return page, nil
}
