package actors

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/errs"
	"mobula/internal/testkit"
)

// gated is a component whose first event waits for the gate: what is posted meanwhile stays.
func gated(t testing.TB, s *System, bound int) (r *Ref[ev], rec *recording, open func()) {
	rec = newRecording()
	spec := scriptSpec("gated", rec)
	spec.Mailbox = bound
	r = spawn(t, s, spec)
	gate, in := make(chan struct{}), make(chan struct{})
	post(t, r, ev{id: 0, step: func(*recording) { close(in); <-gate }})
	<-in
	return r, rec, sync.OnceFunc(func() { close(gate) })
}

func TestPostRefusesAtTwiceTheBound(t *testing.T) {
	s := system(t, Config{})
	r, rec, open := gated(t, s, 4)
	n := 1 // in hand
	for r.Post(ev{id: n}) == nil {
		n++
	}
	if n != 8 {
		t.Errorf("%d messages were taken, want 8", n)
	}
	if err := r.Post(ev{}); !errors.Is(err, ErrMailboxFull) {
		t.Errorf("got %v, want ErrMailboxFull", err)
	}
	if r.Depth() != 8 {
		t.Errorf("depth %d, want 8", r.Depth())
	}
	// Timers, notices and delivered events are not lost for lack of room.
	r.Deliver(ev{id: 98})
	r.Watch(spawnStopped(t, s), func(Down) ev { return ev{id: 99} })
	open()
	barrierWhenRoom(t, r)
	want(t, "stepped", rec.ids(), []int{0, 1, 2, 3, 4, 5, 6, 7, 98, 99, -1})
}

func barrierWhenRoom(t testing.TB, r *Ref[ev]) {
	t.Helper()
	ctx := testkit.Within(t)
	done := make(chan struct{})
	if err := r.Send(ctx, ev{id: -1, step: func(*recording) { close(done) }}); err != nil {
		t.Fatal(err)
	}
	<-done
}

func spawnStopped(t testing.TB, s *System) *Ref[ev] {
	t.Helper()
	r := spawn(t, s, scriptSpec("stopped", newRecording()))
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSendWaitsForRoomInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		r, rec, open := gated(t, s, 3)
		for id := 1; id < 3; id++ { // with the one in hand: the bound
			if err := r.Send(t.Context(), ev{id: id}); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		blocked := 0
		var mu sync.Mutex
		for id := 3; id < 8; id++ {
			mu.Lock()
			blocked++
			mu.Unlock()
			wg.Go(func() {
				if err := r.Send(t.Context(), ev{id: id}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				blocked--
				mu.Unlock()
			})
			synctest.Wait() // it waits before the next one comes
		}
		if blocked != 5 || r.Depth() != 3 {
			t.Errorf("%d senders wait at depth %d, want 5 at 3", blocked, r.Depth())
		}
		open()
		wg.Wait()
		barrier(t, r)
		want(t, "stepped", rec.ids(), []int{0, 1, 2, 3, 4, 5, 6, 7, -1})
		stopTree(t, s)
	})
}

func TestSendGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		r, rec, open := gated(t, s, 1)
		why := errors.New("no longer wanted")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		begin := time.Now()
		if err := r.Send(ctx, ev{id: 1}); err != why {
			t.Errorf("got %v, want the context's cause", err)
		}
		if d := time.Since(begin); d != time.Second {
			t.Errorf("waited %s", d)
		}
		if err := r.Send(ctx, ev{id: 2}); err != why {
			t.Errorf("with an ended context: %v", err)
		}
		open()
		barrier(t, r)
		want(t, "stepped", rec.ids(), []int{0, -1})
		stopTree(t, s)
	})
}

func TestStopFailsWaitingSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		r, _, open := gated(t, s, 1)
		got := make(chan error, 1)
		go func() { got <- r.Send(t.Context(), ev{id: 1}) }()
		synctest.Wait()
		r.BeginStop()
		synctest.Wait()
		open()
		// It got in while the component drained, or it was refused: never left waiting.
		if err := <-got; err != nil && !errors.Is(err, ErrStopped) {
			t.Errorf("got %v, want nil or ErrStopped", err)
		}
		<-r.Done()
		if err := r.Send(t.Context(), ev{}); !errors.Is(err, ErrStopped) || !errors.Is(err, errs.ErrShutdown) {
			t.Errorf("after the stop: %v", err)
		}
		stopTree(t, s)
	})
}

