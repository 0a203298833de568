package conn

import (
	"context"

	"mobula/internal/lend"
	"mobula/wire"
)

// reading is who reads a connection: its reader, or a goroutine that waits for a message and reads in its place.
//
// A borrower handles only what may answer a wait (Done, Resolved, Answered). Anything else it
// gives to the reader, and the place with it, since handling it might run code of the user's
// that needs what the borrower holds.
type reading struct {
	c      *Conn
	handle func([]wire.Msg) error

	// Of who has the place.
	batch []wire.Msg // from a borrower: not yet handled
	err   error      // from a borrower
}

// Serve calls handle with each batch of the connection until that ends or handle fails, and
// returns why: io.EOF for a clean end by the other side. It closes nothing. handle runs on
// this goroutine, or on one that waits through the Lender: on one at a time.
func (c *Conn) Serve(l *lend.Lender, handle func(batch []wire.Msg) error) error {
	r := &reading{c: c, handle: handle}
	p := l.Place(r)
	for {
		batch, err := c.Recv()
		if err != nil {
			return err
		}
		waits := l.Waits()
		c.rx.hot.may = waits > 0
		if err := handle(batch); err != nil {
			return err
		}
		if !p.Counts(c.rx.hot.on && len(batch) == 1 && mayAnswer(batch), waits) {
			continue
		}
		p.Lend()
		batch, err = r.batch, r.err
		r.batch, r.err = nil, nil
		if err == nil && batch != nil {
			err = handle(batch)
		}
		if err != nil {
			return err
		}
	}
}

// mayAnswer tells whether a borrower may handle the batch.
func mayAnswer(batch []wire.Msg) bool {
	for _, m := range batch {
		switch m.Kind() {
		case wire.KindDone, wire.KindResolved, wire.KindAnswered:
		default:
			return false
		}
	}
	return true
}

// Borrow implements lend.Borrower.
func (r *reading) Borrow(ctx context.Context, w lend.Waiter) bool {
	for !w.Woken() {
		batch, err := r.c.recvSoon()
		if err != nil || !mayAnswer(batch) {
			r.batch, r.err = batch, err
			return false
		}
		if len(batch) == 0 || ctx.Err() != nil {
			r.batch = batch
			return false
		}
		if r.err = r.handle(batch); r.err != nil {
			return false
		}
	}
	return true
}

// Interrupt implements lend.Borrower. A read of a hot connection ends by itself.
func (*reading) Interrupt() {}
