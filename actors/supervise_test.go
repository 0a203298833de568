package actors

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/errs"
)

func names(es []Event) (out []string) {
	for _, e := range es {
		out = append(out, e.Name)
	}
	return out
}

// A storm in one child goes beyond its policy; the supervisor restarts all or one.
func TestEscalationToTheSupervisor(t *testing.T) {
	for _, tc := range []struct {
		strategy Strategy
		restarts map[string]int // at the end
	}{
		{AllForOne, map[string]int{"a": 3, "b": 1, "below": 1}},
		{OneForOne, map[string]int{"a": 3, "b": 0, "below": 0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := &events{}
			s := NewSystem(Config{OnEvent: log.add})
			sup, err := Supervisor(s, "raylet", "raylet", Policy{Strategy: tc.strategy})
			if err != nil {
				t.Fatal(err)
			}
			p := Policy{MaxRestarts: 2, Window: time.Minute}
			recA, recB, recC := newRecording(), newRecording(), newRecording()
			specA := scriptSpec("a", recA)
			specA.Policy = p
			a := spawn(t, sup, specA)
			b := spawn(t, sup, scriptSpec("b", recB))
			below := spawn(t, b, scriptSpec("below", recC))
			other := spawn(t, s, scriptSpec("other", newRecording()))
			// Panics 1, 2 restart a by its own policy; the third escalates.
			post(t, a, ev{id: 1, crash: 2}, ev{id: 2, crash: 1}, ev{id: 3})
			synctest.Wait()
			time.Sleep(time.Second)
			for _, r := range []*Ref[ev]{a, b, below, other} {
				barrier(t, r)
			}
			got := map[string]int{}
			for _, i := range s.Tree() {
				got[i.Name] = i.Restarts
			}
			for name, n := range tc.restarts {
				if got[name] != n {
					t.Errorf("strategy %d: %s has %d restarts, want %d", tc.strategy, name, got[name], n)
				}
			}
			if got["other"] != 0 {
				t.Errorf("a component outside the supervisor was restarted")
			}
			want(t, "escalated", names(log.of(EventEscalated)), []string{"a"})
			if e := log.of(EventEscalated)[0]; e.Parent != "root/raylet" {
				t.Errorf("escalated to %s", e.Parent)
			}
			want(t, "stepped by a", recA.ids(), []int{2, 3, -1})
			want(t, "poisoned in a", recA.poison, []int{1})
			if tc.strategy == AllForOne && !errors.Is(recB.starts[1].Reason, errs.ErrPanic) {
				t.Errorf("b restarted because of %v", recB.starts[1].Reason)
			}
			stopTree(t, s)
		})
	}
}

// However long the report of a panic takes, the restart is reported after it.
func TestAPanicIsToldBeforeItsRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &events{}
		s := NewSystem(Config{OnEvent: func(e Event) {
			if e.Kind == EventPanicked {
				time.Sleep(time.Minute)
			}
			log.add(e)
		}})
		a := spawn(t, s, scriptSpec("a", newRecording()))
		if err := a.Post(ev{id: 1, crash: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		log.mu.Lock()
		var kinds []EventKind
		for _, e := range log.list {
			if e.Name == "a" {
				kinds = append(kinds, e.Kind)
			}
		}
		log.mu.Unlock()
		want(t, "events", kinds, []EventKind{EventStarted, EventPanicked, EventRestarted})
		stopTree(t, s)
	})
}

