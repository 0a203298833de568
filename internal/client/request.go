package client

import (
	"context"
	"sync/atomic"
	"time"

	"mobula/internal/errs"
	"mobula/wire"
)

// request is a cold Request that the node has not answered yet.
type request struct {
	m    *wire.Request
	ch   chan *wire.Reply // capacity 1
	over atomic.Bool      // nobody waits for the answer any more
}

// requests is what the client has asked of the node's cold service: at most wire.RequestsAtOnce. A request has its turn until it is answered,
// whoever still waits for it.
type requests struct {
	pending[*request]
	turns chan struct{} // one element for each turn that is free
}

func freeTurns() chan struct{} {
	turns := make(chan struct{}, wire.RequestsAtOnce)
	for range cap(turns) {
		turns <- struct{}{}
	}
	return turns
}

// answered takes a request out and gives its turn to the next; false if it is not there.
func (r *requests) answered(n uint64) (*request, bool) {
	q, ok := r.take(n)
	if ok {
		r.turns <- struct{}{}
	}
	return q, ok
}

// again calls f with what is to be asked of a node that is back. What nobody waits for is asked no more.
func (r *requests) again(f func(*wire.Request)) {
	var over []uint64
	r.each(func(q *request) {
		if q.over.Load() {
			over = append(over, q.m.Req)
		} else {
			f(q.m)
		}
	})
	for _, n := range over {
		r.answered(n)
	}
}

// Request asks the node's cold service for a method and gives the reply's body. Beyond wire.RequestsAtOnce requests without an answer it waits
// for its turn first. In all it waits until ctx ends, or Config.RequestTimeout where ctx has no deadline. Time without a connection does not
// count: the node has the whole timeout again once it is back. Where it is known to be gone the error is ErrOwnerDied.
func (c *Client) Request(ctx context.Context, method string, body []byte) ([]byte, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	w := asking{c: c, method: method, session: c.sessions.Load()}
	if _, has := ctx.Deadline(); !has {
		t := time.NewTicker(c.cfg.RequestTimeout)
		defer t.Stop()
		w.late = t.C
	}
	c.waits()
	if _, err := await(ctx, &w, c.requests.turns); err != nil {
		return nil, err
	}
	q := &request{m: &wire.Request{Req: c.req.Add(1), Method: method, Body: body}, ch: make(chan *wire.Reply, 1)}
	if tc := FromContext(ctx); tc != nil {
		q.m.Trace = tc.Trace
	}
	c.requests.add(q.m.Req, q)
	if err := c.send(q.m); err != nil {
		c.requests.answered(q.m.Req)
		return nil, err
	}
	r, err := await(ctx, &w, q.ch)
	if err != nil {
		q.over.Store(true)
		return nil, err
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return r.Body, nil
}

// asking is the wait of one Request.
type asking struct {
	c       *Client
	method  string
	session uint32           // the connection that the time runs for
	late    <-chan time.Time // nil: the time is the context's
}

// await receives from ch.
func await[T any](ctx context.Context, w *asking, ch <-chan T) (T, error) {
	var none T
	for {
		select {
		case v := <-ch:
			return v, nil
		case <-w.late:
			if err := w.lateness(); err != nil {
				return none, err
			}
		case <-ctx.Done():
			return none, ctxError(ctx)
		case <-w.c.dead:
			return none, w.c.cause
		}
	}
}

// lateness is the error of a node that had the whole timeout on one connection.
func (w *asking) lateness() error {
	joining := w.c.joining.Load() // read first: rejoin sets the other two before it clears this
	if now := w.c.sessions.Load(); joining || now != w.session || w.c.Err() != nil {
		w.session = now
		return nil
	}
	return errs.New(errs.CodeGetTimeout, "%s: the node did not answer in %v", w.method, w.c.cfg.RequestTimeout)
}

func (c *Client) replied(m *wire.Reply) {
	if q, ok := c.requests.answered(m.Req); ok {
		q.ch <- m
	}
}
