package objectstore

import (
	"testing"
	"time"

	"mobula/internal/ids"
)

// newWorldOfTwoArgs has two workers and two objects, of 60 and 20 % of the limit: only one may be the argument of a running task.
func newWorldOfTwoArgs(t *testing.T) *world {
	const limit = 100 * mib
	w := newWorld(t, testConfig(limit))
	w.join(1, 11, 12)
	w.put(1, put(1), limit*60/100)
	w.put(1, put(2), limit*20/100)
	return w
}

// A task that waits in a get lets others have its share of arguments, and does so still when the store
// was rebuilt: what it waits for may be what they make.
func TestATaskThatWaitsInAGetIsKnownToAfterARestart(t *testing.T) {
	w := newWorldOfTwoArgs(t)
	w.step(PinArgs{Job: 1, Task: task(1), Worker: 11, IDs: []ids.ObjectID{put(1)}})
	w.step(ArgsIdle{Task: task(1), Idle: true})
	w.crash(true)
	w.step(Drained{Epoch: w.epoch})
	w.step(PinArgs{Job: 1, Task: task(2), Worker: 12, IDs: []ids.ObjectID{put(2)}})
	w.relist(int64(time.Minute))
	if _, ok := w.argsOK[NoteKey{Task: task(2)}]; !ok {
		t.Fatalf("the task that it waits for waits for its arguments: %+v", w.c.Stats())
	}
	w.step(ArgsIdle{Task: task(1)})
	w.crash(true)
	w.step(Drained{Epoch: w.epoch})
	if w.c.activeSets != 2 {
		t.Fatalf("%d sets count after both tasks run, want 2", w.c.activeSets)
	}
	w.step(UnpinArgs{Task: task(1)})
	w.step(UnpinArgs{Task: task(2)})
	if w.notes.Len() != 0 || len(w.c.idle) != 0 {
		t.Fatalf("left over: %v, %v", w.notes.List(), w.c.idle)
	}
}
