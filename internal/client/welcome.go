package client

import (
	"time"

	"mobula/internal/ids"
	"mobula/internal/steady"
	"mobula/wire"
)

// Welcome is what the node answered when this client joined. It must not be changed.
func (c *Client) Welcome() *wire.Welcome { return c.cfg.Welcome }

// Trace is the trace of a new task whose caller is in parent.
func (c *Client) Trace(parent wire.TraceContext, task ids.TaskID) wire.TraceContext {
	if c.cfg.Sample == nil {
		return parent
	}
	return c.cfg.Sample(parent, task)
}

// Now is the time by the node's clock, in nanoseconds: what deadlines and the times of attempts are by.
func (c *Client) Now() int64 { return c.clock.Load().Now() }

// At is the time of an instant by the node's clock: as far from Now as t is from time.Now.
func (c *Client) At(t time.Time) int64 { return c.clock.Load().At(t) }

// Instant is when the node's clock tells the time at.
func (c *Client) Instant(at int64) time.Time { return c.clock.Load().Time(at) }

// setClock takes over the clock of the node that welcomes. One before 0.4 has the wall clock.
func (c *Client) setClock(w *wire.Welcome) {
	clock := steady.Of(w.Clock)
	c.clock.Store(&clock)
}
