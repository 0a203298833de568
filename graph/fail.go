package graph

import (
	"errors"
	"fmt"
	"slices"
)

// ErrCancelled is the cause of what Cancel failed.
var ErrCancelled = errors.New("graph: cancelled")

// ErrForgotten is the cause where a result is wanted whose task was given up before.
var ErrForgotten = errors.New("graph: the task is forgotten")

// KilledError says that workers died of a task.
type KilledError struct {
	Key    string
	Deaths int
}

func (e *KilledError) Error() string {
	return fmt.Sprintf("graph: %q: %d workers died while they ran it", e.Key, e.Deaths)
}

func (c *Core) onFailure(ev Failure) {
	x := c.attempt(ev.Task, ev.Attempt)
	if w := c.worker(ev.Worker); x == nil || w == nil || x.worker != w.index {
		return
	}
	c.leave(ev.Task)
	if a := c.g.tasks[ev.Task].Ann; ev.Retriable && a != nil && int(x.tries) < a.Retries {
		x.tries++
		c.counters.Retried++
		c.again(ev.Task)
		return
	}
	c.failFor(ev.Task, ev.Err)
}

// again places a task anew that has left its worker. What it needs is still there.
func (c *Core) again(t int32) {
	c.to(t, onUnmeet)
	c.tasks[t].waits = 0
	c.freshen(t)
}

func (c *Core) failFor(t int32, err error) {
	c.errs[t] = err
	c.fail(t, t)
}

// fail ends a task and everything active above it. via is the dependency through which it failed.
func (c *Core) fail(t, via int32) {
	type step struct{ t, via int32 }
	todo := []step{{t, via}}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		x := &c.tasks[s.t]
		if !x.state.active() && x.state != Released {
			continue
		}
		active := x.state.active()
		if x.worker != none || x.state == NoWorker {
			c.withdraw(s.t)
		}
		c.to(s.t, onFail)
		x.blame = s.via
		if x.flags&isWanted != 0 {
			c.left--
			c.tellFailed(s.t)
		}
		for _, u := range c.g.up.of(s.t) {
			if c.tasks[u].state.active() {
				todo = append(todo, step{u, s.t})
			}
		}
		if active {
			c.unuse(s.t)
		}
	}
}

func (c *Core) tellFailed(t int32) {
	chain := c.chain(t)
	c.emit(Failed{Task: t, Err: c.errs[chain[len(chain)-1]], Chain: chain})
}

// chain leads from a failed task to the one that failed of itself.
func (c *Core) chain(t int32) []int32 {
	out := []int32{t}
	for c.tasks[t].blame != t && c.tasks[t].blame != none {
		t = c.tasks[t].blame
		out = append(out, t)
	}
	return out
}

func (c *Core) onCancel(ev Cancel) {
	ts := ev.Tasks
	if len(ts) == 0 {
		for i := range c.tasks {
			if x := &c.tasks[i]; x.flags&isWanted != 0 && x.state.active() {
				ts = append(slices.Clip(ts), int32(i))
			}
		}
	}
	for _, t := range ts {
		if c.tasks[t].state.active() {
			c.failFor(t, ErrCancelled)
		}
	}
}
