package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// ledger is a port that keeps each Send's messages and answers Gets.
type ledger struct {
	c *Client

	mu    sync.Mutex
	sends [][]wire.Msg
	fails error
}

func (l *ledger) Send(msgs ...wire.Msg) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails != nil {
		return l.fails
	}
	l.sends = append(l.sends, append([]wire.Msg(nil), msgs...))
	for _, m := range msgs {
		if g, ok := m.(*wire.Get); ok {
			l.c.Deliver([]wire.Msg{&wire.Resolved{ID: g.ID, Fetch: g.Fetch, Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte{1}}, Size: 1}}})
		}
	}
	return nil
}

func (l *ledger) Close() error { return nil }

// kinds gives the kinds of the messages since the last call, one list for each Send.
func (l *ledger) kinds() (out [][]wire.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sends {
		var ks []wire.Kind
		for _, m := range s {
			ks = append(ks, m.Kind())
		}
		out = append(out, ks)
	}
	l.sends = nil
	return out
}

func (l *ledger) want(t *testing.T, when string, want ...[]wire.Kind) {
	t.Helper()
	got := l.kinds()
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same = len(got[i]) == len(want[i])
		for j := 0; same && j < len(got[i]); j++ {
			same = got[i][j] == want[i][j]
		}
	}
	if !same {
		t.Errorf("%s: sent %v, want %v", when, got, want)
	}
}

func newLedger(cfg Config) (*Client, *ledger) {
	l := &ledger{}
	cfg.Port, cfg.Log = l, slog.New(slog.DiscardHandler)
	cfg.Welcome = &wire.Welcome{Client: 3, Job: 7, Root: ids.RootTask(7, 1), InlineMax: 1024}
	l.c = New(cfg)
	return l.c, l
}

func (l *ledger) submit(t *testing.T) *Handle {
	t.Helper()
	hs, err := l.c.Submit(t.Context(), &wire.TaskSpec{ID: l.c.Root().NextTask(), Opts: plain})
	if err != nil {
		t.Fatal(err)
	}
	return hs[0]
}

func (l *ledger) pair(t *testing.T) {
	t.Helper()
	if _, err := l.c.Get1(t.Context(), l.submit(t)); err != nil {
		t.Fatal(err)
	}
}

var (
	submitOnly = []wire.Kind{wire.KindSubmit}
	getOnly    = []wire.Kind{wire.KindGet}
	together   = []wire.Kind{wire.KindSubmit, wire.KindGet}
)

// learn shows the client that each submit is followed by a wait.
func (l *ledger) learn(t *testing.T) {
	t.Helper()
	for range corkAfter {
		l.pair(t)
	}
	l.kinds()
}

func TestSubmitAndItsWaitGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newLedger(Config{})
		l.pair(t)
		l.want(t, "a first pair", submitOnly, getOnly)
		l.learn(t)
		for range 3 {
			l.pair(t)
		}
		l.want(t, "pairs after many", together, together, together)

		h := l.submit(t)
		l.want(t, "a submit alone")
		l.submit(t)
		l.want(t, "a second submit", []wire.Kind{wire.KindSubmit, wire.KindSubmit})
		if _, err := c.Get1(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		l.kinds()
		l.pair(t)
		l.want(t, "the pattern is broken", submitOnly, getOnly)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestSubmitIsNotKeptLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newLedger(Config{})
		l.learn(t)
		l.submit(t)
		l.want(t, "at once")
		time.Sleep(corkTick) // the bubble's clock
		synctest.Wait()
		l.want(t, "after the tick", submitOnly)
		time.Sleep(2 * corkIdleTicks * corkTick)
		synctest.Wait()
		if c.outbox.cork.ticking.Load() {
			t.Error("the ticker goes on without anything to do")
		}
		l.kinds() // releases
		l.pair(t)
		l.want(t, "after a wait that came late", submitOnly, getOnly)

		l.learn(t)
		for what, send := range map[string]func(){
			"Flush": func() { c.Flush() },
			"a put": func() { _, _ = c.Put(t.Context(), wire.Value{Data: []byte{1}}) },
		} {
			l.pair(t) // the last submit was not waited for
			l.learn(t)
			l.submit(t)
			l.want(t, "before "+what)
			send()
			if got := l.kinds(); len(got) == 0 || got[0][0] != wire.KindSubmit {
				t.Errorf("%s sent %v", what, got)
			}
		}
		l.pair(t)
		l.learn(t)
		l.submit(t)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		l.want(t, "Close", submitOnly)
	})
}

// A submit that is kept back while the connection breaks is sent with the replay.
func TestKeptSubmitOutlivesItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &ledger{}
		c, l := newLedger(Config{Reconnect: func(context.Context, error) (Session, error) { return Session{Port: next}, nil }})
		next.c = c
		l.learn(t)
		h := l.submit(t)
		c.Disconnected(l, errors.New("gone"))
		synctest.Wait()
		l.want(t, "on the old connection")
		n, holdings := 0, false
		next.mu.Lock()
		for _, s := range next.sends {
			for _, m := range s {
				switch m := m.(type) {
				case *wire.Holdings:
					holdings = true
				case *wire.Submit:
					if !holdings {
						t.Error("a submit came before the holdings")
					}
					if m.Spec.ID.Return(0) == h.ID() {
						n++
					}
				}
			}
		}
		next.mu.Unlock()
		if n != 1 {
			t.Errorf("the submit was sent %d times", n)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// turns is a port inside the node's process: it leaves its work on a wait to the waiter.
type turns struct {
	*ledger
	waits, taken int
}

func (p *turns) SendTurn(msgs ...wire.Msg) (func(), error) {
	p.waits++
	return func() {
		p.taken++
		p.c.Flush() // would wait for ever for a lock of the caller's
	}, p.Send(msgs...)
}

func TestWaiterTakesTheNodesTurn(t *testing.T) {
	l := &ledger{}
	p := &turns{ledger: l}
	c := New(Config{Port: p, Log: slog.New(slog.DiscardHandler), Welcome: &wire.Welcome{Client: 3, Job: 7, Root: ids.RootTask(7, 1), InlineMax: 1024}})
	l.c = c
	h := l.submit(t)
	if p.waits != 0 {
		t.Error("a submit alone offers no turn")
	}
	if _, err := c.Get1(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Wait(t.Context(), []*Handle{l.submit(t), l.submit(t)}, 2); err != nil {
		t.Fatal(err)
	}
	if p.waits != 2 || p.taken != 2 {
		t.Errorf("%d waits were sent as such and %d turns taken, want 2 and 2", p.waits, p.taken)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
