package graph

import (
	"math"
	"slices"
)

func (c *Core) onStart() {
	if c.started {
		return
	}
	c.started = true
	c.needs.want(c.g.wanted)
	for i := range c.tasks.list {
		t := int32(i)
		if x := &c.tasks.list[t]; x.state == Memory && x.users == 0 {
			c.needs.drop(t)
		}
		c.needs.forget(t)
	}
}

func (c *Core) onHolds(ev Holds) {
	w := c.workers.worker(ev.Worker)
	if w == nil || c.copies.copyAt(ev.Task, w.index) != none {
		return
	}
	x := &c.tasks.list[ev.Task]
	switch {
	case c.started:
		c.emit(Free{Task: ev.Task, Workers: []WorkerID{w.id}})
		return
	case x.state == Released:
		c.tasks.to(ev.Task, onAdopt)
		x.bytes = max(ev.Bytes, 0)
	}
	c.copies.addCopy(ev.Task, w, none)
}

func (c *Core) onWant(ev Want) {
	if ev.Off {
		for _, t := range ev.Tasks {
			c.needs.unwant(t)
		}
		return
	}
	c.needs.want(ev.Tasks)
}

// onDone takes a result. Its inputs are freed if nobody else needs them, and tasks that waited only for it are
// placed.
func (c *Core) onDone(ev Done) {
	w := c.workers.worker(ev.Worker)
	if w == nil {
		return // the result went with the worker
	}
	x := &c.tasks.list[ev.Task]
	if x.state != Processing || x.worker != w.index { // the result of an older attempt on the same worker will do
		if c.copies.copyAt(ev.Task, w.index) == none {
			c.emit(Free{Task: ev.Task, Workers: []WorkerID{w.id}})
		}
		return
	}
	c.counters.Done++
	c.stealing.ended = w
	c.workers.leave(ev.Task)
	c.tasks.to(ev.Task, onFinish)
	x.bytes = max(ev.Bytes, 0)
	c.measures.learn(ev.Task, x.bytes, ev.Duration)
	c.copies.addCopy(ev.Task, w, none)
	for _, u := range c.g.up.of(ev.Task) {
		if y := &c.tasks.list[u]; y.state == Waiting {
			if y.waits--; y.waits == 0 {
				c.placement.markReady(u)
			}
		}
	}
	c.needs.releaseInputs(ev.Task)
	if x.flags&isWanted != 0 {
		c.needs.left--
		c.emit(Result{Task: ev.Task, Worker: w.id, Bytes: x.bytes})
	}
	if x.users == 0 {
		c.needs.drop(ev.Task) // it does nothing if the result is wanted
	}
}

func (c *Core) onFailure(ev Failure) {
	x := c.tasks.attempt(ev.Task, ev.Attempt)
	if w := c.workers.worker(ev.Worker); x == nil || w == nil || x.worker != w.index {
		return
	}
	c.workers.leave(ev.Task)
	if a := c.g.tasks[ev.Task].Ann; ev.Retriable && a != nil && int(x.tries) < a.Retries {
		x.tries++
		c.counters.Retried++
		c.placement.placeAgain(ev.Task)
		return
	}
	c.needs.failFor(ev.Task, ev.Err)
}

func (c *Core) onCancel(ev Cancel) {
	ts := ev.Tasks
	if len(ts) == 0 {
		for i := range c.tasks.list {
			if x := &c.tasks.list[i]; x.flags&isWanted != 0 && x.state.active() {
				ts = append(slices.Clip(ts), int32(i))
			}
		}
	}
	for _, t := range ts {
		if c.tasks.list[t].state.active() {
			c.needs.failFor(t, ErrCancelled)
		}
	}
}

func (c *Core) onJoined(ev WorkerJoined) {
	if c.workers.join(ev) {
		c.placement.unstrand()
	}
}

func (c *Core) onLeft(ev WorkerLeft) {
	w := c.workers.worker(ev.Worker)
	if w == nil {
		return
	}
	c.workers.remove(w)
	procs := slices.Clone(w.procs)
	slices.SortFunc(procs, func(a, b int32) int { return int(c.g.rank[a] - c.g.rank[b]) })
	for _, t := range procs {
		c.workers.leave(t)
		c.placement.placeAgain(t)
	}
	c.needs.loseCopies(w)
	c.placement.queue.workerLeft(w)
	if !ev.Killed {
		return
	}
	for _, t := range procs {
		x := &c.tasks.list[t]
		if ev.Running != nil && !slices.Contains(ev.Running, t) {
			continue
		}
		if x.deaths < math.MaxUint8 {
			x.deaths++
		}
		if int(x.deaths) >= c.cfg.AllowedFailures && x.state.active() {
			c.needs.failFor(t, &KilledError{Key: c.g.Key(t), Deaths: int(x.deaths)})
		}
	}
}
