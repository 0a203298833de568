package actors

import (
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// With Spec.Thread every Step, Do, New and Stop runs on one OS thread, that nobody else uses.
func TestThread(t *testing.T) {
	s := NewSystem(Config{})
	rec := newRecording()
	spec := scriptSpec("a", rec)
	spec.Thread = true
	var tids []int
	see := func() { tids = append(tids, unix.Gettid()) }
	inner := spec.New
	spec.New = func(st Start) (Core[ev, eff], []ev, error) { see(); return inner(st) }
	spec.Stop = see
	r := spawn(t, s, spec)
	for i := range 20 {
		post(t, r, ev{id: i, crash: i % 2, step: func(*recording) { see() }, do: []eff{{run: func(*Ref[ev]) { see() }}}})
		barrier(t, r)
	}
	stopTree(t, s)
	if len(tids) < 60 {
		t.Fatalf("only %d calls seen", len(tids))
	}
	for _, id := range tids {
		if id != tids[0] || id == unix.Gettid() {
			t.Fatalf("threads %v, the test's own is %d", tids, unix.Gettid())
		}
	}
	goleak.VerifyNone(t)
}

// A name that is taken costs no thread.
func TestThreadOfARefusedSpawnEnds(t *testing.T) {
	s := NewSystem(Config{})
	spec := scriptSpec("a", newRecording())
	spec.Thread = true
	spawn(t, s, spec)
	if _, err := Spawn(s, spec); err == nil {
		t.Fatal("the name was taken")
	}
	stopTree(t, s)
	goleak.VerifyNone(t)
}
