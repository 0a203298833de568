package worker

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/testkit"
	"mobula/wire"
)

// A call that waits for an object hears of its own end, however the two meet, as does what it has left behind: one is given a token, and others have a channel made.
func TestWhoWaitsHearsOfTheEndOfACall(t *testing.T) {
	s := newStraight(t, Config{}, (*peer).plain)
	never := ids.RootTask(9, 77).Return(0)
	begun, ends := make(chan *taskCtx, 1), make(chan error, 8)
	get := func(ctx context.Context) error {
		h := s.c.Bind(never)
		defer h.Release()
		_, err := s.c.Get1(ctx, h)
		return err
	}
	waits := s.handle("waits", wire.TaskActorCall, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		begun <- ctx.(*taskCtx)
		return nil, nil, get(ctx)
	})
	parked := func(c *taskCtx) {
		for c.waits.Load() == nil {
			runtime.Gosched()
		}
	}
	for i := range 100 {
		a := s.ask(waits)
		if c := <-begun; i%2 == 0 {
			if parked(c); c.inner.Load() != nil {
				t.Fatal("a channel was made for a wait")
			}
		}
		a.k.Cancel(direct.Wish{})
		a.fails(errs.CodeCancelled)
	}
	both := s.ask(s.handle("both", wire.TaskActorCall, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		begun <- ctx.(*taskCtx)
		for range 2 {
			go func() { ends <- get(ctx) }()
		}
		return nil, nil, errors.Join(<-ends, <-ends)
	}))
	parked(<-begun)
	both.k.Cancel(direct.Wish{})
	both.fails(errs.CodeCancelled)
	s.ask(s.handle("leaves", wire.TaskActorCall, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		go func() { ends <- get(ctx) }()
		parked(ctx.(*taskCtx))
		return out("left"), nil, nil
	})).results()
	if err := testkit.Receive(t, "the end of a wait that a call has left behind", ends); !errors.Is(err, errs.ErrCancelled) {
		t.Errorf("it ended with %v", err)
	}
	if err := s.e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Where the executor's own context ends, so does a wait.
func TestAWaitEndsWithTheExecutorsContext(t *testing.T) {
	base, cancel := context.WithCancel(t.Context())
	s := newStraight(t, Config{Base: base}, (*peer).plain)
	parked := make(chan struct{})
	a := s.ask(s.handle("waits", wire.TaskActorCall, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		h := s.c.Bind(ids.RootTask(9, 77).Return(0))
		defer h.Release()
		go func() {
			for ctx.(*taskCtx).waits.Load() == nil {
				runtime.Gosched()
			}
			close(parked)
		}()
		_, err := s.c.Get1(ctx, h)
		return nil, nil, err
	}))
	testkit.Receive(t, "the wait", parked)
	cancel()
	a.fails(errs.CodeTaskFailed) // nobody has cancelled it
}
