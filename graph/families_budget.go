package graph

// budgetPart is the share of the workers' memory that results may take before no more root tasks are let in.
// Dask's workers begin to spill at the same share.
const budgetPart = 0.6

// budget is how many bytes results should take at most in the cluster, or 0 if not known.
func (h *families) budget() int64 {
	if h.cfg.Budget > 0 {
		return h.cfg.Budget
	}
	if h.workers.unknownMemory > 0 {
		return 0
	}
	return int64(budgetPart * float64(h.workers.memory))
}

// overBudget tells whether one more root would be too much. It counts each task being processed with the mean size
// of results. If nothing is processed a root runs all the same: a budget makes a graph slower, but never stops it.
func (h *families) overBudget() bool {
	b := h.budget()
	return b > 0 && !h.unlimited() && float64(h.copies.inMemory)+float64(h.workers.busy()+1)*h.measures.mean() > float64(b)
}
