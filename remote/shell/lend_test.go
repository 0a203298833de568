package shell

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"mobula/internal/lend"
	"mobula/internal/testkit"
	"mobula/remote"
)

// token is a lend.Waiter with a channel, as a client has it.
type token chan struct{}

func (k token) Woken() bool { return len(k) > 0 }

// asker is a node of which a goroutine asks another one, and waits for the answers.
type asker struct {
	*node
	other  *node
	lender lend.Lender

	state   sync.Mutex
	waiting token          // guarded by state
	answers map[string]int // guarded by state: who handled how many of them
	others  map[string]int // guarded by state: likewise of other messages
}

// What is asked: an answer comes, or first another message, or nothing.
const (
	plainly = "q"
	beside  = "b"
	invain  = "v"
)

func newAsker(t *testing.T, nw network) *asker {
	a := &asker{answers: make(map[string]int), others: make(map[string]int)}
	a.node = start(t, nw, 1, 1, func(c *Config) {
		c.Lender, c.Brief, c.Deliver = &a.lender, func(p []byte) bool { return p[0] == 'a' }, a.took
		c.Core.Silence = time.Hour
	})
	up := make(chan struct{})
	a.other = start(t, nw, 2, 1, func(c *Config) {
		c.Core.Silence = time.Hour // else it says now and then that it lives
		c.Deliver = func(from remote.Life, got []byte) {
			<-up
			say := map[string][]string{plainly: {"a"}, beside: {"x", "a"}}[string(got)]
			for _, s := range say {
				if err := a.other.TrySend(remote.Life{Home: from.Home}, []byte(s)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	close(up)
	return a
}

func (a *asker) took(_ remote.Life, p []byte) {
	a.state.Lock()
	defer a.state.Unlock()
	if p[0] != 'a' {
		a.others[goroutine()]++
		return
	}
	a.answers[goroutine()]++
	a.waiting <- struct{}{}
}

// goroutine names the one that runs.
func goroutine() string {
	b := make([]byte, 64)
	return string(bytes.Fields(b[:runtime.Stack(b, false)])[1])
}

// ask asks and waits as a client does.
func (a *asker) ask(ctx context.Context, what string) error {
	w := make(token, 1)
	a.state.Lock()
	a.waiting = w
	a.state.Unlock()
	if err := a.Send(ctx, remote.Life{Home: 2}, []byte(what)); err != nil {
		return err
	}
	if a.lender.Read(ctx, w) {
		return nil
	}
	defer a.lender.Woken()
	select {
	case <-w:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lent asks until the reader has lent its place, and that was used.
func (a *asker) lent() {
	a.t.Helper()
	for range 1_000_000 {
		if err := a.ask(a.t.Context(), plainly); err != nil {
			a.t.Fatal(err)
		}
		if p := a.lender.Lent(); p != nil && p.Used() > 0 {
			return
		}
	}
	a.t.Fatal("the reader never lent its place")
}

// Whoever waits reads for itself, and leaves what is no answer to the reader: it may hold a lock that the handler of another message needs.
func TestWhoWaitsReads(t *testing.T) {
	onEach(t, func(t *testing.T, nw network) {
		a := newAsker(t, nw)
		for range 10 {
			a.lent()
			if err := a.ask(t.Context(), beside); err != nil {
				t.Fatal(err)
			}
		}
		a.state.Lock()
		defer a.state.Unlock()
		if a.answers[goroutine()] == 0 || a.others[goroutine()] != 0 || len(a.others) != 1 {
			t.Errorf("this is goroutine %s; who handled answers: %v, and other messages: %v", goroutine(), a.answers, a.others)
		}
		if n := a.lender.Waiting(); n != 0 {
			t.Errorf("%d goroutines are counted as waiting", n)
		}
	})
}

// Whoever waits in vain gives up with its context, and the connection goes on.
func TestABorrowerIsInterrupted(t *testing.T) {
	onEach(t, func(t *testing.T, nw network) {
		a := newAsker(t, nw)
		a.lent()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		got := make(chan error, 1)
		go func() { got <- a.ask(ctx, invain) }()
		select {
		case err := <-got:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
		case <-time.After(testkit.Patience()):
			t.Fatal("who waits in vain reads still")
		}
		if err := a.ask(t.Context(), plainly); err != nil {
			t.Fatal(err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, n := range a.notices {
			if d, ok := n.(remote.Down); ok {
				t.Errorf("the connection ended: %v", d.Err)
			}
		}
	})
}

// That a connection which is lent has ended is known, though nothing is asked.
func TestTheEndOfALentConnectionIsNoticed(t *testing.T) {
	onEach(t, func(t *testing.T, nw network) {
		a := newAsker(t, nw)
		a.lent()
		a.other.stop()
		awaitNotice(a.node, func(remote.Down) bool { return true })
	})
}
