package actors

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFaultPanicMidStep(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	r := spawn(t, s, scriptSpec("a", rec))
	s.Faults.Inject(Fault{Kind: "script", Nth: 2, Action: PanicMidStep})
	for i := range 3 {
		post(t, r, ev{id: i, do: []eff{{id: i}}})
	}
	barrier(t, r)
	// Step of 1 ran and changed the core, no effect left it, and a new core stepped it again.
	want(t, "stepped", rec.ids(), []int{0, 1, 1, 2, -1})
	want(t, "by the first core", rec.cores[0], []int{0, 1})
	want(t, "effects", rec.effects, []int{0, 1, 2})
	var p InjectedPanic
	if !errors.As(rec.starts[1].Reason, &p) || p.Fault.Nth != 2 {
		t.Errorf("reason %v", rec.starts[1].Reason)
	}
	if s.Faults.on.Load() {
		t.Error("a fault that is used up still costs")
	}
}

func TestFaultOnBothDeliveriesPoisons(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	r := spawn(t, s, scriptSpec("a", rec))
	s.Faults.Inject(Fault{Times: 2, Action: PanicMidStep})
	post(t, r, ev{id: 1}, ev{id: 2})
	barrier(t, r)
	want(t, "poisoned", rec.poison, []int{1})
	want(t, "effects", rec.cores[2], []int{2, -1})
}

func TestFaultDropAndDuplicate(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	r := spawn(t, s, scriptSpec("a", rec))
	s.Faults.Inject(Fault{MessageType: "actors.ev", Nth: 2, Action: Drop})
	s.Faults.Inject(Fault{Name: "a", MessageType: "ev", Nth: 3, Action: Duplicate})
	never := s.Faults.Inject(Fault{Name: "b", Times: -1, Action: Drop})
	s.Faults.Inject(Fault{MessageType: "other.ev", Times: -1, Action: Drop})
	for i := 1; i <= 4; i++ {
		post(t, r, ev{id: i, do: []eff{{id: i}}})
	}
	barrier(t, r)
	want(t, "stepped", rec.ids(), []int{1, 3, 3, 4, -1})
	want(t, "effects", rec.effects, []int{1, 3, 3, 4})
	never()
	never()
	if !s.Faults.on.Load() {
		t.Error("one fault is still set")
	}
}

func TestFaultDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		r := spawn(t, s, scriptSpec("a", rec))
		remove := s.Faults.Inject(Fault{Times: -1, Action: Delay, Delay: time.Second})
		begin := time.Now()
		post(t, r, ev{id: 1}, ev{id: 2})
		barrier(t, r)
		if d := time.Since(begin); d != 3*time.Second {
			t.Errorf("three messages took %s", d)
		}
		want(t, "time seen by Step", rec.times[:1], []int64{begin.Add(time.Second).UnixNano()})
		remove()
		begin = time.Now()
		barrier(t, r)
		if d := time.Since(begin); d != 0 {
			t.Errorf("delayed by %s after the fault was removed", d)
		}
		stopTree(t, s)
	})
}

func TestTypeNamesOfFaults(t *testing.T) {
	for _, tc := range []struct {
		want, have string
		same       bool
	}{
		{"", "sched.Want", true}, {"Want", "sched.Want", true}, {"sched.Want", "sched.Want", true},
		{"Put", "*wire.Put", true}, {"wire.Put", "*wire.Put", true}, {"*wire.Put", "*wire.Put", true},
		{"Want", "sched.Wants", false}, {"*wire.Put", "wire.Put", false}, {"ant", "sched.Want", false},
	} {
		if got := sameType(tc.want, tc.have); got != tc.same {
			t.Errorf("sameType(%q, %q) = %v", tc.want, tc.have, got)
		}
	}
}

// A source decides if no fault of the set does, and only while it is followed.
func TestFaultsOfASource(t *testing.T) {
	var f Faults
	asked := 0
	f.Follow(func(kind, name, message string) (Fault, bool) {
		asked++
		return Fault{Action: Drop}, kind == "k" && name == "k/1" && message == "int"
	})
	f.Inject(Fault{Kind: "k", Action: Delay})
	if got, hit := f.hit("k", "k/1", "int"); !hit || got.Action != Delay || asked != 0 {
		t.Errorf("the set comes first: %+v, %v, asked %d times", got, hit, asked)
	}
	if got, hit := f.hit("k", "k/1", "int"); !hit || got.Action != Drop {
		t.Errorf("the source's: %+v, %v", got, hit)
	}
	if _, hit := f.hit("k", "k/2", "int"); hit || !f.on.Load() {
		t.Errorf("hit %v, on %v", hit, f.on.Load())
	}
	if f.Follow(nil); f.on.Load() {
		t.Error("it is asked still")
	}
}
