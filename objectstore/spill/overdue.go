package spill

import (
	"errors"
	"time"
)

// errStuck says that a medium does not answer at all, as a network file system may.
var errStuck = errors.New("the spill target does not answer")

// patience is how long I/O may take before it is given up. I/O that can be interrupted was interrupted at
// IOTimeout.
func (c *Core) patience() int64 { return int64(c.cfg.IOTimeout) + int64(c.cfg.IOTimeout)/4 }

// watch arms a timer for I/O that may hang.
func (c *Core) watch(now int64) {
	if len(c.running[Write]) > len(c.overdue) || len(c.running[Read]) > 0 || c.probing {
		if c.armed == 0 {
			c.wake(now, now+c.patience())
		}
	}
}

// giveUp refuses I/O that hangs. A write goes to another target: its bytes are only read, so the I/O that hangs
// does no harm; it keeps its place in the pool until it returns. A read that hangs cannot be given up, since it
// may still write into the segment; reads queued behind it are refused.
func (c *Core) giveUp(now int64) {
	late := now - c.patience()
	stuck := c.probing && c.askedAt <= late
	for id, r := range c.running[Write] {
		if _, done := c.overdue[id]; !done && r.at <= late {
			stuck = true
			c.overdue[id] = struct{}{}
			delete(c.known, id)
			c.out = append(c.out, Refuse{ID: id, Why: errStuck, Overdue: true})
		}
	}
	if stuck {
		c.failed(now, errStuck)
	}
	if len(c.running[Read]) < c.cfg.Readers {
		return
	}
	for _, r := range c.running[Read] {
		if r.at > late {
			return
		}
	}
	for c.queue[Read].Len() > 0 && c.queue[Read].Front().at <= late {
		c.refuse(c.queue[Read].Pop().ID, errStuck)
	}
}

func (c *Core) wake(now, at int64) {
	if c.armed == 0 || at < c.armed {
		c.armed = at
		c.out = append(c.out, Wake{time.Duration(at - now)})
	}
}
