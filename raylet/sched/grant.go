package sched

import (
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// schedule does everything that the present state allows: resumes, then grants, then reclaims.
func (c *Core) schedule(now int64) {
	if c.resync.waits() {
		return // the free resources are not known yet
	}
	c.resume(now)
	for c.grantOne(now) {
	}
	c.reclaim(now)
}

// resume gives CPUs back to tasks that leave a get, strictly in order: none overtakes a large one, so it is not
// starved. A task that lacks only CPU that actors took for life goes on without it: the actors may live until this
// very task ends.
func (c *Core) resume(now int64) {
	for c.resuming.Len() > 0 {
		l := c.resuming.Front()
		if l.need.of(resCPU) > 0 && c.res.free[resCPU] < c.cpuToResume(l) {
			return
		}
		c.resuming.Pop()
		c.move(now, l, onCPU)
		for _, ask := range l.asks {
			c.counters.Resumes++
			c.tell(l.class.key.Job, Resumed{Lease: l.id, Ask: ask})
		}
		l.asks = l.asks[:0]
	}
}

// cpuToResume is how much CPU must be free for a task that leaves a get: what it takes, or all that can become
// free.
func (c *Core) cpuToResume(l *lease) int64 {
	return min(l.need.of(resCPU), c.res.total[resCPU]-c.res.stuck[resCPU])
}

// grantOne makes one lease for the next class in turn that fits; false if none does.
func (c *Core) grantOne(now int64) bool {
	c.chooseHead()
	if c.waitingNoCPU == 0 && (c.res.free[resCPU] <= 0 || c.resuming.Len() > 0) {
		return false // nothing that waits can fit
	}
	for je := c.jobs.Front(); je != nil; je = je.Next() {
		for ce := je.Value.(*job).waiting.Front(); ce != nil; ce = ce.Next() {
			if cl := ce.Value.(*class); c.fits(cl) {
				return c.start(now, cl)
			}
		}
	}
	return false
}

// chooseHead makes the first class in turn the head of the line, if what it lacks can become free. It stays the
// head until it is served, however turns change.
func (c *Core) chooseHead() {
	if c.head != nil && c.attainable(c.head) {
		return
	}
	c.head = nil
	for je := c.jobs.Front(); je != nil; je = je.Next() {
		for ce := je.Value.(*job).waiting.Front(); ce != nil; ce = ce.Next() {
			if cl := ce.Value.(*class); c.attainable(cl) {
				if c.lacksFree(cl) {
					c.head = cl
				}
				return
			}
		}
	}
}

// fits tells whether a lease of the class can be made now without taking what is collected for the head of the
// line.
func (c *Core) fits(cl *class) bool {
	if c.paused && c.running > 0 {
		return false
	}
	if len(cl.need) == 0 {
		return cl.running < maxIdleSlots
	}
	for _, x := range cl.need {
		if x.r == resCPU && c.resuming.Len() > 0 {
			return false
		}
		free := c.res.free[x.r]
		if c.head != nil && c.head != cl {
			free -= c.head.need.of(x.r)
		}
		if free < x.n {
			return false
		}
	}
	return true
}

// lacksFree tells whether the node has too little free for the class, regardless of those in front of it.
func (c *Core) lacksFree(cl *class) bool {
	for _, x := range cl.need {
		if c.res.free[x.r] < x.n {
			return true
		}
	}
	return false
}

// attainable tells whether leases that end by themselves or by Reclaim can free enough for the class. Leases
// blocked in a get do not count: they may wait for the very tasks that collecting resources would hold up.
func (c *Core) attainable(cl *class) bool {
	for _, x := range cl.need {
		if c.res.total[x.r]-c.res.stuck[x.r] < x.n {
			return false
		}
	}
	return true
}

// start makes a lease and asks the pool for its slot; the turn passes on. It is false where the home has no number left for one: then
// nothing that waits can be served any more, and is refused.
func (c *Core) start(now int64, cl *class) bool {
	id, left := ids.Next(c.nextID)
	if !left {
		c.recheckAll()
		return false
	}
	c.nextID = id
	l := &lease{id: id, class: cl}
	c.add(l, Starting)
	cl.backlog--
	cl.fresh = false
	c.toBack(cl)
	if cl.backlog == 0 {
		c.unqueue(cl)
		cl.refillAt = now + c.quantum
		if !cl.listed {
			cl.listed = true
			c.exhausted = append(c.exhausted, cl)
		}
		c.wakeAt(now, cl.refillAt)
	}
	c.emit(c.needWorker(l))
	return true
}

// add puts a new lease into every table.
func (c *Core) add(l *lease, s State) {
	cl := l.class
	l.state, l.need = s, cl.need
	if l.up {
		l.need = cl.life
	}
	l.at = len(cl.leases)
	cl.leases = append(cl.leases, l)
	c.leases[l.id] = l
	c.account(l, +1)
}

func (c *Core) needWorker(l *lease) NeedWorker {
	cl := l.class
	n := NeedWorker{Lease: l.id, Job: cl.key.Job, Slot: cl.slot, Actor: cl.kind == wire.TaskActorCreate}
	if cl.opts != nil {
		n.Func = cl.opts.Func
		if cl.slot == SlotActor {
			n.Process = cl.opts.Process
		}
	}
	if i, ok := c.res.index[Memory]; ok {
		n.Memory = cl.need.of(i)
	}
	return n
}

// wakeAt asks for a Tick, unless one comes sooner.
func (c *Core) wakeAt(now, at int64) {
	if c.wake != 0 && c.wake <= at {
		return
	}
	c.wake = at
	c.emit(After{D: time.Duration(at - now), Ev: Tick{}})
}
