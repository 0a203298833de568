package client

import (
	"mobula/internal/ids"
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
