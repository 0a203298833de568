package client

import (
	"context"
	"sync/atomic"
	"time"

	"mobula/internal/errs"
	"mobula/wire"
)

// request is a Request that the node has not answered yet.
type request struct {
	m    *wire.Request
	ch   chan *wire.Reply // capacity 1
	over atomic.Bool      // nobody waits for the answer any more
}

// requests are the open requests of this client to its node, at most wire.RequestsAtOnce. A request keeps its turn until it is answered, even
// if nobody waits for the answer any more.
type requests struct {
	*base
	outbox *outbox

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

// answered removes a request and gives its turn to the next; false if it is not there.
func (rs *requests) answered(n uint64) (*request, bool) {
	q, ok := rs.take(n)
	if ok {
		rs.turns <- struct{}{}
	}
	return q, ok
}

// again calls f with each request to repeat to a node that is back, except those that nobody waits for.
func (rs *requests) again(f func(*wire.Request)) {
	var over []uint64
	rs.each(func(q *request) {
		if q.over.Load() {
			over = append(over, q.m.Req)
		} else {
			f(q.m)
		}
	})
	for _, n := range over {
		rs.answered(n)
	}
}

// Request calls a method of the node and gives the reply's body. If wire.RequestsAtOnce requests are open it waits for its turn first. In all
// it waits until ctx ends, or for Config.RequestTimeout if ctx has no deadline. Time without a connection does not count: the node has the
// whole timeout again once it is back. If the node is known to be gone the error is ErrOwnerDied.
func (rs *requests) Request(ctx context.Context, method string, body []byte) ([]byte, error) {
	if err := rs.Err(); err != nil {
		return nil, err
	}
	w := requestWait{rs: rs, method: method, session: rs.outbox.sessions.Load()}
	if _, has := ctx.Deadline(); !has {
		t := time.NewTicker(rs.cfg.RequestTimeout)
		defer t.Stop()
		w.late = t.C
	}
	rs.waits()
	if _, err := await(ctx, &w, rs.turns); err != nil {
		return nil, err
	}
	q := &request{m: &wire.Request{Req: rs.outbox.req.Add(1), Method: method, Body: body}, ch: make(chan *wire.Reply, 1)}
	if tc := FromContext(ctx); tc != nil {
		q.m.Trace = tc.Trace
	}
	rs.add(q.m.Req, q)
	if err := rs.outbox.send(q.m); err != nil {
		rs.answered(q.m.Req)
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

// requestWait is the wait of a Request.
type requestWait struct {
	rs      *requests
	method  string
	session uint32           // the connection that the time runs for
	late    <-chan time.Time // nil: the context bounds the time
}

// await receives from ch.
func await[T any](ctx context.Context, w *requestWait, ch <-chan T) (T, error) {
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
		case <-w.rs.dead:
			return none, w.rs.cause
		}
	}
}

// lateness is the error if the node had the whole timeout on one connection.
func (w *requestWait) lateness() error {
	joining := w.rs.outbox.joining.Load() // read first: rejoin sets the other two before it clears this
	if now := w.rs.outbox.sessions.Load(); joining || now != w.session || w.rs.Err() != nil {
		w.session = now
		return nil
	}
	return errs.New(errs.CodeGetTimeout, "%s: the node did not answer in %v", w.method, w.rs.cfg.RequestTimeout)
}

func (rs *requests) replied(m *wire.Reply) {
	if q, ok := rs.answered(m.Req); ok {
		q.ch <- m
	}
}
