package run

import (
	"mobula/graph"
	"mobula/internal/ids"
)

// seceded says that a task has given its place up to others, or, with back, takes it again.
type seceded struct {
	task int32
	back bool
}

func (seceded) runEvent() {}

// Secede takes what a task under a graph says: it has given its place up to others, and goes on beside them; or, with back, that it takes
// its place again. Meanwhile it counts neither against the slots of root tasks nor against what the graph has with the owner. It waits for
// the graph's scheduler at most until that has ended, and does nothing for a task of no graph that runs.
func (h *Host) Secede(parent, task ids.TaskID, back bool) {
	r := h.under(parent)
	if r == nil {
		return
	}
	if t, ok := r.find(task); ok {
		select {
		case r.seceded <- seceded{t, back}:
		case <-r.gone:
		}
	}
}

// under finds the graph that is the tasks' parent; nil: none runs.
func (h *Host) under(parent ids.TaskID) *runner {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.running {
		if r.parent == parent {
			return r
		}
	}
	return nil
}

// find gives a task's index by its id. Most graphs are never asked.
func (r *runner) find(task ids.TaskID) (int32, bool) {
	r.indexing.Do(func() {
		r.index = make(map[ids.TaskID]int32, r.w.graph.Len())
		for t := range int32(r.w.graph.Len()) {
			r.index[r.id(t)] = t
		}
	})
	t, ok := r.index[task]
	return t, ok
}

// secede takes what a task that is with the owner says. Of one that this core has not come to it is kept for when it does.
func (c *core) secede(now int64, ev seceded) {
	e := &c.ledger.tasks[ev.task]
	if e.state != sent || e.away == !ev.back {
		return
	}
	e.away = !ev.back
	if c.g.State(ev.task) != graph.Processing {
		return
	}
	if e.away {
		c.flying--
		c.away++
		c.step(now, graph.LongRunning{Task: ev.task, Attempt: c.attempts[ev.task]})
	} else {
		c.flying++
		c.away--
		c.step(now, graph.Rejoined{Task: ev.task, Attempt: c.attempts[ev.task]})
	}
}

// leave says once more, to a scheduler that is new, which tasks have seceded.
func (c *core) leave(now int64) {
	for len(c.left) > 0 {
		t := c.left[0]
		c.left = c.left[1:]
		if c.g.State(t) == graph.Processing && c.ledger.tasks[t].away {
			c.step(now, graph.LongRunning{Task: t, Attempt: c.attempts[t]})
		}
	}
}
