package sched

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// resync has the owners that a new core has asked and that have not answered.
type resync struct {
	epoch   uint64
	limit   time.Duration          // of the wait for an owner
	over    resyncOver             // ends the wait
	pending map[ids.JobID]struct{} // before they do nothing is granted
	late    map[ids.JobID]struct{} // they are not waited for any more

	overdrew bool // an answer came late, and what it named may take more than there is
}

func (r *resync) waits() bool { return len(r.pending) > 0 }

func (c *Core) startResync(cfg Config) {
	if len(cfg.Jobs) == 0 {
		return
	}
	c.resync = resync{epoch: cfg.Epoch, limit: cfg.ResyncTimeout, over: resyncOver{epoch: cfg.Epoch}, pending: make(map[ids.JobID]struct{})}
	if c.resync.limit <= 0 {
		c.resync.limit = DefaultResyncTimeout
	}
	for _, j := range cfg.Jobs {
		c.resync.pending[j] = struct{}{}
		c.tell(j, Resync{Epoch: cfg.Epoch})
	}
	c.emit(After{D: c.resync.limit, Ev: c.resync.over})
}

// awaitRestarted waits for an owner that is restarted before it has answered as long as for one that is asked now: it waits for its clients first.
func (c *Core) awaitRestarted(j ids.JobID) {
	if _, asked := c.resync.pending[j]; asked {
		c.resync.over.nth++
		c.emit(After{D: c.resync.limit, Ev: c.resync.over})
	}
}

// resyncOver ends the wait for owners that did not answer. nth is how often it was put off.
type resyncOver struct {
	epoch uint64
	nth   int
}

func (resyncOver) schedEvent() {}

// noteLate goes on without the owners that did not answer. A node may reach them again later.
func (r *resync) noteLate() { r.pending, r.late = nil, r.pending }

func (c *Core) resynced(j ids.JobID) {
	delete(c.resync.pending, j)
	delete(c.resync.late, j)
}

// onHoldings adopts what an owner says it holds. If the node has shrunk, or has granted what it had before a late answer, that may overdraw its resources;
// then nothing is granted until enough is returned. An owner that was lost while it answered answers again: its leases were repeated to it meanwhile, and its
// wants forgotten.
func (c *Core) onHoldings(now int64, ev Holdings) {
	if ev.Epoch == 0 || ev.Epoch != c.resync.epoch {
		return
	}
	_, asked := c.resync.pending[ev.Job]
	_, late := c.resync.late[ev.Job]
	if asked || late {
		c.resynced(ev.Job)
		c.resync.overdrew = c.resync.overdrew || late
		for _, h := range ev.Held {
			if h.Key.Job == ev.Job && c.leases[h.Lease] == nil {
				c.adopt(now, h)
			}
		}
	}
	for _, w := range ev.Wants {
		switch {
		case w.Key.Job != ev.Job:
		case w.Backlog > 0:
			c.onWant(w)
		default:
			c.wasRefused(w)
		}
	}
}

// wasRefused takes over a class that a scheduler before this one has refused.
func (c *Core) wasRefused(w Want) {
	cl := c.classOf(w.Key, w.Opts, w.Kind)
	if cl.bad = c.refusal(cl); cl.bad == nil {
		c.tell(w.Key.Job, Feasible{Key: w.Key})
	}
	c.forget(cl)
}

func (c *Core) adopt(now int64, h Held) {
	l := &lease{
		id: h.Lease, class: c.classOf(h.Key, h.Opts, h.Kind), worker: h.Worker, granted: now,
		up: h.Up && h.Kind == wire.TaskActorCreate,
	}
	s := Running
	switch {
	case h.Ask != Ask{}:
		s, l.asks = Resuming, []Ask{h.Ask}
		c.resuming.Push(l)
	case h.Blocked:
		s = Blocked
	}
	c.add(l, s)
	if h.Lease.Home() == c.nextID.Home() {
		c.nextID = max(c.nextID, h.Lease)
	}
	c.emit(AdoptLease{NeedWorker: c.needWorker(l), Worker: h.Worker})
}

// onOwnerRestarted repeats its leases to an owner that lost its tables, and forgets its wants, which it will send
// again. A lease that waits for its worker ends with the want it was for.
func (c *Core) onOwnerRestarted(ev OwnerRestarted) {
	id := ev.Job
	c.awaitRestarted(id)
	j := c.byJob[id]
	if j == nil {
		return
	}
	for _, cl := range sortedClasses(j) {
		cl.lastWant, cl.backlog, cl.refillAt = 0, 0, 0
		c.place(cl)
		c.cancelStarting(cl)
		for _, l := range cl.leases {
			c.tell(id, Granted{Key: cl.key, Lease: l.id, Worker: l.worker, Up: l.up, Blocked: l.state == Blocked || l.state == Resuming, Epoch: ev.Epoch})
			if l.reclaimed {
				c.tell(id, Reclaim{Lease: l.id})
			}
		}
		c.forget(cl)
	}
}

// sortedClasses gives a job's classes in a fixed order, so that a core is a function of its events.
func sortedClasses(j *job) []*class {
	return slices.SortedFunc(maps.Values(j.classes), func(a, b *class) int { return cmp.Compare(a.key.Class, b.key.Class) })
}
