package node

import (
	"context"
	"path/filepath"

	"mobula/internal/home"
	"mobula/internal/ids"
	"mobula/remote"
)

// open begins a life of the node's directory, once ready has succeeded. reg is who gives the node its home.
func (h *numbers) open(ctx context.Context, b *base, reg home.Register, ready func() error) (err error) {
	cfg := home.Config{Identity: b.identity, Register: reg, Moved: b.cfg.Moved, Ready: ready}
	if b.cfg.Keep {
		cfg.Dir, cfg.IdentityFile, cfg.LastJob = b.dir, filepath.Join(b.dir, identityName), b.files.Last()
	}
	h.Home, err = home.Open(ctx, cfg)
	return err
}

// life is the node's present life.
func (h *numbers) life() remote.Life { return remote.Life{Home: h.Row().Home, Epoch: h.Epoch()} }

// epochShift leaves room for what is counted in one life.
const epochShift = 32

// newEpoch is for a component that is built anew: answers to the one before it, in this life or in one before, do not fit; nor do those to other nodes.
func (h *numbers) newEpoch() uint64 { return h.Row().Home.Epoch(h.Epoch(), h.epochs.Add(1)) }

// spareLeases is room for the grants that a scheduler which was discarded had made and nobody has seen.
const spareLeases = 1 << 16

// lastLease is above every lease that was ever granted here, and of this home: there may be none behind it.
func (h *numbers) lastLease(restart int) ids.LeaseID {
	last := h.Last(home.Leases)
	if restart > 0 {
		last = min(last+spareLeases, h.Row().Home.ID(ids.MaxNumber))
	}
	return ids.LeaseID(last)
}

// granted and startedWorker note what the raylet's core has counted. It goes on where that cannot be kept: should the node be killed then, its next life
// might give the number once more.
func (h *numbers) granted(l ids.LeaseID)        { h.used(home.Leases, uint64(l)) }
func (h *numbers) startedWorker(w ids.WorkerID) { h.used(home.Workers, uint64(w)) }

func (h *numbers) used(k home.Kind, id uint64) {
	if err := h.Used(k, id); err != nil {
		h.limited.warn("ids that were given out could not be noted", "of", k, "err", err)
	}
}

// close gives back what was not used.
func (h *numbers) close() error {
	if h.Home == nil {
		return nil
	}
	return h.Home.Close()
}
