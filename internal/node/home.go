package node

import (
	"context"
	"path/filepath"

	"mobula/internal/home"
	"mobula/internal/ids"
)

// openHome begins a life of the node's directory.
func (n *Node) openHome(ctx context.Context) (*home.Home, error) {
	cfg := home.Config{Identity: n.identity, Register: n.register(), Moved: n.cfg.Moved}
	if n.cfg.Keep {
		cfg.Dir, cfg.IdentityFile, cfg.LastJob = n.dir, filepath.Join(n.dir, identityName), lastJob(n.dir)
	}
	return home.Open(ctx, cfg)
}

// lastJob is the number of the last job of which the node's directory has a log, or what is left of one: release 0.4 counted from there.
func lastJob(dir string) uint64 {
	var last uint64
	for _, job := range append(loggedJobs(dir), numbered(filepath.Join(dir, lostName))...) {
		last = max(last, uint64(job)&ids.MaxNumber)
	}
	return last
}

// epochShift leaves room for the components that are built anew in one life.
const epochShift = 32

// newEpoch is for a component that is built anew: answers to the one before it, in this life or in one before, do not fit.
func (n *Node) newEpoch() uint64 { return n.home.Epoch()<<epochShift + n.epochs.Add(1) }

// spareLeases is room for the grants that a scheduler which was discarded had made and nobody has seen.
const spareLeases = 1 << 16

// lastLease is above every lease that was ever granted here, and of this home: there may be none behind it.
func (n *Node) lastLease(restart int) ids.LeaseID {
	last := n.home.Last(home.Leases)
	if restart > 0 {
		last = min(last+spareLeases, n.home.Row().Home.ID(ids.MaxNumber))
	}
	return ids.LeaseID(last)
}

// granted and startedWorker note what the raylet's core has counted. It goes on where that cannot be kept: should the node be killed then, its next life
// might give the number once more.
func (n *Node) granted(l ids.LeaseID)        { n.used(home.Leases, uint64(l)) }
func (n *Node) startedWorker(w ids.WorkerID) { n.used(home.Workers, uint64(w)) }

func (n *Node) used(k home.Kind, id uint64) {
	if err := n.home.Used(k, id); err != nil {
		n.limited.warn("ids that were given out could not be noted", "of", k, "err", err)
	}
}
