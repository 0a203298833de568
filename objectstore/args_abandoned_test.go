package objectstore

import (
	"testing"

	"mobula/internal/ids"
)

// The arguments of an attempt that was given up stay where its worker reads them, after a restart of the store too. They keep no others waiting:
// nobody knows when it returns.
func TestArgumentsOfAnAbandonedAttemptStay(t *testing.T) {
	w := newWorldOfTwoArgs(t)
	w.step(PinArgs{Job: 1, Task: task(1), Attempt: 1, Worker: 11, IDs: []ids.ObjectID{put(1)}})
	w.step(PinArgs{Job: 1, Task: task(2), Attempt: 1, Worker: 12, IDs: []ids.ObjectID{put(2)}})
	if _, ok := w.argsOK[NoteKey{Task: task(2), Attempt: 1}]; ok {
		t.Fatal("80 % of the limit are arguments of tasks that run")
	}
	w.step(AbandonArgs{Task: task(1), Attempt: 1})
	if _, ok := w.argsOK[NoteKey{Task: task(2), Attempt: 1}]; !ok {
		t.Fatalf("the next task waits for one that was given up: %+v", w.c.Stats())
	}
	for range 2 {
		w.step(ArgsIdle{Task: task(1), Idle: true}) // its next attempt blocks, and goes on
		w.step(ArgsIdle{Task: task(1)})
		if s := w.c.findSet(task(1), 1); s == nil || !s.left || w.c.activeSets != 1 {
			t.Fatalf("the abandoned attempt has %+v, and %d sets count", s, w.c.activeSets)
		}
		w.crash(true)
		w.step(Drained{Epoch: w.epoch})
	}
	w.step(Free{IDs: []ids.ObjectID{put(1)}})
	if n := w.c.Stats().Pinned; n == 0 {
		t.Error("nothing is pinned")
	}
	w.step(UnpinArgs{Task: task(1), Attempt: 1})
	w.step(UnpinArgs{Task: task(2), Attempt: 1})
	if w.notes.Len() != 0 || w.c.activeSets != 0 {
		t.Errorf("left over: %v, %d sets", w.notes.List(), w.c.activeSets)
	}
}

// What was asked for and not answered no worker reads: it waits no longer.
func TestAnAbandonedAttemptThatWaitedWaitsNoLonger(t *testing.T) {
	w := newWorldOfTwoArgs(t)
	w.step(PinArgs{Job: 1, Task: task(1), Attempt: 1, Worker: 11, IDs: []ids.ObjectID{put(1)}})
	w.step(PinArgs{Job: 1, Task: task(2), Attempt: 1, Worker: 12, IDs: []ids.ObjectID{put(2)}})
	w.step(AbandonArgs{Task: task(2), Attempt: 1})
	w.step(AbandonArgs{Task: task(3), Attempt: 1}) // unknown
	if w.c.findSet(task(2), 1) != nil || w.c.argWait.Len() != 0 {
		t.Error("it waits for memory that nobody will use")
	}
}
