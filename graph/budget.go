package graph

import "math"

// budgetPart is the part of what workers say they may hold that results should take before more
// root tasks are let in. Dask's workers begin to write to disk at as much.
const budgetPart = 0.6

// budget is the bytes that results should take at most in the cluster, or 0: not known.
func (c *Core) budget() int64 {
	if c.cfg.Budget > 0 {
		return c.cfg.Budget
	}
	if c.unsaid > 0 {
		return 0
	}
	return int64(budgetPart * float64(c.memory))
}

// overBudget tells whether one more root would be too much, what is being processed taken as
// large as results are on average. With nothing processed a root runs all the same: a budget makes a graph
// slower, never stand still.
func (c *Core) overBudget() bool {
	b := c.budget()
	return b > 0 && !c.unlimited() && float64(c.inMemory)+float64(c.busy()+1)*c.mean() > float64(b)
}

// busy is how many tasks are processed and have not seceded.
func (c *Core) busy() int { return c.count[Processing] - c.seceded }

// unlimited tells whether withholding is turned off.
func (c *Core) unlimited() bool { return math.IsInf(c.cfg.Saturation, 1) }
