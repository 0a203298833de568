package authority

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"strconv"

	"mobula/internal/trust"
)

// GossipKeys are the keys of the membership's gossip, 32 bytes each: the first one encrypts. They follow from the cluster's secret, so no table has them.
func (a *Authority) GossipKeys(ctx context.Context) ([][]byte, error) {
	of, err := a.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	row, err := a.Gossip(ctx)
	if err != nil {
		return nil, err
	}
	return a.derive(of.ID, row)
}

// derive makes the keys of the generations that a row has.
func (a *Authority) derive(cluster string, row trust.GossipRow) (out [][]byte, err error) {
	for _, generation := range row.Keys() {
		info := "mobula: key of the gossip"
		if generation > 1 {
			info += ", generation " + strconv.FormatUint(generation, 10)
		}
		key, err := hkdf.Key(sha256.New, a.cfg.Secret[:], []byte(cluster), info, 32)
		if err != nil {
			return nil, fmt.Errorf("derive a key: %w", err)
		}
		out = append(out, key)
	}
	return out, nil
}

// Gossip says which keys the gossip has, and whether they are rotated.
func (a *Authority) Gossip(ctx context.Context) (trust.GossipRow, error) {
	row, revision, err := read[trust.GossipRow](ctx, a.cfg.Tables, gossipKey)
	if err == nil && revision == 0 {
		row = trust.FirstGossip()
	}
	return row, err
}

// RotateGossip begins to replace the gossip's key. StepGossip leads it to its end.
func (a *Authority) RotateGossip(ctx context.Context) error {
	return a.changeGossip(ctx, func(row trust.GossipRow) trust.GossipRow { return row.Rotated().Next(a.cfg.Wall().UTC(), false) })
}

// StepGossip takes a rotation to its next stage, if it is in this one. all tells that every node has the keys of the stage.
func (a *Authority) StepGossip(ctx context.Context, stage uint64, all bool) error {
	return a.changeGossip(ctx, func(row trust.GossipRow) trust.GossipRow {
		if row.Stage != stage {
			return row // another server was first
		}
		return row.Next(a.cfg.Wall().UTC(), all)
	})
}

func (a *Authority) changeGossip(ctx context.Context, to func(trust.GossipRow) trust.GossipRow) error {
	return update(ctx, a.cfg.Tables, gossipKey, func(row trust.GossipRow, exists bool) (trust.GossipRow, error) {
		if !exists {
			row = trust.FirstGossip()
		}
		next := to(row)
		if !exists && next == row {
			return trust.GossipRow{}, nil // what is not written is the first row
		}
		return next, nil
	})
}
