package owner

import (
	"slices"

	"mobula/objectstore"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// dispatchAll pushes ready tasks over the leases of every class that changed, and calls to
// every actor that changed.
func (c *Core) dispatchAll() {
	for i := 0; i < len(c.dirtyClass); i++ {
		k := c.dirtyClass[i]
		k.dirty = false
		c.dispatch(k)
		c.readAhead(k)
		c.want(k)
	}
	clear(c.dirtyClass)
	c.dirtyClass = c.dirtyClass[:0]
	for i := 0; i < len(c.dirtyActor); i++ {
		a := c.dirtyActor[i]
		a.dirty = false
		c.pump(a)
	}
	clear(c.dirtyActor)
	c.dirtyActor = c.dirtyActor[:0]
	c.drain() // arguments found lost on the way
}

// dispatch shares a class's ready tasks out among its leases: as many a lease as its
// pipeline takes, and no more than an even share, so that none idles beside a long queue.
// A pipeline that is nearly full is left to run down a little, so that pushes stay batched.
func (c *Core) dispatch(k *classRec) {
	if k.ready.n == 0 || len(k.leases) == 0 || c.ended || c.cancelling() {
		return
	}
	depth := c.depth(k)
	left := 0 // leases that take tasks
	for _, l := range k.leases {
		if l.takes() {
			left++
		}
	}
	if left > 1 {
		if k.ready.n == 1 {
			if l := k.warmest(); l != nil {
				c.fill(k, l, 1)
				return
			}
		}
		k.next++
	}
	for i := range k.leases {
		l := k.leases[(k.next+i)%len(k.leases)]
		if !l.takes() {
			continue
		}
		if k.ready.n == 0 {
			return
		}
		share := (k.ready.n + left - 1) / left
		left--
		load := l.load()
		if load > 0 && load > depth-(depth+3)/4 {
			continue
		}
		c.fill(k, l, min(depth-load, share))
	}
}

// warmest gives the lease that has nothing to do since the shortest time, or nil. A single task goes there: its worker is awake still, and where tasks
// come one at a time the other leases are returned.
func (k *classRec) warmest() *leaseRec {
	var best *leaseRec
	for _, l := range k.leases {
		if l.takes() && l.load() == 0 && (best == nil || l.idleAt > best.idleAt) {
			best = l
		}
	}
	return best
}

// readAhead advises the store of the stored arguments of the tasks that come next, one a lease, while those
// before them run. Where tasks are short they are pushed ahead, and their arguments are in memory
// most of the time.
func (c *Core) readAhead(k *classRec) {
	if k.ready.n == 0 || !k.known || c.depth(k) > 1 || c.ended {
		return
	}
	t := k.ready.head
	for range k.leases {
		if t == nil {
			return
		}
		if t.spec != nil && !slices.Contains(k.ahead, t.id()) && c.argsOf(t) == argsStored {
			if len(k.ahead) > 2*len(k.leases) {
				k.ahead = slices.Delete(k.ahead, 0, len(k.leases))
			}
			k.ahead = append(k.ahead, t.id())
			c.toStore(objectstore.ReadAhead{IDs: c.storedArgs(t)})
		}
		t = t.next
	}
}

// takes tells whether tasks are pushed over the lease. One that gave back what waited behind
// a long task gets no more until that has ended.
func (l *leaseRec) takes() bool { return l.state == lease.Active && !l.slow }

// fill pushes up to n tasks of the class's queue over a lease. A task with stored arguments
// goes only to an idle lease: pinned and queued behind a task that waits for memory, its
// arguments would be memory that nothing can free.
func (c *Core) fill(k *classRec, l *leaseRec, n int) {
	if n > len(l.out) && l.out == nil && n > 1 {
		l.out = make([]wire.ExecTask, 0, n)
	}
	for ; n > 0 && k.ready.head != nil; n-- {
		t := k.ready.head
		if t.spec == nil {
			if !c.pageIn(t) {
				return
			}
		}
		var args []wire.ArgValue
		if len(t.spec.Args) > 0 {
			st := c.argsOf(t)
			if st == argsAgain {
				t.unlist()
				c.move(t, task.Requeue)
				t.flags |= taskFront
				c.workQ = append(c.workQ, t)
				continue
			}
			if st == argsHeavy {
				t.unlist()
				c.packArgs(t)
				continue
			}
			if st == argsStored {
				if l.load() > 0 {
					return
				}
				t.unlist()
				t.start++
				c.pinArgs(t, l)
				continue
			}
			args, _ = c.argValues(t, nil)
		}
		t.unlist()
		t.start++
		c.push(l, t, args)
	}
}

// push sends one attempt. Its number is given out already.
func (c *Core) push(l *leaseRec, t *taskRec, args []wire.ArgValue) {
	t.lease = l
	l.out = append(l.out, wire.ExecTask{Spec: t.spec, Attempt: t.start, Args: args})
	l.lane.push(t)
	t.flags &^= taskAdopted
	c.move(t, task.Push)
	c.remindUnneeded(t)
	c.stats.Pushed++
	if l.lane.len() == 1 && l.actor == nil {
		c.move(t, task.Start)
	}
	c.touchLease(l)
}

func (c *Core) touchLease(l *leaseRec) {
	if !l.dirty {
		l.dirty = true
		c.dirtyLease = append(c.dirtyLease, l)
	}
}

// flushLeases sends what was pushed, one message a lease, and looks at the leases that
// something ended on.
func (c *Core) flushLeases() {
	for i := 0; i < len(c.dirtyLease); i++ {
		l := c.dirtyLease[i]
		l.dirty = false
		c.sendPushed(l)
		if l.load() == 0 {
			c.leaseIdle(l)
		}
	}
	clear(c.dirtyLease)
	c.dirtyLease = c.dirtyLease[:0]
}

// sendPushed sends what was pushed over a lease in this step.
func (c *Core) sendPushed(l *leaseRec) {
	if len(l.out) > 0 && l.state != lease.Ended && l.state != lease.Lost {
		c.toClient(l.worker, &wire.Exec{Lease: l.id, Tasks: l.out})
	}
	l.out = nil
}

// toLease sends a worker a message about a task that it was given over a lease. One that was pushed in this step goes first: the end
// of what the worker does not know yet would say nothing to it.
func (c *Core) toLease(l *leaseRec, m wire.Msg) {
	c.sendPushed(l)
	c.toClient(l.worker, m)
}

// depth is how many tasks of a class are pushed ahead over one lease.
func (c *Core) depth(k *classRec) int {
	if !k.known || k.solo || k.kind == wire.TaskActorCreate {
		return 1
	}
	if k.runNs <= 0 {
		return c.cfg.MaxPipeline
	}
	return int(min(max(int64(c.cfg.PipelineTime)/k.runNs, 1), int64(c.cfg.MaxPipeline)))
}

// measured takes one run time into the class's mean. A long one counts at once, and is
// forgotten slowly: to push too much is worse than to push too little.
func (k *classRec) measured(ns int64) {
	if !k.known {
		k.known, k.runNs = true, ns
		return
	}
	k.runNs += (ns - k.runNs) / 8
}

// want tells the scheduler how many tasks wait beyond the leases held, when the number
// changed from or to nothing, doubled or halved. That nothing waits it must be told, though it
// has granted as many leases as were wanted: else it goes on granting.
func (c *Core) want(k *classRec) {
	n := k.ready.n
	if c.ended || c.cancelling() {
		n = 0
	}
	if n == 0 && !k.wants || n != 0 && k.told != 0 && n < 2*k.told && 2*n > k.told {
		return
	}
	if c.setWants(k, n); n > 0 {
		c.stats.LeaseRequests++
		c.spareIdle()
	}
	c.toSched(sched.Want{Key: sched.ClassKey{Job: c.cfg.Job, Class: k.id}, Opts: k.opts, Kind: k.kind, Backlog: n})
}

// setWants notes what the scheduler has been told of a class.
func (c *Core) setWants(k *classRec, n int) {
	switch {
	case n > 0 && !k.wants:
		c.wanting++
	case n == 0 && k.wants:
		c.wanting--
	}
	k.told, k.wants = n, n > 0
}
