package shell

import (
	"mobula/graph/run"
	"mobula/internal/ids"
)

// Secede notes that a task of a graph has given its place up to others and goes on beside them, or with back that it takes its place
// again. Meanwhile the task counts neither against the slots of root tasks nor as with the owner. Secede waits for the graph's scheduler,
// at most until that has ended, and does nothing if no graph with that task runs.
func (h *Host) Secede(parent, task ids.TaskID, back bool) {
	r := h.under(parent)
	if r == nil {
		return
	}
	if t, ok := r.find(task); ok {
		select {
		case r.seceded <- run.Seceded{Task: t, Back: back}:
		case <-r.gone:
		}
	}
}

// under finds the running graph that is parent of the tasks, or nil.
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

// find gives a task's index by its id. Most graphs never need it.
func (r *runner) find(task ids.TaskID) (int32, bool) {
	r.indexing.Do(func() {
		r.index = make(map[ids.TaskID]int32, r.w.Len())
		for t := range int32(r.w.Len()) {
			r.index[r.id(t)] = t
		}
	})
	t, ok := r.index[task]
	return t, ok
}