// Escalation climbs every level and ends at the root: an event, a stop, a notice.
func TestRootEscalation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &events{}
		s := NewSystem(Config{OnEvent: log.add})
		outer, _ := Supervisor(s, "sup", "outer", Policy{MaxRestarts: 1})
		inner, _ := Supervisor(outer, "sup", "inner", Policy{MaxRestarts: 1})
		spec := scriptSpec("a", newRecording())
		spec.Policy = Policy{MaxRestarts: NoRestarts}
		a := spawn(t, inner, spec)
		sibling := spawn(t, outer, scriptSpec("sibling", newRecording()))
		rec := newRecording()
		watcher := spawn(t, s, scriptSpec("watcher", rec))
		var downs []Down
		notice := func(d Down) ev { downs = append(downs, d); return ev{id: 50} }
		watcher.Watch(a, notice)
		watcher.Watch(outer, notice)
		for i := range 9 {
			if a.Post(ev{id: i, crash: 9}) != nil {
				break
			}
			time.Sleep(time.Second)
		}
		<-a.Done()
		<-sibling.Done()
		synctest.Wait()
		// inner restarts a once, then outer restarts inner (and a) once, then again inner once
		// before the root is reached.
		want(t, "escalated", names(log.of(EventEscalated)), []string{"a", "a", "inner", "a", "a", "inner", "outer"})
		failed := log.of(EventFailed)
		if len(failed) != 1 || failed[0].Name != "outer" || !errors.Is(failed[0].Err, errs.ErrComponentFailed) || !errors.Is(failed[0].Err, errs.ErrPanic) {
			t.Errorf("failed events %+v", failed)
		}
		want(t, "notices", rec.ids(), []int{50, 50})
		if len(downs) != 2 || downs[0].Name != "a" || downs[1].Name != "outer" || !errors.Is(downs[0].Err, errs.ErrComponentFailed) || !errors.Is(downs[1].Err, errs.ErrComponentFailed) {
			t.Errorf("downs %+v", downs)
		}
		if err := a.Post(ev{}); !errors.Is(err, ErrStopped) {
			t.Errorf("post to a failed component: %v", err)
		}
		if err := watcher.Post(ev{}); err != nil {
			t.Errorf("the rest of the tree: %v", err)
		}
		stopTree(t, s)
	})
}

// A component with a core may be a parent too; its restart leaves its children alone.
func TestParentRestartKeepsChildren(t *testing.T) {
	s := system(t, Config{})
	parentRec, childRec := newRecording(), newRecording()
	parent := spawn(t, s, scriptSpec("parent", parentRec))
	child := spawn(t, parent, scriptSpec("child", childRec))
	post(t, parent, ev{id: 1, crash: 1})
	barrier(t, parent)
	post(t, child, ev{id: 1, crash: 1})
	barrier(t, child)
	if len(parentRec.cores) != 2 || len(childRec.cores) != 2 {
		t.Errorf("cores: parent %d, child %d; want 2 and 2", len(parentRec.cores), len(childRec.cores))
	}
	tree := s.Tree()
	if len(tree) != 2 || tree[1].Parent != "root/parent" || tree[1].Path != "root/parent/child" {
		t.Errorf("tree %+v", tree)
	}
}

func TestBackoffDoublesAndTheWindowForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &events{}
		s := NewSystem(Config{OnEvent: log.add})
		rec := newRecording()
		spec := scriptSpec("a", rec)
		spec.Policy = Policy{MaxRestarts: 5, Window: time.Minute, Backoff: 100 * time.Millisecond, MaxBackoff: 300 * time.Millisecond}
		a := spawn(t, s, spec)
		var took []time.Duration
		crash := func() {
			begin := time.Now()
			post(t, a, ev{id: len(took), crash: 1})
			barrier(t, a)
			took = append(took, time.Since(begin))
		}
		crash()
		crash()
		crash()
		crash()
		time.Sleep(time.Minute)
		crash()
		ms := time.Millisecond
		want(t, "backoffs", took, []time.Duration{100 * ms, 200 * ms, 300 * ms, 300 * ms, 100 * ms})
		for i, e := range log.of(EventPanicked) {
			if e.Backoff != took[i] {
				t.Errorf("panic %d reported backoff %s, was %s", i, e.Backoff, took[i])
			}
		}
		stopTree(t, s)
	})
}

