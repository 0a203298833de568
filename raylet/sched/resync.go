package sched

import (
	"cmp"
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/wire"
)

// resync has the owners whose answer a new core still needs before it may grant.
type resync struct {
	epoch   uint64
	pending map[ids.JobID]struct{}
}

func (r *resync) waits() bool { return len(r.pending) > 0 }

func (c *Core) startResync(cfg Config) {
	if len(cfg.Jobs) == 0 {
		return
	}
	d := cfg.ResyncTimeout
	if d <= 0 {
		d = DefaultResyncTimeout
	}
	c.resync = resync{epoch: cfg.Epoch, pending: make(map[ids.JobID]struct{})}
	for _, j := range cfg.Jobs {
		c.resync.pending[j] = struct{}{}
		c.tell(j, Resync{Epoch: cfg.Epoch})
	}
	c.emit(After{D: d, Ev: resyncOver{epoch: cfg.Epoch}})
}

// resyncOver ends the wait for owners that did not answer.
type resyncOver struct{ epoch uint64 }

func (resyncOver) schedEvent() {}

func (c *Core) resynced(j ids.JobID) { delete(c.resync.pending, j) }

// onHoldings adopts what an owner says it holds. If the node has shrunk, that may overdraw its resources; then
// nothing is granted until enough is returned.
func (c *Core) onHoldings(now int64, ev Holdings) {
	if _, asked := c.resync.pending[ev.Job]; !asked || ev.Epoch != c.resync.epoch {
		return
	}
	c.resynced(ev.Job)
	for _, h := range ev.Held {
		if h.Key.Job == ev.Job && c.leases[h.Lease] == nil {
			c.adopt(now, h)
		}
	}
	for _, w := range ev.Wants {
		if w.Key.Job == ev.Job {
			c.onWant(w)
		}
	}
}

func (c *Core) adopt(now int64, h Held) {
	l := &lease{
		id: h.Lease, class: c.classOf(h.Key, h.Opts, h.Kind), worker: h.Worker, granted: now,
		up: h.Up && h.Kind == wire.TaskActorCreate,
	}
	s := Running
	switch {
	case h.Resumes > 0:
		s, l.resumes = Resuming, h.Resumes
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
