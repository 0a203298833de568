package owner

import (
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// What concerns every record there is, when a client is gone or the driver is, is done in slices
// of a few thousand records, a step each: between two of them the owner goes on.

const sweepPart = 2048 // records a slice: about a millisecond

// sweep takes the handles of a client that is gone, or cancels the tasks that a job's last driver
// has left.
type sweep struct {
	client      *clientRec // nil: tasks are cancelled
	tasks, puts cursor     // puts are not looked at for a cancel
}

func (c *Core) startSweep(cl *clientRec) {
	c.sweeps = append(c.sweeps, &sweep{client: cl})
	c.sweepSlice()
}

// sweepSlice does the next slice, and asks for the step of the one after.
func (c *Core) sweepSlice() {
	budget := c.cfg.sweepPart
	for len(c.sweeps) > 0 && budget > 0 {
		s := c.sweeps[0]
		n, over := c.sweepOn(s, budget)
		if budget -= n; over {
			c.sweeps[0] = nil
			c.sweeps = c.sweeps[1:]
			c.swept(s)
		}
	}
	if len(c.sweeps) > 0 && c.sweeping == nil {
		c.sweeping = c.timers.add(c.now, timer{kind: timerSweep})
	}
}

// sweepAll does what is left in one go.
func (c *Core) sweepAll() {
	for len(c.sweeps) > 0 {
		c.sweepSlice()
	}
}

// sweepOn goes on with one sweep and says how many records it saw, and whether it is over.
func (c *Core) sweepOn(s *sweep, budget int) (n int, over bool) {
	defer func() { clear(c.sweepBuf) }()
	if c.nothingToSweep(s) {
		return 0, true
	}
	if !s.tasks.done {
		c.sweepBuf = c.tasks.scan(&s.tasks, budget, c.sweepBuf[:0])
		n = len(c.sweepBuf)
		c.sweepTasks(s)
		return n, false
	}
	if s.client == nil {
		return 0, true
	}
	c.sweepBuf = c.puts.scan(&s.puts, budget, c.sweepBuf[:0])
	for _, o := range c.sweepBuf {
		c.dropHandle(s.client, o)
	}
	if n = len(c.sweepBuf); !s.puts.done {
		return n, false
	}
	for _, o := range c.strays {
		c.dropHandle(s.client, o)
	}
	if s.client.handles > 0 { // one moved to a record behind the cursor: a stray was adopted
		*s = sweep{client: s.client}
		return n, false
	}
	return n, true
}

// nothingToSweep tells that no record can be left that a sweep is for.
func (c *Core) nothingToSweep(s *sweep) bool {
	if s.client != nil {
		return s.client.handles == 0 && c.streams == 0
	}
	ended := c.byState[task.Finished] + c.byState[task.Failed] + c.byState[task.Cancelled]
	return c.tasks.n == ended
}

func (c *Core) sweepTasks(s *sweep) {
	for _, o := range c.sweepBuf {
		t := o.rec
		switch {
		case t.flags&taskReaped != 0:
		case s.client != nil:
			c.dropTaskHandles(s.client, t)
		case !t.state.Terminal() && (c.ended || !t.outlives()):
			c.cancelTask(t, true)
		}
	}
}

// dropTaskHandles takes what a client has of a task's returns, or of its stream.
func (c *Core) dropTaskHandles(cl *clientRec, t *taskRec) {
	if t.nret == wire.Streaming && t.x.stream.reads(cl) {
		c.leaveStream(t, cl)
	}
	t.eachReturn(func(o *objRec) { c.dropHandle(cl, o) })
}

// swept follows up on a sweep that is over.
func (c *Core) swept(s *sweep) {
	if s.client != nil {
		c.maybeForget(s.client)
		return
	}
	for _, k := range c.classes.byID {
		c.touch(k) // nothing was dispatched meanwhile
	}
}

// cancelling tells that what the last driver has left is being cancelled: nothing is to start.
func (c *Core) cancelling() bool {
	for _, s := range c.sweeps {
		if s.client == nil {
			return true
		}
	}
	return false
}
