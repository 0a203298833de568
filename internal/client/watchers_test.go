package client

import (
	"context"
	"errors"
	"slices"
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

func TestAWatcherHearsOfWhatItSubmittedAndOfWhatIsThere(t *testing.T) {
	f := newFake(t, Config{})
	w := f.c.NewWatcher()
	there, err := f.c.Put(t.Context(), wire.Value{Meta: []byte("b"), Data: []byte("there")})
	if err != nil {
		t.Fatal(err)
	}
	_, later := f.submit(plain)
	if err := w.Watch([]*Handle{there, later[0]}); err != nil {
		t.Fatal(err)
	}
	hs, err := w.Submit(t.Context(), &wire.TaskSpec{ID: ids.Derive(f.c.Root().Task, 99), Opts: plain}, 7)
	if err != nil {
		t.Fatal(err)
	}
	f.until("two Gets", func() bool { return f.count(wire.KindGet) == 2 })
	f.resolveInline(later[0].ID(), "later")
	f.resolveStored(hs[0].ID(), "submitted")
	var tokens []int
	for len(tokens) < 3 {
		if err := w.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, x := range w.Take(nil) {
			tokens = append(tokens, x.Token)
		}
	}
	if slices.Sort(tokens); !slices.Equal(tokens, []int{0, 1, 7}) {
		t.Errorf("heard of %v", tokens)
	}
}

func TestWhatAWatcherForgetsCanBeReleased(t *testing.T) {
	f := newFake(t, Config{})
	w := f.c.NewWatcher()
	_, hs := f.submit(plain)
	if err := w.Watch(hs); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	w.Forget(0)
	hs[0].Release()
	f.until("the release", func() bool { return len(f.held) == 0 })
}

type countingBlocker struct{ blocked, unblocked int }

func (b *countingBlocker) Blocked(context.Context, []ids.ObjectID) { b.blocked++ }
func (b *countingBlocker) Unblocked(context.Context)               { b.unblocked++ }

// A reader that runs a task itself must not wait for an answer that only it can read (Config.Waits), nor keep its
// CPU.
func TestATaskThatWaitsForAWatcherSaysSo(t *testing.T) {
	waits := 0
	f := newFake(t, Config{Waits: func() { waits++ }})
	w := f.c.NewWatcher()
	_, hs := f.submit(plain)
	if err := w.Watch(hs); err != nil {
		t.Fatal(err)
	}
	b := new(countingBlocker)
	ctx, cancel := context.WithCancel(WithTask(t.Context(), &TaskContext{Client: f.c, Blocker: b}))
	cancel()
	if err := w.Wait(ctx); err == nil || waits != 1 || *b != (countingBlocker{1, 1}) {
		t.Errorf("got %v; %d, %+v", err, waits, *b)
	}
	f.resolveInline(hs[0].ID(), "x")
	f.until("the result", func() bool { return hs[0].Ready() })
	if err := w.Wait(ctx); err != nil || waits != 1 || b.blocked != 1 {
		t.Errorf("what is there is not waited for: %v; %d, %+v", err, waits, *b)
	}
}

// A node whose owner is lost asks what this process holds, at any time. What is said then names no Get of a task that was not submitted yet: the
// next owner knows no such object, and would answer that it was freed.
func TestHoldingsNameNoGetOfWhatIsNotSubmitted(t *testing.T) {
	f := newFake(t, Config{})
	w := f.c.NewWatcher()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := range 2000 {
			hs, err := w.Submit(t.Context(), &wire.TaskSpec{ID: ids.Derive(f.c.Root().Task, uint64(i)+1), Opts: plain}, i)
			if err != nil {
				t.Error(err)
				return
			}
			w.Forget(i)
			hs[0].Release()
		}
	}()
	for asks := true; asks; {
		select {
		case <-over:
			asks = false
		default:
		}
		if len(f.in) < 1000 {
			f.c.Deliver([]wire.Msg{&wire.Resync{Component: wire.ComponentOwner, Epoch: 1}})
		}
	}
	f.until("all was handled", func() bool { return len(f.in) == 0 })
	f.mu.Lock()
	defer f.mu.Unlock()
	submitted := make(map[ids.ObjectID]bool)
	for _, m := range f.log {
		switch m := m.(type) {
		case *wire.Submit:
			submitted[m.Spec.ID.Return(0)] = true
		case *wire.Holdings:
			for _, g := range m.Gets {
				if !submitted[g.ID] {
					t.Fatalf("a Get of %v is named before its task was submitted", g.ID)
				}
			}
		}
	}
}