// A component that never comes up fails for good, and does not go on in a loop: whether it cannot begin, or steps nothing.
func TestWhatNeverComesUpFails(t *testing.T) {
	policy := Policy{MaxRestarts: 20, Window: 10 * time.Second}
	for _, tc := range []struct {
		name string
		spec func(*Spec[ev, eff])
		post int // events that no core survives
	}{
		{"New gives an error", func(spec *Spec[ev, eff]) {
			inner := spec.New
			spec.New = func(st Start) (Core[ev, eff], []ev, error) {
				c, _, err := inner(st)
				if st.Restart > 0 {
					err = errors.New("the log is damaged")
				}
				return c, nil, err
			}
		}, 1},
		{"the first event panics", func(spec *Spec[ev, eff]) {
			inner := spec.New
			spec.New = func(st Start) (Core[ev, eff], []ev, error) {
				c, _, err := inner(st)
				return c, []ev{{id: -st.Restart, crash: min(st.Restart, 1)}}, err
			}
		}, 1},
		{"a vital event panics", func(spec *Spec[ev, eff]) { spec.Vital = func(ev) bool { return true } }, 1},
		{"all events panic", func(*Spec[ev, eff]) {}, 1000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &events{}
				s := NewSystem(Config{OnEvent: log.add})
				sup, _ := Supervisor(s, "sup", "sup", Policy{MaxRestarts: 10, Window: time.Minute})
				for _, parent := range []Parent{s, sup} {
					spec := scriptSpec("a", newRecording())
					spec.Policy = policy
					tc.spec(&spec)
					a := spawn(t, parent, spec)
					begin := time.Now()
					for i := range tc.post {
						post(t, a, ev{id: i + 1, crash: 1 << 20})
					}
					select {
					case <-a.Done():
						t.Logf("it failed after %v, %d panics", time.Since(begin), len(log.of(EventPanicked)))
					case <-time.After(10 * time.Minute):
						t.Errorf("it goes on, after %d panics", len(log.of(EventPanicked)))
					}
				}
				if failed := log.of(EventFailed); len(failed) != 2 || !errors.Is(failed[0].Err, errs.ErrComponentFailed) {
					t.Errorf("failed events %+v", failed)
				}
				stopTree(t, s)
			})
		})
	}
}

// While it waits for its backoff a component takes posts, shows it, and can be stopped.
func TestStopDuringBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &events{}
		s := NewSystem(Config{OnEvent: log.add})
		rec := newRecording()
		spec := scriptSpec("a", rec)
		spec.Policy.Backoff = time.Hour
		spec.Policy.MaxBackoff = time.Hour
		a := spawn(t, s, spec)
		post(t, a, ev{id: 1, crash: 1}, ev{id: 2})
		synctest.Wait()
		post(t, a, ev{id: 3})
		if i := s.Tree()[0]; !i.Waiting || i.Depth != 3 {
			t.Errorf("tree %+v, want waiting with 3 messages", i)
		}
		begin := time.Now()
		stopTree(t, s)
		if d := time.Since(begin); d != 0 {
			t.Errorf("stop took %s of virtual time", d)
		}
		if e := log.of(EventStopped); e[0].Name != "a" || e[0].Dropped != 3 {
			t.Errorf("stopped events %+v", e)
		}
		if len(rec.cores) != 1 || rec.stops != 1 {
			t.Errorf("cores %d, stops %d; want 1 and 1", len(rec.cores), rec.stops)
		}
	})
}

func TestFailuresWindow(t *testing.T) {
	p := Policy{MaxRestarts: Unlimited, Window: time.Hour, Backoff: 1, MaxBackoff: 1 << 40}.withDefaults()
	var f failures
	for i := range int64(500) {
		if _, ok := f.add(i, uint64(i), p); !ok {
			t.Fatalf("failure %d escalates under Unlimited", i)
		}
	}
	if len(f.at) > 65 || !slices.IsSorted(f.at) {
		t.Errorf("%d failures kept, sorted %v", len(f.at), slices.IsSorted(f.at))
	}
	p.MaxRestarts = 2
	f = failures{}
	var got []bool
	for _, at := range []int64{0, 1, 2, int64(time.Hour), int64(time.Hour) + 3} {
		_, ok := f.add(at, uint64(at)+1, p)
		got = append(got, ok)
	}
	// at 1h: 1 and 2 remain, three in all; at 1h+3 only the one at 1h.
	want(t, "allowed", got, []bool{true, true, false, false, true})
}
