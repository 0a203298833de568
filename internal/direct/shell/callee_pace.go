package shell

import (
	"context"
	"time"
)

// This file is how who calls without waiting for answers is held up a little, once an actor has many calls before it: else memory fills with calls, and each is out of the
// processor's caches when its turn comes. It bounds nothing: an actor that is slow, or waits for who is held up, is given more room each time.

const (
	paceCalls = 512              // under way to one actor: who makes more may be held up
	paceMost  = time.Millisecond // for so long at most
)

// pace is what a Callee knows of that. It is guarded by the Callee's mu.
type pace struct {
	most int           // calls that may be under way; at least paceCalls
	ease chan struct{} // closed when half of them are; nil: nobody waits
}

// crowded tells whether there are so many calls under way that who makes more should Pause. mu is held.
func (c *Callee) crowded() bool { return c.under >= paceCalls && c.under >= c.pace.most }

// Pause waits until half of the calls have ended that may be under way, for a moment. If they do not end in that time, twice as many may be under way, until there are few
// again.
func (c *Callee) Pause(ctx context.Context) {
	c.mu.Lock()
	if !c.crowded() {
		c.mu.Unlock()
		return
	}
	c.pace.most = max(paceCalls, c.pace.most)
	if c.pace.ease == nil {
		c.pace.ease = make(chan struct{})
	}
	ease := c.pace.ease
	c.mu.Unlock()
	timer := time.NewTimer(paceMost)
	defer timer.Stop()
	select {
	case <-ease:
	case <-ctx.Done():
	case <-timer.C:
		c.widen(ease)
	}
}

// widen lets all go on that wait, with room for as many calls again.
func (c *Callee) widen(ease chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pace.ease == ease { // else another one has
		close(ease)
		c.pace.ease, c.pace.most = nil, 2*c.pace.most
	}
}

// eases notes that there are fewer calls under way. mu is held.
func (c *Callee) eases() {
	if c.pace.ease != nil && c.under <= c.pace.most/2 {
		close(c.pace.ease)
		c.pace.ease = nil
	}
	if c.pace.most > paceCalls && c.under <= paceCalls/2 {
		c.pace.most = paceCalls
	}
}
