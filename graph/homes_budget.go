package graph

// budgetPart is the part of what workers say they may hold that results should take before more
// root tasks are let in. Dask's workers begin to write to disk at as much.
const budgetPart = 0.6

// budget is the bytes that results should take at most in the cluster, or 0: not known.
func (h *homes) budget() int64 {
	if h.cfg.Budget > 0 {
		return h.cfg.Budget
	}
	if h.workers.unsaid > 0 {
		return 0
	}
	return int64(budgetPart * float64(h.workers.memory))
}

// overBudget tells whether one more root would be too much, what is being processed taken as
// large as results are on average. With nothing processed a root runs all the same: a budget makes a graph
// slower, never stand still.
func (h *homes) overBudget() bool {
	b := h.budget()
	return b > 0 && !h.unlimited() && float64(h.copies.inMemory)+float64(h.workers.busy()+1)*h.measures.mean() > float64(b)
}
