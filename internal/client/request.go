package client

import (
	"context"

	"mobula/wire"
)

// request is a cold Request that was not answered yet.
type request struct {
	m  *wire.Request
	ch chan *wire.Reply // capacity 1
}

// Request asks the node's cold service for a method and gives the reply's body. It
// waits until ctx ends, or Config.RequestTimeout where ctx has no deadline.
func (c *Client) Request(ctx context.Context, method string, body []byte) ([]byte, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.RequestTimeout)
		defer cancel()
	}
	q := &request{m: &wire.Request{Req: c.req.Add(1), Method: method, Body: body}, ch: make(chan *wire.Reply, 1)}
	if tc := FromContext(ctx); tc != nil {
		q.m.Trace = tc.Trace
	}
	c.requests.add(q.m.Req, q)
	if err := c.send(q.m); err != nil {
		c.requests.take(q.m.Req)
		return nil, err
	}
	c.waits()
	select {
	case r := <-q.ch:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Body, nil
	case <-ctx.Done():
		c.requests.take(q.m.Req)
		return nil, ctxError(ctx)
	case <-c.dead:
		return nil, c.cause
	}
}

func (c *Client) replied(m *wire.Reply) {
	if q, ok := c.requests.take(m.Req); ok {
		q.ch <- m
	}
}
