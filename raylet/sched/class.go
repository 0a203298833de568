package sched

import (
	"container/list"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// class is what the core knows of one scheduling class.
type class struct {
	key     ClassKey
	job     *job
	opts    *wire.TaskOptions
	kind    wire.TaskKind
	slot    Slot
	need    demand      // to be granted
	life    demand      // of an actor once it is up
	told    int         // the backlog last told
	backlog int         // what is left of it: less the leases granted since
	fresh   bool        // began to want and has not been served since
	invalid *errs.Error // what is wrong with its options
	bad     *errs.Error // why it cannot be served as the node is now

	leases  []*lease
	running int // leases that are starting or running, actors for life not counted

	place *list.Element // in job.waiting, nil where it does not wait
	use   int64         // scratch of the reclaim pass
}

// job groups the classes of one job.
type job struct {
	id      ids.JobID
	classes map[Class]*class
	waiting list.List     // of *class, who is to be served next in front
	place   *list.Element // in Core.jobs, nil where none of its classes waits
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

// forget drops a class that neither wants nor holds anything, so that a job of many
// classes costs only what is live.
func (c *Core) forget(cl *class) {
	if cl.told > 0 || len(cl.leases) > 0 {
		return
	}
	c.unqueue(cl)
	delete(cl.job.classes, cl.key.Class)
	if len(cl.job.classes) == 0 {
		delete(c.byJob, cl.job.id)
	}
}

// want sets a class's backlog and its place among those that wait.
func (c *Core) want(cl *class, n int) {
	if n > 0 {
		c.counters.Requests++
		if cl.told == 0 && cl.running == 0 {
			cl.fresh = true
		}
	}
	cl.told, cl.backlog = n, n
	cl.bad = nil // so that a refusal is said again
	c.judge(cl)
}

// judge queues a class that wants and can be served. One that can never be is refused, once for
// each reason.
func (c *Core) judge(cl *class) {
	bad := cl.invalid
	if bad == nil {
		bad = c.res.infeasible(cl.need, funcName(cl.opts))
	}
	said := bad != nil && cl.bad != nil && bad.Msg == cl.bad.Msg
	cl.bad = bad
	switch {
	case cl.backlog == 0:
		c.unqueue(cl)
	case bad == nil:
		c.enqueue(cl)
	default:
		c.unqueue(cl)
		if !said {
			c.counters.Infeasible++
			c.tell(cl.key.Job, Infeasible{Key: cl.key, Err: bad})
		}
	}
}

// enqueue gives the class a place at the back of its job's turn, unless it has one.
func (c *Core) enqueue(cl *class) {
	if cl.place != nil {
		return
	}
	cl.place = cl.job.waiting.PushBack(cl)
	if cl.need.of(resCPU) == 0 {
		c.waitingNoCPU++
	}
	if cl.job.place == nil {
		cl.job.place = c.jobs.PushBack(cl.job)
	}
}

func (c *Core) unqueue(cl *class) {
	if cl.place == nil {
		return
	}
	cl.job.waiting.Remove(cl.place)
	cl.place = nil
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

// toBack ends a class's turn, and its job's.
func (c *Core) toBack(cl *class) {
	if c.head == cl {
		c.head = nil
	}
	if cl.place != nil {
		cl.job.waiting.MoveToBack(cl.place)
		c.jobs.MoveToBack(cl.job.place)
	}
}
