package inspect

import (
	"context"
	"fmt"

	"mobula/gcs"
	"mobula/internal/state"
	"mobula/telemetry/metrics"
)

// Nodes lists the nodes that share the control plane, without what they have free. One that has no other than its own is the only one, whether that runs or not.
func (n *Inspector) Nodes(ctx context.Context, q state.Query) (page state.List[state.Node], err error) {
	if q, err = state.Check[state.Node](q); err != nil {
		return page, err
	}
	all, err := n.node.Nodes(ctx)
	if err != nil {
		return page, err
	}
	rows := []state.Node{nodeRow(all.Self)}
	for _, r := range all.Others {
		if r.Silent && all.Hears != nil && all.Hears(r.Life()) {
			r.Silent = false
		}
		rows = append(rows, nodeRow(r))
	}
	page = state.Select(q, rows, func(r *state.Node) string { return fmt.Sprintf("%010s", r.ID) })
	for _, name := range all.Away {
		page.Unreachable = append(page.Unreachable, state.Unreachable{Node: name, Why: tableAway})
	}
	return page, nil
}

// tableAway is why what a carrier of the tables has is missing.
const tableAway = "the control plane does not answer: nodes are ALIVE that this one hears itself, and of others the state is as it was last told"

// Load is what a node has free.
type Load struct {
	Free                  map[string]float64
	StoreLimit, StoreHeld uint64
}

// Load is what this node has free. What does not answer in time is missing.
func (n *Inspector) Load(ctx context.Context, _ Empty) (l Load, err error) {
	g := n.newGather(ctx)
	g.raylet()
	part(g, "objectstore", n.storeFigures, func(s *metrics.Snapshot, st state.Store) { s.Store = st })
	g.wg.Wait()
	for name, r := range g.out.Resources {
		if l.Free == nil {
			l.Free = make(map[string]float64)
		}
		l.Free[name] = r.Free
	}
	l.StoreLimit, l.StoreHeld = g.out.Store.Limit, g.out.Store.Held
	return l, nil
}

func nodeRow(r gcs.NodeRecord) state.Node {
	row := state.Node{
		ID: r.Home.String(), Name: r.Name, Role: r.Role, State: state.NodeAlive, Address: r.Address, PID: r.PID, Version: r.Version, Epoch: r.Epoch,
		Started: r.Started, Heard: int64(r.Heard), Resources: r.Resources, Labels: r.Labels,
		Reached: r.Addresses[gcs.AtNodes],
	}
	switch {
	case r.Dead:
		row.State = state.NodeDead
	case r.Silent:
		row.State = state.NodeSilent
	}
	return row
}
