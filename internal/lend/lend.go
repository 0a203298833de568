package lend

import (
	"context"
	"sync/atomic"
	"time"
)

// Lender has the place that goroutines of this process may read in while they wait. The zero value is ready.
type Lender struct {
	waits  atomic.Uint64 // begun so far
	parked atomic.Int32  // goroutines between Read and Woken
	open   atomic.Pointer[Place]
}

// Waiter is somebody who waits for a message.
type Waiter interface {
	// Woken tells that it need not wait any more. It does not block.
	Woken() bool
}

// Borrower reads a connection in its reader's place.
type Borrower interface {
	// Borrow reads until w is woken. False: the reader should go on, because something came that is the reader's alone to handle, or nothing came for
	// some milliseconds, or ctx ended.
	Borrow(ctx context.Context, w Waiter) bool
	// Interrupt ends a Borrow in which nothing has come for a while, or the next one.
	Interrupt()
}

// Place is the role of a connection's reader.
type Place struct {
	l     *Lender
	b     Borrower
	state atomic.Int32  // held, vacant or lent
	uses  atomic.Uint32 // by borrowers
	back  chan struct{} // capacity 1: a borrower gives the place to the reader

	// Of who has the place.
	rounds int    // in a row, each a single answer and a single new wait before it; below 0 after a disappointment
	waits  uint64 // Lender.waits when the last answer came
}

const (
	held int32 = iota
	vacant
	lent
)

const (
	lendAfter = 16                   // rounds
	lendAgain = -1000                // what they count from after nobody took the place at all
	lendTick  = 2 * time.Millisecond // after one to two of them without a read the reader takes its place back
)

// Place makes the place of a connection's reader, who has it.
func (l *Lender) Place(b Borrower) *Place {
	return &Place{l: l, b: b, back: make(chan struct{}, 1)}
}

// Waits is how many waits have begun.
func (l *Lender) Waits() uint64 { return l.waits.Load() }

// Counts tells, after something came, whether it is time to lend. waits is how many waits had begun when it came, and answer whether it was a single
// answer, which a borrower could have handled.
func (p *Place) Counts(answer bool, waits uint64) bool {
	one := waits == p.waits+1
	p.waits = waits
	if !one || !answer {
		p.rounds = min(p.rounds, 0)
		return false
	}
	p.rounds++
	return p.rounds >= lendAfter
}

// Lend offers the place, and returns when it is the reader's again.
func (p *Place) Lend() {
	l := p.l
	p.rounds = 0
	p.state.Store(vacant)
	if !l.open.CompareAndSwap(nil, p) { // another connection's is lent
		p.state.Store(held)
		return
	}
	defer l.open.Store(nil)
	if l.waits.Load() != p.waits && p.state.CompareAndSwap(vacant, held) {
		return // somebody waits already, and has not seen that he could read
	}
	tick := time.NewTicker(lendTick)
	defer tick.Stop()
	begun := p.uses.Load()
	for last := begun; ; {
		select {
		case <-p.back:
			return
		case <-tick.C:
		}
		switch uses := p.uses.Load(); {
		case uses != last:
			last = uses
		case p.state.CompareAndSwap(vacant, held):
			if uses == begun {
				p.rounds = lendAgain
			}
			return
		default:
			p.b.Interrupt()
		}
	}
}

// Used is how many waits were read for in the place, by who waited.
func (p *Place) Used() uint32 { return p.uses.Load() }

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
	if p.b.Borrow(ctx, w) {
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

// Lent is the place that is lent; nil: none is.
func (l *Lender) Lent() *Place { return l.open.Load() }

// Waiting is how many goroutines wait to be woken by others.
func (l *Lender) Waiting() int { return int(l.parked.Load()) }

func (p *Place) giveBack() {
	p.state.Store(held)
	p.back <- struct{}{}
}
