package client

import (
	"context"
	"time"

	"mobula/internal/errs"
	"mobula/wire"
)

// request is a cold Request that was not answered yet.
type request struct {
	m  *wire.Request
	ch chan *wire.Reply // capacity 1
}

// Request asks the node's cold service for a method and gives the reply's body. It
// waits until ctx ends, or Config.RequestTimeout where ctx has no deadline. Time without a connection does not count: the node has the whole
// timeout again once it is back. Where it is known to be gone the error is ErrOwnerDied.
func (c *Client) Request(ctx context.Context, method string, body []byte) ([]byte, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	session := c.sessions.Load()
	var late <-chan time.Time
	if _, has := ctx.Deadline(); !has {
		t := time.NewTicker(c.cfg.RequestTimeout)
		defer t.Stop()
		late = t.C
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
	for {
		select {
		case r := <-q.ch:
			if r.Err != nil {
				return nil, r.Err
			}
			return r.Body, nil
		case <-late:
			joining := c.joining.Load() // read first: rejoin sets the other two before it clears this
			if now := c.sessions.Load(); joining || now != session || c.Err() != nil {
				session = now
				continue
			}
			c.requests.take(q.m.Req)
			return nil, errs.New(errs.CodeGetTimeout, "%s: the node did not answer in %v", method, c.cfg.RequestTimeout)
		case <-ctx.Done():
			c.requests.take(q.m.Req)
			return nil, ctxError(ctx)
		case <-c.dead:
			return nil, c.cause
		}
	}
}

func (c *Client) replied(m *wire.Reply) {
	if q, ok := c.requests.take(m.Req); ok {
		q.ch <- m
	}
}
