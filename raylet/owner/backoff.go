package owner

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/owner/task"
)

// What ends its process again and again waits before it runs again: not the first time, then twice as long each time. How much
// longer or shorter than that is drawn from its id and the number of the time, so that many that ended together do not come back
// together, and a core that steps the same events waits the same.

// backoff gives the wait before the n-th time in a row, the first being 1.
func (c *Core) backoff(id ids.TaskID, n int) time.Duration {
	if n <= 1 {
		return 0
	}
	d := min(c.cfg.RestartBackoff<<min(n-2, 20), c.cfg.MaxRestartBackoff)
	h := fnv.New32a()
	_, _ = h.Write(binary.BigEndian.AppendUint32(id[:len(id):len(id)], uint32(n)))
	return d*3/4 + d/2*time.Duration(h.Sum32()%1024)/1024
}

// later lets a task run again after a wait; at its deadline it is looked at in any case.
func (c *Core) later(t *taskRec, wait time.Duration) {
	c.move(t, task.Delay)
	at := c.now + int64(wait)
	if d := t.deadlineAt(); d != 0 {
		at = min(at, max(d, c.now))
	}
	c.setTimer(t, at, timerBackoff)
}

// due is when a task that waits runs again, Unix ns; 0: it does not wait.
func (t *taskRec) due() int64 {
	if t.state != task.Backoff || t.x == nil || t.x.timer == nil {
		return 0
	}
	return t.x.timer.at
}

// restartDelay is the wait of an actor whose process died before it is made again. One that lived a while, and longer than it
// waited twice, begins anew.
func (c *Core) restartDelay(a *actorRec) time.Duration {
	waited := c.backoff(a.rec.id(), a.streak)
	if a.upAt != 0 && c.now-a.upAt >= int64(max(c.cfg.RestartReset, 2*waited)) {
		a.streak = 0
	}
	a.streak++
	a.upAt = 0
	return c.backoff(a.rec.id(), a.streak)
}
