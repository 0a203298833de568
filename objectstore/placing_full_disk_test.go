package objectstore

import (
	"errors"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// diskless is a store of 16 MiB whose disk is full, with two objects of 6 MiB; task 5 runs and holds the first.
func diskless(t *testing.T) *world {
	t.Helper()
	cfg := testConfig(16 * mib)
	cfg.FallbackBytes = 0
	w := newWorld(t, cfg)
	w.join(1, 11)
	w.failing = true
	w.put(1, put(1), 6*mib)
	w.put(1, put(2), 6*mib)
	w.step(PinArgs{Job: 1, Task: task(5), Worker: 11, IDs: []ids.ObjectID{put(1)}})
	return w
}

func TestACreateOnAFullDiskWaitsForTasksThatRun(t *testing.T) {
	w := diskless(t)
	r := w.create(11, put(3), 0, 6*mib, task(7))
	w.relist(int64(8 * time.Second))
	if m := w.created[r]; m != nil {
		t.Fatalf("while a task runs that holds an object: %+v", m)
	}
	if len(w.yields) != 1 || w.yields[0] != task(7) {
		t.Errorf("CPUs were asked of %v", w.yields)
	}
	if len(w.asked) == 0 || w.asked[0] != put(1).Job() {
		t.Errorf("the owners %v were asked to let go", w.asked)
	}
	w.step(UnpinArgs{Task: task(5)})
	w.relist(int64(time.Second))
	w.step(Free{[]ids.ObjectID{put(1)}})
	w.relist(int64(time.Second))
	if m := w.created[r]; m == nil || m.Err != nil {
		t.Fatalf("when the object has gone: %+v", m)
	}
}

func TestACreateOnAFullDiskEndsWhenNothingIsLetGo(t *testing.T) {
	w := diskless(t)
	w.step(UnpinArgs{Task: task(5)})
	a := w.create(11, put(3), 0, 8*mib, task(7))
	b := w.create(11, put(4), 0, 8*mib, task(8))
	w.relist(int64(2 * time.Second))
	if w.created[a] != nil || w.created[b] != nil {
		t.Fatalf("before the patience is over: %+v, %+v", w.created[a], w.created[b])
	}
	w.relist(int64(2 * time.Second))
	for _, r := range []uint64{a, b} {
		if m := w.created[r]; m == nil || !errors.Is(m.Err, errs.ErrOutOfDisk) {
			t.Fatalf("when nothing was let go: %+v", m)
		}
	}
}

// What a running task makes goes before what others make, though they came first: its end frees what it holds.
func TestOnAFullDiskTasksThatHoldObjectsGoFirst(t *testing.T) {
	w := diskless(t)
	other := w.create(11, put(3), 0, 6*mib, task(7))
	own := w.create(11, put(4), 0, 2*mib, task(5))
	w.relist(int64(100 * time.Millisecond))
	if m := w.created[own]; m == nil || m.Err != nil || w.created[other] != nil {
		t.Fatalf("the holder's create: %+v, the other: %+v", m, w.created[other])
	}
}

// An argument that lies on the full disk is read into a file that may use its last part.
func TestOnAFullDiskArgumentsAreReadIntoFiles(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1, 11)
	w.put(1, put(1), 6*mib)
	w.put(1, put(2), 6*mib)
	m := w.put2(1, put(3), 6*mib) // spills the first
	w.write(1, 0, m)
	w.seal(1, 0, m, 6*mib)
	w.put(1, put(4), 4*mib)
	w.noSpill = true
	w.create(1, put(5), 0, 6*mib, task(7))
	w.relist(int64(time.Second))
	w.step(PinArgs{Job: 1, Task: task(5), Worker: 11, IDs: []ids.ObjectID{put(1)}})
	w.relist(int64(2 * time.Second))
	if got := w.argsOK[NoteKey{Task: task(5)}]; len(got.Values) != 1 {
		t.Fatalf("the argument is not there: %+v, refused %+v", got, w.refused)
	}
}
