package client

import (
	"context"

	"mobula/internal/ids"
	"mobula/wire"
)

// put is an inline put's message and what the table knows of it; together, and apart
// from the handle, so that they go when the value is evicted.
type put struct {
	m wire.PutValue
	r wire.Result
}

// Put makes an object of v, under the next put id of the task that ctx belongs to. Up to
// InlineMax the value itself is kept, which the caller must not change any more, and a
// Get of it needs no trip; a larger one is copied into the segment.
func (c *Client) Put(ctx context.Context, v wire.Value) (*Handle, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	tc := c.task(ctx)
	id := tc.NextPut()
	if err := checkMeta(id, v.Meta); err != nil {
		return nil, err
	}
	if len(v.Data) > c.inline {
		return c.putLarge(ctx, id, v)
	}
	if c.credit.on.Load() {
		if err := c.admit(ctx, tc, wire.CostOfValue(&v)); err != nil {
			return nil, err
		}
	}
	p := &put{m: wire.PutValue{ID: id, Value: v}, r: wire.Result{Kind: wire.ResultInline, Value: v, Size: uint64(len(v.Data))}}
	h, _ := c.resolvedHandle(id, &p.r)
	if err := c.send(&p.m); err != nil {
		h.Release()
		return nil, err
	}
	return h, nil
}

func (c *Client) putLarge(ctx context.Context, id ids.ObjectID, v wire.Value) (*Handle, error) {
	b, err := c.CreateFrom(ctx, id, v.Data)
	if err != nil {
		return nil, err
	}
	return b.Seal(v.Meta, v.Refs)
}

// resolvedHandle enters a handle whose result is known. An entry that is there already
// keeps what it knows; fresh tells that there was none.
func (c *Client) resolvedHandle(id ids.ObjectID, r *wire.Result) (h *Handle, fresh bool) {
	mine := &Handle{c: c, id: id}
	s := c.table.shard(id)
	s.mu.Lock()
	if h = s.find(id); h == nil {
		h, fresh = mine, true
		s.put(h)
	}
	h.refs++
	if h.res.Load() == nil {
		h.res.Store(r)
		if r.Kind == wire.ResultInline {
			c.table.remember(s, h)
		}
	}
	s.mu.Unlock()
	if c.table.cacheUsed.Load() > c.table.cacheMax {
		c.table.evict()
	}
	return h, fresh
}
