package vclock

import (
	"time"

	"mobula/internal/heap"
)

// Clock is virtual time, in nanoseconds from zero on. What is due is done in order; of equal times, what was asked for first.
type Clock struct {
	now   int64
	asked uint64
	due   []event
}

type event struct {
	at    int64
	asked uint64
	do    func()
}

func sooner(a, b *event) bool { return a.at < b.at || a.at == b.at && a.asked < b.asked }

// Now is the time.
func (c *Clock) Now() int64 { return c.now }

// At has something done at a time; one that is past is now.
func (c *Clock) At(at int64, do func()) {
	c.asked++
	heap.Push(&c.due, event{max(at, c.now), c.asked, do}, sooner)
}

// After has something done when a time has passed.
func (c *Clock) After(d time.Duration, do func()) { c.At(c.now+int64(d), do) }

// Next does what is due next; false: nothing is.
func (c *Clock) Next() bool {
	if len(c.due) == 0 {
		return false
	}
	e := heap.Pop(&c.due, sooner)
	c.now = e.at
	e.do()
	return true
}

// Run does what is due until then, which is the time afterwards.
func (c *Clock) Run(until int64) {
	for len(c.due) > 0 && c.due[0].at <= until {
		c.Next()
	}
	c.now = until
}
