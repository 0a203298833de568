package owner

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/lease"
	"mobula/raylet/sched"
)

// schedResync tells a scheduler that was restarted what this owner holds and wants.
func (ls *leases) schedResync(epoch uint64) {
	ls.memory.copies.tellKnown()
	h := sched.Holdings{Job: ls.cfg.Job, Epoch: epoch, Restarted: ls.epoch}
	for _, id := range slices.Sorted(maps.Keys(ls.byID)) {
		l := ls.byID[id]
		if l.state == lease.Lost || l.actor != nil && l.actor.rec == nil {
			continue
		}
		k := l.class
		if l.actor != nil {
			k = l.actor.rec.class
		}
		var ask sched.Ask
		if l.state == lease.Resuming {
			ask = l.ask
		}
		h.Held = append(h.Held, sched.Held{
			Lease: l.id, Key: sched.ClassKey{Job: ls.cfg.Job, Class: k.id}, Opts: k.opts, Kind: k.kind, Worker: l.worker.id,
			Up: l.actor != nil, Blocked: l.lent || l.state == lease.Blocked || l.state == lease.Resuming, Ask: ask,
		})
	}
	for _, id := range slices.Sorted(maps.Keys(ls.classes.byID)) {
		k := ls.classes.byID[id]
		if ls.setWants(k, k.ready.n); k.wantSent || k.infeasible != nil {
			h.Wants = append(h.Wants, sched.Want{Key: sched.ClassKey{Job: ls.cfg.Job, Class: k.id}, Opts: k.opts, Kind: k.kind, Backlog: k.ready.n})
		}
	}
	ls.toSched(h)
	for _, id := range slices.Sorted(maps.Keys(ls.clients.byID)) {
		if cl := ls.clients.byID[id]; cl.drainRequested && !cl.gone { // the pool before may not have told it to exit yet: others run in it
			ls.toSched(sched.DrainWorker{Worker: id, Err: errs.New(errs.CodeCancelled, "a task on %s was abandoned", cl.workerName())})
		}
	}
}

func (ls *leases) adoptLease(id ids.LeaseID, cl *clientRec, k *classRec) *leaseRec {
	if l := ls.byID[id]; l != nil && l.actor == nil {
		return l
	} else if l != nil || id == 0 || cl == nil {
		return nil
	}
	l := &leaseRec{id: id, worker: cl, class: k, state: lease.Active}
	ls.addLease(l)
	return l
}