// Many posters, some by Send: each one's order is kept and nothing is lost.
func TestOrderOfEachPoster(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	spec := scriptSpec("a", rec)
	spec.Mailbox = 16
	r := spawn(t, s, spec)
	const posters, each = 4, 2000
	var wg sync.WaitGroup
	for p := range posters {
		wg.Go(func() {
			for i := range each {
				e := ev{id: p*each + i}
				if p%2 == 0 && r.Post(e) == nil {
					continue
				}
				if err := r.Send(t.Context(), e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	barrierWhenRoom(t, r)
	got := rec.ids()
	if len(got) != posters*each+1 {
		t.Fatalf("%d events, want %d", len(got), posters*each+1)
	}
	last := make([]int, posters)
	for _, id := range got[:len(got)-1] {
		if p := id / each; id%each < last[p] {
			t.Fatalf("poster %d: %d after %d", p, id%each, last[p])
		} else {
			last[p] = id % each
		}
	}
	barrierWhenRoom(t, r) // of a later batch: the one before it is counted
	if h := s.Tree()[0].Handled; h < posters*each {
		t.Errorf("handled %d", h)
	}
}

func TestFlushOncePerBatchAndWithinIt(t *testing.T) {
	s := system(t, Config{})
	r, rec, open := gated(t, s, 4096)
	before := rec.flushes
	for i := range 1000 {
		post(t, r, ev{id: i})
	}
	open()
	barrier(t, r)
	barrier(t, r)
	rec.with(func() {
		// the gate's, 1000/256 within the batch, its end, and the barriers'
		if n := rec.flushes - before; n < 5 || n > 8 {
			t.Errorf("%d flushes for 1000 events in one batch", n)
		}
	})
}

// The kit uses only its clock: setting the wall clock changes no component's time.
func TestTheTimeIsTheSystemsClock(t *testing.T) {
	clock := &byHand{}
	s := system(t, Config{Clock: clock})
	rec := newRecording()
	r := spawn(t, s, scriptSpec("a", rec))
	for _, at := range []int64{1, 1, 1 << 40} {
		clock.now.Store(at)
		barrier(t, r)
	}
	if got := slices.Compact(slices.Clone(rec.times)); !slices.Equal(got, []int64{1, 1 << 40}) {
		t.Errorf("times %v", rec.times)
	}
}

type byHand struct {
	realClock
	now atomic.Int64
}

func (c *byHand) Now() int64 { return c.now.Load() }

func TestPostDoesNotAllocate(t *testing.T) {
	s := system(t, Config{})
	c := &counter{total: -1}
	r, err := Spawn(s, Spec[int, struct{}]{Kind: "k", Name: "n", Mailbox: 1 << 20,
		New: func(Start) (Core[int, struct{}], []int, error) { return c, nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if a := testing.AllocsPerRun(20000, func() { _ = r.Post(1) }); a != 0 {
		t.Errorf("%v allocations a post", a)
	}
}

// The buffers of a burst are given back once the mailbox has been quiet for long.
func TestBuffersOfABurstAreGivenBack(t *testing.T) {
	s := system(t, Config{})
	r, _, open := gated(t, s, 1<<14)
	for i := range 10000 {
		post(t, r, ev{id: i})
	}
	open()
	for range 1200 {
		barrier(t, r)
	}
	caps := func() (batch, queue int) { // read on the component's own goroutine
		done := make(chan struct{})
		post(t, r, ev{step: func(*recording) {
			r.m.mu.Lock()
			batch, queue = cap(r.m.batch), cap(r.m.queue)
			r.m.mu.Unlock()
			close(done)
		}})
		<-done
		return batch, queue
	}
	if b, q := caps(); b > 1024 || q > 1024 {
		t.Errorf("buffers of %d and %d events are kept", b, q)
	}
}

func TestUntypedMessagesAreRefused(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	r := spawn(t, s, scriptSpec("a", rec))
	s.as.Root.Send(r.m.n.pid, "not an event")
	barrier(t, r)
	want(t, "stepped", rec.ids(), []int{-1})
}
