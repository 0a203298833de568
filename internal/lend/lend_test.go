package lend

import (
	"context"
	"testing"
	"testing/synctest"
)

// reader is a connection from which each read brings what is waited for or, if it is silent, nothing before it is interrupted.
type reader struct {
	silent      bool
	interrupted chan struct{}
}

func (r *reader) Borrow(context.Context, Waiter) bool {
	if r.silent {
		<-r.interrupted
	}
	return !r.silent
}

func (r *reader) Interrupt() { close(r.interrupted) }

type waiter struct{}

func (waiter) Woken() bool { return false }

// rounds is how many answers come before it is time to lend.
func rounds(l *Lender, p *Place) (n int) {
	for lends := false; !lends; n++ {
		l.waits.Add(1)
		lends = p.Counts(true, l.Waits())
	}
	return n
}

// A place that nobody took is not offered again soon; one that was used is.
func TestAPlaceIsOfferedWhereItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lender
		p := l.Place(&reader{})
		if n := rounds(&l, p); n != lendAfter {
			t.Errorf("it is lent after %d rounds, want %d", n, lendAfter)
		}
		p.Lend()
		if n := rounds(&l, p); n < -lendAgain {
			t.Errorf("nobody took it, and it is lent again after %d rounds", n)
		}
		back := make(chan struct{})
		go func() {
			defer close(back)
			p.Lend()
		}()
		synctest.Wait()
		if l.Lent() != p || !l.Read(t.Context(), waiter{}) || p.Used() != 1 {
			t.Fatal("who waits does not read")
		}
		<-back
		if n := rounds(&l, p); n > lendAfter+1 {
			t.Errorf("it was used, and is lent again after %d rounds", n)
		}
	})
}

// A borrower for whom nothing comes gives the place back.
func TestABorrowerThatWaitsForLongIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lender
		p := l.Place(&reader{silent: true, interrupted: make(chan struct{})})
		rounds(&l, p)
		back := make(chan struct{})
		go func() {
			defer close(back)
			p.Lend()
		}()
		synctest.Wait()
		if l.Read(t.Context(), waiter{}) {
			t.Error("nothing came, and the waiter need not wait")
		}
		<-back
		if l.Lent() != nil || l.Waiting() != 1 {
			t.Errorf("lent: %v, %d wait", l.Lent(), l.Waiting())
		}
		l.Woken()
	})
}

// Answers that several goroutines wait for do not count, nor does anything else.
func TestOnlyAConversationCounts(t *testing.T) {
	var l Lender
	p := l.Place(&reader{})
	for range 10 * lendAfter {
		l.waits.Add(2)
		if p.Counts(true, l.Waits()) {
			t.Fatal("two wait")
		}
	}
	for i := range 10 * lendAfter {
		l.waits.Add(1)
		if p.Counts(i%lendAfter != 0, l.Waits()) {
			t.Fatal("something else comes")
		}
	}
}
