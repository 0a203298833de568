package objectstore

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// spilledPuts are so many objects of 10 MiB in a store of 16 MiB with files of 16 MiB beside it.
func spilledPuts(t *testing.T, n int) (w *world, ids []ids.ObjectID) {
	t.Helper()
	w = newWorld(t, testConfig(16*mib))
	w.join(1)
	for i := range n {
		m := w.put2(1, put(i), 10*mib)
		w.write(1, 0, m)
		w.seal(1, 0, m, 10*mib)
		ids = append(ids, put(i))
	}
	return w, ids
}

// readable checks that every object still is: nothing was lost.
func (w *world) readable(objs []ids.ObjectID) {
	w.t.Helper()
	if len(w.lost) > 0 {
		w.t.Fatalf("lost %+v", w.lost)
	}
	for _, id := range objs {
		before := len(w.resolved)
		w.step(PinForGet{Client: 1, ID: id})
		w.relist(int64(2 * time.Second))
		if len(w.resolved) != before+1 || w.resolved[before].Result.Err != nil {
			w.t.Fatalf("object %v: %+v", id, w.resolved[before:])
		}
		w.unpin(1, id, 1)
	}
}

func TestArgumentsThatCanNeverBeInMemoryAreRefused(t *testing.T) {
	w, args := spilledPuts(t, 4)
	w.step(PinArgs{Job: 1, Task: task(5), Worker: 1, IDs: args})
	if len(w.refused) != 1 || w.refused[0].Task != task(5) || !errors.Is(w.refused[0].Err, errs.ErrStoreFull) {
		t.Fatalf("refused %+v, pinned %+v, lost %+v", w.refused, w.argsOK, w.lost)
	}
	for _, word := range []string{"4 objects of 41943040 bytes", "may hold 33554432", "limit is 16777216", "disk budget 16777216"} {
		if !strings.Contains(w.refused[0].Err.Msg, word) {
			t.Errorf("%q does not say %q", w.refused[0].Err.Msg, word)
		}
	}
	w.readable(args)
	w.step(PinArgs{Job: 1, Task: task(6), Worker: 1, IDs: args[:3]}) // one in memory, and two files that are more than the disk budget
	w.relist(int64(5 * time.Second))
	if got := w.argsOK[NoteKey{Task: task(6)}]; len(got.Values) != 3 {
		t.Errorf("three of them: %+v, refused %+v", got, w.refused)
	}
}

// What programs keep refuses no task, though it be all that the store and the disk budget have: it is served beyond them, and lets go when it ends. What
// programs would keep besides is refused.
func TestTasksAreServedBesideWhatProgramsKeep(t *testing.T) {
	w, args := spilledPuts(t, 5)
	for _, id := range args[2:] {
		w.step(PinForGet{Client: 1, ID: id})
		w.relist(int64(2 * time.Second))
	}
	w.step(PinArgs{Job: 1, Task: task(5), Worker: 1, IDs: args[:2]})
	for range 2 { // one file for each time in which nothing moves
		w.relist(int64(5 * time.Second))
	}
	if got := w.argsOK[NoteKey{Task: task(5)}]; len(got.Values) != 2 {
		t.Fatalf("refused %+v, pinned %+v, lost %+v", w.refused, w.argsOK, w.lost)
	}
	r := w.create(1, task(5).Return(0), 0, 10*mib, task(5))
	w.relist(int64(5 * time.Second))
	m := w.created[r]
	if m == nil || m.Err != nil {
		t.Fatalf("the task's result: %+v", m)
	}
	w.write(1, 0, m)
	w.seal(1, 0, m, 10*mib)
	w.step(UnpinArgs{Task: task(5)})
	w.relist(int64(5 * time.Second))
	if s := w.c.Stats(); s.FallbackBytes > 2*10*mib { // of three views one is in memory
		t.Errorf("%d bytes are in files, and views of three objects of 10 MiB are all that is pinned", s.FallbackBytes)
	}

	asked := len(w.resolved)
	w.step(PinForGet{Client: 1, ID: args[0]})
	r = w.create(1, put(9), 0, 10*mib, ids.TaskID{})
	w.relist(int64(10 * time.Second))
	if m := w.resolved[asked:]; len(m) != 1 || !errors.Is(m[0].Result.Err, errs.ErrStoreFull) {
		t.Errorf("one view more: %+v", m)
	}
	if m := w.created[r]; m == nil || !errors.Is(m.Err, errs.ErrStoreFull) {
		t.Errorf("one put more: %+v", m)
	}
	for _, id := range args[2:] {
		w.unpin(1, id, 1)
	}
	w.readable(append(args, task(5).Return(0)))
}

// A disk that is full is not the end of an object that lies there.
func TestArgumentsWithoutDiskAreRefusedAndKept(t *testing.T) {
	w, args := spilledPuts(t, 2)
	w.failing = true
	w.step(PinArgs{Job: 1, Task: task(5), Worker: 1, IDs: args})
	w.relist(int64(10 * time.Second))
	if len(w.refused) != 1 || !errors.Is(w.refused[0].Err, errs.ErrOutOfDisk) {
		t.Fatalf("refused %+v, pinned %+v, lost %+v", w.refused, w.argsOK, w.lost)
	}
	w.failing = false
	w.readable(args)
}

func TestADiskBudgetWithoutBoundRefusesNoArguments(t *testing.T) {
	cfg := testConfig(16 * mib)
	cfg.FallbackBytes = math.MaxUint64
	w := newWorld(t, cfg)
	w.join(1, 11)
	w.put(1, put(1), 14*mib)
	m := w.put2(1, put(2), 4*mib)
	w.write(1, 0, m)
	w.seal(1, 0, m, 4*mib)
	w.step(PinArgs{Job: 1, Task: task(1), Worker: 11, IDs: []ids.ObjectID{put(1), put(2)}})
	w.relist(int64(time.Minute))
	if len(w.argsOK) != 1 || len(w.refused) != 0 {
		t.Fatalf("arguments: %+v, refused %+v", w.argsOK, w.refused)
	}
}
