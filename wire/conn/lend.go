package conn

import (
	"context"
	"sync/atomic"
	"time"

	"mobula/wire"
)

// A Lender lets goroutines of this process that wait for a message read it themselves. As
// a rule each connection has a goroutine that reads. Where a single goroutine sends, waits
// for the answer, and sends again, the reader is woken only to wake that goroutine. So once
// that has gone on for a while over a hot connection, the reader lends its place: from then
// on whoever waits reads the connection, and between two waits nobody does. The reader looks
// after it: a connection that nobody read for a moment it reads again itself.
//
// A borrower handles only what may answer a wait (Done, Resolved). Anything else it
// gives to the reader, and the place with it, since handling it might run code of the user's
// that needs what the borrower holds.
type Lender struct {
	waits  atomic.Uint64 // begun so far
	parked atomic.Int32  // goroutines between Read and Woken
	open   atomic.Pointer[place]
}

// place is the role of a connection's reader.
type place struct {
	c      *Conn
	handle func([]wire.Msg) error
	state  atomic.Int32  // held, vacant or lent
	uses   atomic.Uint32 // by borrowers
	back   chan struct{} // capacity 1: a borrower gives the place to the reader

	// Of who has the place.
	rounds int        // in a row, each a single answer and a single new wait before it; below 0 after a disappointment
	waits  uint64     // Lender.waits when the last answer came
	batch  []wire.Msg // from a borrower: not yet handled
	err    error      // from a borrower
}

const (
	held int32 = iota
	vacant
	lent
)

const (
	lendAfter = 16                   // rounds
	lendAgain = -1000                // what they count from after nobody took the place
	lendTick  = 2 * time.Millisecond // after one to two of them without a read the reader takes its place back
)

// Waiter is somebody who waits for a message.
type Waiter interface {
	// Woken tells that it need not wait any more. It does not block.
	Woken() bool
}

// Serve calls handle with each batch of c until the connection ends or handle fails, and
// returns why: io.EOF for a clean end by the other side. It closes nothing. handle runs on
// this goroutine, or on one that is in Read: on one at a time.
func (l *Lender) Serve(c *Conn, handle func(batch []wire.Msg) error) error {
	p := &place{c: c, handle: handle, back: make(chan struct{}, 1)}
	for {
		batch, err := c.Recv()
		if err != nil {
			return err
		}
		waits := l.waits.Load()
		c.rx.hot.may = waits > 0
		if err := handle(batch); err != nil {
			return err
		}
		if !p.counts(batch, waits) {
			continue
		}
		if err := l.lend(p); err != nil {
			return err
		}
	}
}

// counts tells, after a batch, whether it is time to lend.
func (p *place) counts(batch []wire.Msg, waits uint64) bool {
	one := waits == p.waits+1
	p.waits = waits
	switch {
	case !p.c.rx.hot.on, !one, len(batch) != 1 || !mayAnswer(batch):
		p.rounds = min(p.rounds, 0)
		return false
	}
	p.rounds++
	return p.rounds >= lendAfter
}

// mayAnswer tells whether a borrower may handle the batch.
func mayAnswer(batch []wire.Msg) bool {
	for _, m := range batch {
		switch m.Kind() {
		case wire.KindDone, wire.KindResolved:
		default:
			return false
		}
	}
	return true
}

// lend offers the place and waits until it is the reader's again.
func (l *Lender) lend(p *place) error {
	p.rounds = 0
	p.state.Store(vacant)
	if !l.open.CompareAndSwap(nil, p) { // another connection's is lent
		p.state.Store(held)
		return nil
	}
	defer l.open.Store(nil)
	if l.waits.Load() != p.waits && p.state.CompareAndSwap(vacant, held) {
		return nil // somebody waits already, and has not seen that he could read
	}
	tick := time.NewTicker(lendTick)
	defer tick.Stop()
	for last := p.uses.Load(); ; {
		select {
		case <-p.back:
			batch, err := p.batch, p.err
			p.batch, p.err = nil, nil
			if err == nil && batch != nil {
				err = p.handle(batch)
			}
			return err
		case <-tick.C:
		}
		if uses := p.uses.Load(); uses != last {
			last = uses
		} else if p.state.CompareAndSwap(vacant, held) {
			p.rounds = lendAgain
			return nil
		}
	}
}

// Read reads for w, if a reader has lent its place, until w is woken. false: the caller
// has to wait to be woken, and to call Woken when it is, or has given up.
func (l *Lender) Read(ctx context.Context, w Waiter) bool {
	l.waits.Add(1)
	l.parked.Add(1)
	p := l.open.Load()
	if p == nil || !p.state.CompareAndSwap(vacant, lent) {
		return false
	}
	l.parked.Add(-1)
	p.uses.Add(1)
	if p.borrow(ctx, w) {
		p.state.Store(vacant)
		if l.parked.Load() == 0 || !p.state.CompareAndSwap(vacant, lent) {
			return true
		}
		p.giveBack() // others wait, and nobody would read for them
		return true
	}
	l.parked.Add(1) // before anybody else reads: w may be woken by what comes next
	p.giveBack()
	return false
}

// Woken ends what a Read that was false began.
func (l *Lender) Woken() { l.parked.Add(-1) }

func (p *place) giveBack() {
	p.state.Store(held)
	p.back <- struct{}{}
}

// borrow reads until w is woken; false if the reader should go on.
func (p *place) borrow(ctx context.Context, w Waiter) bool {
	for !w.Woken() {
		batch, err := p.c.recvSoon()
		if err != nil || !mayAnswer(batch) {
			p.batch, p.err = batch, err
			return false
		}
		if len(batch) == 0 || ctx.Err() != nil {
			p.batch = batch
			return false
		}
		if p.err = p.handle(batch); p.err != nil {
			return false
		}
	}
	return true
}
