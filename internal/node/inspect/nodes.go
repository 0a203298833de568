package inspect

import (
	"context"
	"fmt"

	"mobula/gcs"
	"mobula/internal/state"
)

// Nodes lists the nodes that share the control plane. One that has no other than its own is the only one, whether that runs or not.
func (n *Inspector) Nodes(ctx context.Context, q state.Query) (page state.List[state.Node], err error) {
	if q, err = state.Check[state.Node](q); err != nil {
		return page, err
	}
	self, others, err := n.node.Nodes(ctx)
	if err != nil {
		return page, err
	}
	rows := []state.Node{nodeRow(self)}
	for _, r := range others {
		rows = append(rows, nodeRow(r))
	}
	return state.Select(q, rows, func(r *state.Node) string { return fmt.Sprintf("%010s", r.ID) }), nil
}

func nodeRow(r gcs.NodeRecord) state.Node {
	row := state.Node{
		ID: r.Home.String(), Name: r.Name, State: state.NodeAlive, Address: r.Address, PID: r.PID, Version: r.Version, Epoch: r.Epoch,
		Started: r.Started, Heard: int64(r.Heard), Resources: r.Resources, Labels: r.Labels,
		Role: r.Role, Reached: r.Addresses[gcs.AtNodes],
	}
	switch {
	case r.Dead:
		row.State = state.NodeDead
	case r.Silent:
		row.State = state.NodeSilent
	}
	return row
}
