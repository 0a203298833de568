package shell

import (
	"mobula/graph/run"
	"mobula/internal/ids"
)

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
		case r.seceded <- run.Seceded{Task: t, Back: back}:
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
		r.index = make(map[ids.TaskID]int32, r.w.Len())
		for t := range int32(r.w.Len()) {
			r.index[r.id(t)] = t
		}
	})
	t, ok := r.index[task]
	return t, ok
}
