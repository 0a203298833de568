package node

import (
	"context"
	"fmt"

	"mobula/gcs"
	"mobula/internal/state"
)

// listNodes lists the nodes that share the control plane. One that has no other than its own is the only one, whether that runs or not.
func (n *Node) listNodes(ctx context.Context, q state.Query) (page state.Page[state.Node], err error) {
	if q, err = state.Check[state.Node](q); err != nil {
		return page, err
	}
	self := nodeRow(n.nodeRecord())
	rows := []state.Node{self}
	if len(n.cfg.GCS) > 0 {
		records, err := n.askWait(ctx, gcs.List{Bucket: gcs.Nodes})
		if err != nil {
			return page, err
		}
		for _, r := range records {
			if row := nodeRow(r.(gcs.NodeRecord)); row.ID != self.ID { // of itself it knows more than the table
				rows = append(rows, row)
			}
		}
	}
	return state.Select(q, rows, func(r *state.Node) string { return fmt.Sprintf("%010s", r.ID) }), nil
}

func nodeRow(r gcs.NodeRecord) state.Node {
	row := state.Node{
		ID: r.Home.String(), Name: r.Name, State: state.NodeAlive, Address: r.Address, PID: r.PID, Version: r.Version, Epoch: r.Epoch,
		Started: r.Started, Heard: int64(r.Heard), Resources: r.Resources,
	}
	if r.Silent {
		row.State = state.NodeSilent
	}
	return row
}
