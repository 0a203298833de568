package sched

import (
	"container/list"
	"maps"
	"math"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// class is the state of one scheduling class.
type class struct {
	key      ClassKey
	job      *job
	opts     *wire.TaskOptions
	kind     wire.TaskKind
	slot     Slot
	need     demand      // what a lease takes
	life     demand      // what an actor takes once it is up
	lastWant int         // the backlog of the last Want
	backlog  int         // told, minus the leases granted since
	fresh    bool        // it has begun to want and was not served since
	invalid  *errs.Error // what is wrong with its options
	bad      *errs.Error // why the node cannot serve it now; its owner was told
	refillAt int64       // when a used-up backlog is refilled, or whenUp; 0: it is not used up
	listed   bool        // it is in Core.exhausted, where it may be longer than its backlog is used up

	leases  []*lease
	running int // leases that are starting or running, without lifetime leases of actors

	spot *list.Element // in job.waiting; nil if it does not wait
	use  int64         // scratch of the reclaim pass
}

// job groups the classes of one job.
type job struct {
	id      ids.JobID
	classes map[Class]*class
	waiting list.List     // of *class, the next to be served first; no queue.Queue, since a class leaves from any place
	place   *list.Element // in Core.jobs; nil if none of its classes waits
	use     int64
}

func slotOf(opts *wire.TaskOptions, kind wire.TaskKind) Slot {
	switch {
	case opts != nil && opts.Isolate:
		return SlotOwn
	case kind == wire.TaskActorCreate:
		return SlotActor
	}
	return SlotTask
}

// classOf finds a class or makes it. Options are read once: equal keys mean equal options.
func (c *Core) classOf(key ClassKey, opts *wire.TaskOptions, kind wire.TaskKind) *class {
	j := c.byJob[key.Job]
	if j == nil {
		j = &job{id: key.Job, classes: make(map[Class]*class)}
		c.byJob[key.Job] = j
	}
	if cl := j.classes[key.Class]; cl != nil {
		return cl
	}
	cl := &class{key: key, job: j, opts: opts, kind: kind, slot: slotOf(opts, kind)}
	cl.need, cl.life, cl.invalid = c.res.demandOf(opts, kind)
	j.classes[key.Class] = cl
	return cl
}

func (c *Core) find(key ClassKey) *class {
	if j := c.byJob[key.Job]; j != nil {
		return j.classes[key.Class]
	}
	return nil
}

// forget drops a class that neither wants nor holds anything, so that a job with many classes pays only for live
// ones. A refused class is kept, so that its owner can be told when that ends.
func (c *Core) forget(cl *class) {
	if cl.lastWant > 0 || len(cl.leases) > 0 || cl.bad != nil && cl.invalid == nil {
		return
	}
	c.unqueue(cl)
	delete(cl.job.classes, cl.key.Class)
	if len(cl.job.classes) == 0 {
		delete(c.byJob, cl.job.id)
	}
}

// want sets a class's backlog and its place among the waiting classes. A class that can never be served is refused
// and forgotten.
func (c *Core) want(cl *class, n int) {
	if n > 0 {
		c.counters.Requests++
		if cl.lastWant == 0 && cl.running == 0 {
			cl.fresh = true
		}
		if cl.bad = c.refusal(cl); cl.bad != nil {
			c.refuse(cl)
			return
		}
	}
	cl.lastWant, cl.backlog, cl.refillAt = n, n, 0
	c.place(cl)
}

// refusal says why the node cannot serve the class now.
func (c *Core) refusal(cl *class) *errs.Error {
	if cl.invalid != nil {
		return cl.invalid
	}
	if _, left := ids.Next(c.nextID); !left {
		return errs.New(errs.CodeUnschedulable, "home %v has given out %d leases, all there are: give the node a new directory", c.nextID.Home(), ids.MaxNumber)
	}
	if err := c.elsewhere(cl.opts); err != nil {
		return err
	}
	return c.res.infeasible(cl.need, funcName(cl.opts))
}

func (c *Core) refuse(cl *class) {
	cl.lastWant, cl.backlog, cl.refillAt = 0, 0, 0
	c.place(cl)
	c.counters.Infeasible++
	c.tell(cl.key.Job, Infeasible{Key: cl.key, Err: cl.bad})
}

// recheckAll looks at all classes again after the node has changed.
func (c *Core) recheckAll() {
	for _, id := range slices.Sorted(maps.Keys(c.byJob)) {
		for _, cl := range sortedClasses(c.byJob[id]) {
			c.recheck(cl)
		}
	}
}

// recheck looks at a class again after the node has changed.
func (c *Core) recheck(cl *class) {
	was := cl.bad
	cl.bad = c.refusal(cl)
	switch {
	case cl.bad != nil && cl.lastWant > 0:
		c.refuse(cl)
	case cl.bad == nil && was != nil:
		c.tell(cl.key.Job, Feasible{Key: cl.key})
		c.forget(cl)
	}
}

// place gives a class with a backlog its place in the queue, and removes one without.
func (c *Core) place(cl *class) {
	if cl.backlog > 0 {
		c.enqueue(cl)
	} else {
		c.unqueue(cl)
	}
}

// refill goes on with classes whose backlog was used up some time ago and whose owners did not say that nothing is
// left: owners do not report each task or lease. Leases that start are still to come to the owner, so while there are enough of them
// a class waits for the next one that is up.
func (c *Core) refill(now int64) {
	rest := c.exhausted[:0]
	for _, cl := range c.exhausted {
		if cl.refillAt == 0 || cl.lastWant == 0 || c.find(cl.key) != cl {
			cl.listed = false
			continue
		}
		if now >= cl.refillAt {
			if more := (cl.lastWant+1)/2 - cl.starting(); more > 0 {
				cl.refillAt, cl.listed = 0, false
				cl.backlog = max(cl.backlog, more)
				c.place(cl)
				continue
			}
			cl.refillAt = whenUp
		}
		rest = append(rest, cl)
		if cl.refillAt != whenUp {
			c.wakeAt(now, cl.refillAt)
		}
	}
	clear(c.exhausted[len(rest):])
	c.exhausted = rest
}

// whenUp is a class's refillAt where that is to be set once the next of its leases is up.
const whenUp = math.MaxInt64

// starting counts the leases whose workers start.
func (cl *class) starting() (n int) {
	for _, l := range cl.leases {
		if l.state == Starting {
			n++
		}
	}
	return n
}

// enqueue puts the class at the back of its job's queue, unless it is there.
func (c *Core) enqueue(cl *class) {
	if cl.spot != nil {
		return
	}
	cl.spot = cl.job.waiting.PushBack(cl)
	if cl.need.of(resCPU) == 0 {
		c.waitingNoCPU++
	}
	if cl.job.place == nil {
		cl.job.place = c.jobs.PushBack(cl.job)
	}
}

func (c *Core) unqueue(cl *class) {
	if cl.spot == nil {
		return
	}
	cl.job.waiting.Remove(cl.spot)
	cl.spot = nil
	if cl.need.of(resCPU) == 0 {
		c.waitingNoCPU--
	}
	if cl.job.waiting.Len() == 0 && cl.job.place != nil {
		c.jobs.Remove(cl.job.place)
		cl.job.place = nil
	}
	if c.head == cl {
		c.head = nil
	}
}

// toBack ends the turn of a class and of its job.
func (c *Core) toBack(cl *class) {
	if c.head == cl {
		c.head = nil
	}
	if cl.spot != nil {
		cl.job.waiting.MoveToBack(cl.spot)
		c.jobs.MoveToBack(cl.job.place)
	}
}
