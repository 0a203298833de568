package client

import (
	"context"
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

func (f *fakeNode) cancelled() map[ids.TaskID]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[ids.TaskID]int)
	for _, m := range f.log {
		if m, ok := m.(*wire.Cancel); ok && m.Recursive {
			out[m.Task]++
		}
	}
	return out
}

func follow(ctx context.Context, t *testing.T, c *Client, n int32) []*Handle {
	t.Helper()
	tc := c.Root()
	spec := &wire.TaskSpec{ID: tc.NextTask(), Opts: &wire.TaskOptions{Func: "f", NumReturns: n}}
	hs, err := c.Submit(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	c.Follow(ctx, tc, spec.ID, hs)
	return hs
}

func TestAContextCancelsOnlyWhatIsAwaited(t *testing.T) {
	f := newFake(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	two := follow(ctx, t, f.c, 2)
	released := follow(context.WithValue(ctx, &f, 1), t, f.c, 1)
	known := follow(ctx, t, f.c, 1)
	other, stop := context.WithCancel(t.Context())
	defer stop()
	follow(other, t, f.c, 1)
	released[0].Release()
	f.c.Dispatch(&wire.Resolved{ID: known[0].ID(), Result: wire.Result{Kind: wire.ResultInline}})
	cancel()
	f.until("a task is cancelled", func() bool { return f.count(wire.KindCancel) > 0 })
	follow(ctx, t, f.c, 1) // too late: it is cancelled by itself
	f.until("another is", func() bool { return f.count(wire.KindCancel) > 1 })
	if got := f.cancelled(); len(got) != 2 || got[two[0].ID().Task] != 1 {
		t.Errorf("cancelled %v", got)
	}
}

// Tasks that have ended leave nothing behind, however long contexts live.
func TestFollowersStayFew(t *testing.T) {
	f := newFake(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hold := follow(ctx, t, f.c, 1)
	for range 10_000 {
		short, end := context.WithCancel(t.Context())
		defer end()
		for _, h := range append(follow(ctx, t, f.c, 1), follow(short, t, f.c, 1)...) {
			h.Release()
		}
	}
	fs := &f.c.followed
	fs.mu.Lock()
	if n := len(fs.by); n > 2*followSweep {
		t.Errorf("%d contexts are followed", n)
	}
	if n := len(fs.by[ctx.Done()].handles); n > 2*followSweep {
		t.Errorf("a context is followed by %d", n)
	}
	fs.mu.Unlock()
	cancel()
	f.until("the one that is awaited is cancelled", func() bool { return f.count(wire.KindCancel) == 1 })
	if got := f.cancelled(); got[hold[0].ID().Task] != 1 {
		t.Errorf("cancelled %v", got)
	}
}
