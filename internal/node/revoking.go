package node

import (
	"context"
	"slices"
	"strings"
	"time"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/state"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/remote"
)

// revoke ends all certificates of a node, and its life: each node cuts it off when it hears of that. The gossip gets a key that the node does not know.
func (w *wired) revoke(ctx context.Context, in state.RevokeRequest) (out state.RevokedNode, err error) {
	a, err := w.authorityHere()
	if err != nil {
		return out, err
	}
	row, err := w.homeOf(ctx, in.Node)
	if err != nil {
		return out, err
	}
	if row.Home == w.numbers.Row().Home {
		return out, errs.New(errs.CodeInvalid, "node %s is the one that is asked: ask another control-plane server to revoke it", w.cfg.Name)
	}
	role, err := w.roleOf(ctx, row)
	if err != nil {
		return out, err
	}
	if err := a.RevokeNode(ctx, row.Home, row.Epoch, in.Why); err != nil {
		return out, err
	}
	b, err := a.Publish(ctx, w.member.Bundle())
	if err != nil {
		return out, err
	}
	out = state.RevokedNode{Node: row.Node, Home: row.Home.String(), Epoch: row.Epoch, Bundle: b.Number}
	if role == trust.ControlPlane {
		out.Left = "the node was a control-plane server, and knows the cluster's secret: if that is in wrong hands, begin a new cluster"
	}
	if _, err := w.control.askWait(ctx, gcs.Fence{Life: remote.Life{Home: row.Home, Epoch: row.Epoch}}); err != nil {
		return out, err
	}
	if err := a.RotateGossip(ctx); err != nil {
		return out, err
	}
	b, err = a.Publish(ctx, w.member.Bundle())
	out.Bundle = b.Number
	return out, err
}

// homeOf finds the row of a node by its name or home.
func (w *wired) homeOf(ctx context.Context, node string) (gcs.HomeRecord, error) {
	records, err := w.control.askWait(ctx, gcs.List{Bucket: gcs.Homes})
	if err != nil {
		return gcs.HomeRecord{}, err
	}
	var found []gcs.HomeRecord
	for _, r := range records {
		h, ok := r.(gcs.HomeRecord)
		switch {
		case !ok:
		case h.Home.String() == node:
			return h, nil
		case h.Node == node:
			found = append(found, h)
		}
	}
	switch len(found) {
	case 0:
		return gcs.HomeRecord{}, errs.New(errs.CodeNotFound, "the cluster has no node %q: mobula list nodes shows those that it has", node)
	case 1:
		return found[0], nil
	}
	var homes []string
	for _, h := range found {
		homes = append(homes, h.Home.String())
	}
	return gcs.HomeRecord{}, errs.New(errs.CodeInvalid, "the cluster has had several nodes %q: say the home, one of %s", node, strings.Join(homes, ", "))
}

// roleOf is the role that a node has announced; none if it is gone.
func (w *wired) roleOf(ctx context.Context, row gcs.HomeRecord) (trust.Role, error) {
	rows, err := w.control.nodes(ctx)
	for _, n := range rows {
		if n.Home == row.Home {
			return trust.Role(n.Role), nil
		}
	}
	return trust.None, err
}

// rotateKey replaces a key of the cluster.
func (w *wired) rotateKey(ctx context.Context, in state.RotateRequest) (out state.Rotating, err error) {
	a, err := w.authorityHere()
	if err != nil {
		return out, err
	}
	if err := w.beginRotation(ctx, a, in); err != nil {
		return out, err
	}
	b, err := a.Publish(ctx, w.member.Bundle())
	if err != nil {
		return out, err
	}
	out = state.Rotating{What: in.What, Bundle: b.Number}
	behind, err := w.behind(ctx, b.Number, anyRole)
	for _, home := range behind {
		out.Behind = append(out.Behind, home.String())
	}
	slices.Sort(out.Behind)
	return out, err
}

// leastOverlap is for how long two roots are trusted at least.
const leastOverlap = time.Minute

func (w *wired) beginRotation(ctx context.Context, a *authority.Authority, in state.RotateRequest) error {
	switch {
	case in.What == state.RotateGossip:
		return a.RotateGossip(ctx)
	case in.What != state.RotateRoot:
		return errs.New(errs.CodeInvalid, "no key %q is rotated: say %s or %s", in.What, state.RotateGossip, state.RotateRoot)
	case !in.Finish && in.Overlap < leastOverlap:
		return errs.New(errs.CodeInvalid, "the overlap is %v; want %v or more, for all servers to hear of the new root over connections of the old one", in.Overlap, leastOverlap)
	case !in.Finish:
		return a.Rotate(ctx, in.Overlap)
	}
	b, err := a.Publish(ctx, w.member.Bundle()) // the last one, whether this node follows it or not
	if err != nil {
		return err
	}
	behind, err := w.behind(ctx, b.Number, anyRole)
	if err != nil {
		return err
	}
	if len(behind) > 0 {
		return errs.New(errs.CodeInvalid, "nodes %v do not have a certificate of the new root yet, and would be shut out: ask again when they do, or revoke them", behind)
	}
	return a.EndOverlap(ctx)
}
