package run

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
	"mobula/wire"
)

const mib = 1 << 20

func TestTasksThatTakeMuchRunAsMemoryAllows(t *testing.T) {
	a := newAdmission(1600 * mib)
	a.observe(300 * mib)
	fly := func(id int32, kind string, args int64) bool {
		s := a.share(kind, args)
		if !a.fits(s) {
			return false
		}
		a.add(id, s)
		return true
	}
	if !fly(1, "sort", 200*mib) {
		t.Fatal("with nothing else running one fits")
	}
	if fly(2, "sort", 200*mib) {
		t.Fatal("two of 800 MiB each fit beside 300 in 1500")
	}
	if !fly(3, "small", 1*mib) {
		t.Fatal("what takes next to nothing does not fit")
	}
	a.remove(3)
	a.observe(500 * mib) // it grows by as much as its arguments have
	a.observe(450 * mib)
	a.remove(1)
	a.observe(300 * mib)
	if !fly(1, "sort", 200*mib) || !fly(2, "sort", 200*mib) {
		t.Fatal("two of 425 MiB do not fit beside 300 in 1500")
	}
	if fly(3, "sort", 200*mib) {
		t.Fatal("three fit")
	}
	a.remove(1)
	a.observe(1200 * mib) // something else has grown
	if fly(1, "sort", 200*mib) {
		t.Fatal("another fits beside what heaps take now")
	}
	a.remove(2)
	if !fly(1, "sort", 2000*mib) {
		t.Fatal("alone, what is larger than all memory does not run")
	}
	if a.remove(1); len(a.flying) != 0 || a.sum != (share{}) {
		t.Fatalf("nothing flies, and %+v is counted", a.sum)
	}
}

func TestWhatIsMixedTeachesNothing(t *testing.T) {
	a := newAdmission(1 << 40)
	a.observe(0)
	for id, kind := range []string{"a", "b"} {
		a.add(int32(id), a.share(kind, 1<<36))
	}
	a.observe(1 << 37)
	a.remove(0)
	a.remove(1)
	if len(a.growth) != 0 {
		t.Errorf("learned %v", a.growth)
	}
}

// Tasks with large arguments are with the owner one at a time where there is memory for one, and another all the same when nothing has
// ended for long.
func TestTheLineWaitsForMemory(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		deps := [][]int32{{}, {}, {0}, {1}, {0, 1}, {0, 1}}
		x := newWorld(t, work(t, request(deps, 2, 3, 4, 5)), 1000*mib)
		x.size = 200 * mib
		for range 2 {
			x.resolve(0)
		}
		if n := len(x.waiting); n != 1 {
			t.Fatalf("%v are with the owner, want one", x.waiting)
		}
		x.step(Heaps{900 * mib})
		x.resolve(0)
		if n := len(x.waiting); n != 1 {
			t.Fatalf("%v are with the owner after one has ended, want one", x.waiting)
		}
		x.now += int64(patience) + 1
		x.step(Heaps{900 * mib})
		if n := len(x.waiting); n != 2 {
			t.Fatalf("%v are with the owner when nothing has ended for long, want one more", x.waiting)
		}
		x.now += int64(patience) + 1
		x.step(Heaps{900 * mib})
		if n := len(x.waiting); n != 3 {
			t.Fatalf("%v are with the owner when nothing has ended for longer, want another one", x.waiting)
		}
		for len(x.waiting) > 0 {
			x.step(Resolved{[]Result{{Task: x.waiting[0], Result: &wire.Result{Kind: wire.ResultInline}}}})
			x.waiting = slices.Delete(x.waiting, 0, 1)
		}
		if !x.done {
			t.Fatal("it does not end")
		}
	})
}
