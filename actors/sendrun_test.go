package actors

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// here tells whether the calling function runs below a frame of that name.
func here(name string) bool {
	buf := make([]byte, 1<<16)
	return strings.Contains(string(buf[:runtime.Stack(buf, false)]), name)
}

//go:noinline
func sendRunHere(ctx context.Context, r *Ref[ev], e ev) error { return r.SendRun(ctx, e) }

func TestSendRunStepsOnTheCallersGoroutineWhereIdle(t *testing.T) {
	for _, thread := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := NewSystem(Config{})
			rec := newRecording()
			spec := scriptSpec("c", rec)
			spec.Thread = thread
			r := spawn(t, s, spec)
			synctest.Wait() // idle
			var mine bool
			if err := sendRunHere(t.Context(), r, ev{id: 1, do: []eff{{id: 7}}, step: func(*recording) { mine = here("sendRunHere") }}); err != nil {
				t.Fatal(err)
			}
			if !thread {
				want(t, "stepped when SendRun returned", rec.ids(), []int{1})
				want(t, "effects", rec.effects, []int{7})
				if rec.flushes == 0 {
					t.Error("SendRun returned before the flush")
				}
			}
			barrier(t, r)
			if mine == thread {
				t.Errorf("thread %v: stepped by the sender: %v", thread, mine)
			}
			stopTree(t, s)
			if err := r.SendRun(t.Context(), ev{}); !errors.Is(err, ErrStopped) {
				t.Errorf("after the stop: %v", err)
			}
		})
	}
}

func TestSendRunOfABusyComponentOnlyQueues(t *testing.T) {
	s := system(t, Config{})
	r, rec, open := gated(t, s, 4)
	var mine bool
	if err := sendRunHere(t.Context(), r, ev{id: 1, step: func(*recording) { mine = here("sendRunHere") }}); err != nil {
		t.Fatal(err)
	}
	want(t, "stepped while the gate is shut", rec.ids(), []int{0})
	open()
	barrier(t, r)
	want(t, "stepped", rec.ids(), []int{0, 1, -1})
	if mine {
		t.Error("the sender stepped for a component that was busy")
	}
}

// What is posted during the sender's turn is for the component's own.
func TestSendRunReturnsAfterOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		r := spawn(t, s, scriptSpec("c", rec))
		synctest.Wait()
		var mine bool
		again := func(self *Ref[ev]) { post(t, self, ev{id: 2, step: func(*recording) { mine = here("sendRunHere") }}) }
		if err := sendRunHere(t.Context(), r, ev{id: 1, do: []eff{{run: again}}}); err != nil {
			t.Fatal(err)
		}
		barrier(t, r)
		want(t, "stepped", rec.ids(), []int{1, 2, -1})
		if mine {
			t.Error("the sender was kept for a second turn")
		}
		stopTree(t, s)
	})
}

func TestSendRunOfAnEventThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		r := spawn(t, s, scriptSpec("c", rec))
		synctest.Wait()
		if err := r.SendRun(t.Context(), ev{id: 1, crash: 1}); err != nil {
			t.Fatal(err)
		}
		barrier(t, r)
		want(t, "stepped by the second core", rec.ids(), []int{1, -1})
		if len(rec.starts) != 2 {
			t.Errorf("%d cores, want 2", len(rec.starts))
		}
		stopTree(t, s)
	})
}

// A core that calls runtime.Goexit takes the sender's goroutine, not the component.
func TestSendRunOfAnEventThatExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		r := spawn(t, s, scriptSpec("c", rec))
		synctest.Wait()
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = r.SendRun(t.Context(), ev{id: 1, step: func(rec *recording) {
				first := false
				rec.with(func() { first = rec.tries[1] == 1 })
				if first {
					runtime.Goexit()
				}
			}})
			t.Error("the sender went on")
		})
		wg.Wait()
		barrier(t, r)
		want(t, "stepped", rec.ids(), []int{1, 1, -1})
		stopTree(t, s)
	})
}

// Senders by both ways and posters at once: each one's order is kept, nothing is lost.
func TestSendRunAmongOthers(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	r := spawn(t, s, scriptSpec("c", rec))
	const senders, each = 6, 300
	var wg sync.WaitGroup
	for g := range senders {
		wg.Go(func() {
			for i := range each {
				send := r.SendRun
				if (g+i)%3 == 0 {
					send = r.Send
				}
				if err := send(t.Context(), ev{id: g*each + i}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	barrier(t, r)
	next := make([]int, senders)
	for _, id := range rec.ids() {
		if id < 0 {
			continue
		}
		if g := id / each; id%each != next[g] {
			t.Fatalf("sender %d: event %d came, %d was due", g, id%each, next[g])
		} else {
			next[g]++
		}
	}
	for g, n := range next {
		if n != each {
			t.Errorf("sender %d: %d events stepped, want %d", g, n, each)
		}
	}
}

// Until the caller takes the turn nothing is stepped, and others only queue.
func TestSendTurnLeavesTheTurnToTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		r := spawn(t, s, scriptSpec("c", rec))
		synctest.Wait()
		turn, err := r.SendTurn(t.Context(), ev{id: 1})
		if err != nil || turn == nil {
			t.Fatalf("an idle component gave %v, %v", turn != nil, err)
		}
		post(t, r, ev{id: 2})
		if second, err := r.SendTurn(t.Context(), ev{id: 3}); err != nil || second != nil {
			t.Errorf("one whose turn is taken gave %v, %v", second != nil, err)
		}
		synctest.Wait()
		want(t, "stepped before the turn", rec.ids(), nil)
		turn()
		want(t, "stepped in the turn", rec.ids(), []int{1, 2, 3})
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if turn, err := r.SendTurn(over, ev{id: 4}); err == nil || turn != nil {
			t.Errorf("with a context that is over: %v, %v", turn != nil, err)
		}
		stopTree(t, s)
	})
}
