package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestOrderedStop(t *testing.T) {
	var mu sync.Mutex
	var order []string
	s := NewSystem(Config{})
	named := func(name string) Spec[ev, eff] {
		spec := scriptSpec(name, newRecording())
		spec.Stop = func() {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
		}
		return spec
	}
	a := spawn(t, s, named("a"))
	sup, err := Supervisor(s, "sup", "sup", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	b := spawn(t, sup, named("b"))
	spawn(t, b, named("b1"))
	spawn(t, b, named("b2"))
	spawn(t, sup, named("c"))
	spawn(t, a, named("a1")) // started last, but stopped with its parent
	want(t, "tree", paths(s), []string{"root/a", "root/a/a1", "root/sup", "root/sup/b", "root/sup/b/b1", "root/sup/b/b2", "root/sup/c"})
	stopTree(t, s)
	want(t, "order of stops", order, []string{"c", "b2", "b1", "b", "a1", "a"})
	if len(s.Tree()) != 0 {
		t.Errorf("left: %v", paths(s))
	}
	if _, err := Spawn(s, named("late")); !errors.Is(err, ErrStopped) {
		t.Errorf("spawn after the stop: %v", err)
	}
	stopTree(t, s) // again: nothing to do
	goleak.VerifyNone(t)
}

func paths(s *System) (out []string) {
	for _, i := range s.Tree() {
		out = append(out, i.Path)
	}
	return out
}

func TestStopDrainsAndFlushes(t *testing.T) {
	s := NewSystem(Config{})
	r, rec, open := gated(t, s, 64)
	for i := 1; i < 50; i++ {
		post(t, r, ev{id: i, do: []eff{{id: i, run: func(self *Ref[ev]) {
			_ = self.Post(ev{id: 1000}) // before the stop is seen it is taken, afterwards refused
		}}}})
	}
	r.BeginStop()
	open()
	<-r.Done()
	seen := map[int]bool{}
	for _, id := range rec.ids() {
		seen[id] = true
	}
	for i := range 50 {
		if !seen[i] {
			t.Errorf("event %d was not stepped", i)
		}
	}
	if rec.stops != 1 || rec.flushes == 0 {
		t.Errorf("stops %d, flushes %d", rec.stops, rec.flushes)
	}
	if err := r.Post(ev{}); !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(), "root/gated") {
		t.Errorf("post after stop: %v", err)
	}
	stopTree(t, s)
}

func TestStopDeadlineNamesWhoIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &events{}
		s := NewSystem(Config{OnEvent: log.add})
		r, rec, open := gated(t, s, 8)
		post(t, r, ev{id: 1}, ev{id: 2})
		free := newRecording()
		spawn(t, s, scriptSpec("free", free))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.StopTree(ctx)
		var stuck *StopError
		if !errors.As(err, &stuck) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want a StopError", err)
		}
		want(t, "stuck", stuck.Names, []string{"root/gated"})
		if free.stops != 1 {
			t.Error("the other component was not stopped")
		}
		open()
		<-r.Done()
		want(t, "stepped, not drained", rec.ids(), []int{0})
		if e := log.of(EventStopped); e[len(e)-1].Name != "gated" || e[len(e)-1].Dropped != 2 {
			t.Errorf("stopped events %+v", e)
		}
		synctest.Wait()
	})
}

func TestSpawnThatStartsForeverEndsWithTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		spec := scriptSpec("a", newRecording())
		gate := make(chan struct{})
		inner := spec.New
		spec.New = func(st Start) (Core[ev, eff], []ev, error) { <-gate; return inner(st) }
		got := make(chan error, 1)
		go func() { _, err := Spawn(s, spec); got <- err }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.StopTree(ctx); err == nil {
			t.Error("StopTree did not report it")
		}
		if err := <-got; !errors.Is(err, ErrStopped) {
			t.Errorf("Spawn gave %v", err)
		}
		close(gate)
		synctest.Wait()
		if n := len(s.Tree()); n != 0 {
			t.Errorf("%d components left", n)
		}
	})
}

func TestPanicsWhileStopping(t *testing.T) {
	for _, tc := range []struct{ name string }{{"drain"}, {"flush"}, {"stop"}, {"goexit"}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &events{}
				s := NewSystem(Config{OnEvent: log.add})
				rec := newRecording()
				spec := scriptSpec("a", rec)
				gate, in := make(chan struct{}), make(chan struct{})
				switch tc.name {
				case "flush":
					spec.Flush = func() { panic("flush") }
					spec.Policy.Backoff = time.Nanosecond
				case "stop":
					spec.Stop = func() { panic("stop") }
				}
				r := spawn(t, s, spec)
				post(t, r, ev{id: 0, step: func(*recording) { close(in); <-gate }})
				<-in
				r.BeginStop()
				if tc.name == "drain" {
					post(t, r, ev{id: 1, crash: 9}, ev{id: 2})
				}
				if tc.name == "goexit" { // the stop is begun again, with a new core
					post(t, r, ev{id: 1, step: func(*recording) { runtime.Goexit() }}, ev{id: 2})
				}
				synctest.Wait() // the stop is in the mailbox before the gate opens
				close(gate)
				<-r.Done()
				stopTree(t, s)
				switch tc.name {
				case "goexit":
					want(t, "poisoned", rec.poison, []int{1})
					want(t, "stepped", rec.ids(), []int{0, 1, 1, 2})
					if rec.stops != 1 {
						t.Errorf("Stop was called %d times", rec.stops)
					}
				case "drain":
					want(t, "poisoned", rec.poison, []int{1})
					if e := log.of(EventStopped)[0]; e.Dropped != 1 {
						t.Errorf("dropped %d, want the event after the panic", e.Dropped)
					}
				default:
					if len(log.of(EventPanicked)) == 0 {
						t.Error("the panic was not reported")
					}
				}
				if len(log.of(EventFailed)) != 0 {
					t.Error("a panic while stopping was taken for a failure")
				}
			})
		})
	}
}

func TestSpawnAndStopFromDo(t *testing.T) {
	s := system(t, Config{})
	rec, childRec := newRecording(), newRecording()
	parent := spawn(t, s, scriptSpec("parent", rec))
	var child *Ref[ev]
	post(t, parent, ev{id: 1, do: []eff{{run: func(self *Ref[ev]) {
		var err error
		if child, err = Spawn(self, scriptSpec("child", childRec)); err != nil {
			t.Error(err)
		}
	}}}})
	barrier(t, parent)
	barrier(t, child)
	want(t, "tree", paths(s), []string{"root/parent", "root/parent/child"})
	post(t, child, ev{id: 1, do: []eff{{run: func(self *Ref[ev]) { self.BeginStop() }}}})
	<-child.Done()
	want(t, "tree", paths(s), []string{"root/parent"})
}

func TestConcurrentSpawnAndStop(t *testing.T) {
	s := NewSystem(Config{})
	var wg sync.WaitGroup
	ahead := make(chan struct{}, 400)
	for g := range 4 {
		wg.Go(func() {
			for i := range 100 {
				r, err := Spawn(s, scriptSpec(fmt.Sprintf("%d/%d", g, i), newRecording()))
				if err != nil {
					if !errors.Is(err, ErrStopped) {
						t.Error(err)
					}
					return
				}
				if i%3 == 0 {
					r.BeginStop()
				}
				ahead <- struct{}{}
			}
		})
	}
	for range 40 {
		<-ahead
	}
	stopTree(t, s)
	wg.Wait()
	if n := len(s.Tree()); n != 0 {
		t.Errorf("%d components left: %v", n, paths(s))
	}
	goleak.VerifyNone(t)
}
