package cluster

import (
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// onInfeasible takes a scheduler's word that it cannot run a class: another node is asked. What it could start no worker for it is asked again in a while.
func (c *Core) onInfeasible(j *job, n ids.Home, m sched.Infeasible) {
	cl := j.classes[m.Key.Class]
	if cl == nil {
		if c.alone() {
			c.tell(j, m)
			if !noWorker(m.Err) {
				j.refused[m.Key.Class] = m.Err
			}
		}
		return
	}
	s := cl.at(n)
	s.asked, s.refused, cl.answers = 0, m.Err, false
	if s.stands { // a later number may have crossed with this, and would stand
		c.stand(cl, s, false)
		if cl.crossed = c.alone(); !cl.crossed {
			c.send(j, n, sched.Want{Key: cl.key, Opts: cl.opts, Kind: cl.kind})
		}
	}
	c.unplace(cl, s, s.placed)
	switch {
	case c.alone() && (c.patienceFor(cl, m.Err) == 0 || cl.told == 0):
		c.refuse(cl, m.Err)
		return
	case noWorker(m.Err):
		s.retry = c.now + int64(retrySetup)
		c.wakeAt(s.retry)
	}
	c.settle(cl)
}

// onFeasible takes a refusal back.
func (c *Core) onFeasible(j *job, n ids.Home, m sched.Feasible) {
	cl := j.classes[m.Key.Class]
	delete(j.refused, m.Key.Class)
	if cl != nil {
		cl.at(n).refused = nil
	}
	if n == c.cfg.Self && (cl == nil || c.alone()) {
		c.tell(j, m)
		if cl != nil {
			cl.refused = false
		}
	}
	if cl != nil {
		c.recheck(cl)
	}
}

// recheck looks at a class again after a node has changed.
func (c *Core) recheck(cl *class) {
	if !cl.refused || cl.told > 0 {
		c.settle(cl)
		return
	}
	if cl.answers && c.alone() {
		return
	}
	if slices.ContainsFunc(c.view.Nodes, func(n Node) bool { return c.able(cl, &n) }) {
		cl.refused = false
		c.tell(cl.job, sched.Feasible{Key: cl.key})
		c.forget(cl)
	}
}

// noneAble withdraws a class that no node can run, and tells its owner once it was waited for long enough.
func (c *Core) noneAble(cl *class) {
	c.unplaceAll(cl)
	err := c.whyNot(cl)
	if cl.giveUp == 0 {
		cl.giveUp = c.now + c.patienceFor(cl, err)
	}
	wait := max(cl.giveUp, c.await())
	if c.now >= wait {
		c.refuse(cl, err)
		return
	}
	c.wakeAt(wait)
	c.withdraw(cl)
}

// Lacks says why no node can run a class that waits for one which can, and how much longer it waits. nil: it does not wait for that.
func (c *Core) Lacks(key sched.ClassKey) (why *errs.Error, left time.Duration) {
	j := c.jobs[key.Job]
	if j == nil || j.classes[key.Class] == nil || j.classes[key.Class].giveUp == 0 {
		return nil, 0
	}
	cl := j.classes[key.Class]
	until := cl.giveUp
	for _, p := range c.peers {
		until = max(until, p.silent) // it may be able
	}
	return c.whyNot(cl), time.Duration(max(until-c.now, 0))
}

// patienceFor is how long a class waits for a node that can run it.
func (ns *nodes) patienceFor(cl *class, err *errs.Error) int64 {
	switch {
	case cl.invalid || noWorker(err):
		return 0 // no other node changes that
	case ns.mayCome(cl.shape.Strategy):
		return int64(max(ns.cfg.WaitForNodes, firstReport))
	}
	return int64(ns.cfg.WaitForNodes)
}

// mayCome tells whether a strategy insists on a node that was never heard of: it may have joined just now.
func (ns *nodes) mayCome(st Strategy) bool {
	return st.Kind == Affinity && !st.Soft && st.Node != ns.cfg.Self && ns.peers[st.Node] == nil && !ns.gone[st.Node]
}

// refuse tells an owner that a class cannot be run. That no worker could be started says nothing of the next one.
func (c *Core) refuse(cl *class, err *errs.Error) {
	cl.told, cl.left, cl.giveUp = 0, 0, 0
	cl.refused = !cl.invalid && !noWorker(err)
	for i := range cl.shares {
		if s := &cl.shares[i]; noWorker(s.refused) {
			s.refused, s.retry = nil, 0
		}
	}
	c.unplaceAll(cl)
	c.tell(cl.job, sched.Infeasible{Key: cl.key, Err: err})
	c.withdraw(cl)
	c.forget(cl)
}

// withdraw takes back what nodes were asked for a class.
func (c *Core) withdraw(cl *class) {
	c.queue(cl)
	for i := range cl.shares {
		s := &cl.shares[i]
		s.rest = 0
		c.ask(cl, s, 0)
	}
	cl.tellAwaited(c)
}

// whyNot says why no node can run a class: what the nodes lack, or else what one that should be able said when it refused. Where one could start no worker, that
// is why: it may start the next one.
func (ns *nodes) whyNot(cl *class) *errs.Error {
	if !ns.staysHome(cl) && !slices.ContainsFunc(ns.view.Nodes, func(n Node) bool { return n.able(&cl.shape) }) {
		return infeasible(&ns.view, &cl.shape, ns.cfg.NameOf)
	}
	var why *errs.Error
	for i := range cl.shares {
		s := &cl.shares[i]
		if s.refused != nil && (why == nil || noWorker(s.refused) && !noWorker(why) || s.node == ns.cfg.Self && noWorker(s.refused) == noWorker(why)) {
			why = s.refused
		}
	}
	return why
}

func noWorker(err *errs.Error) bool { return err != nil && err.Code == errs.CodeRuntimeSetup }
