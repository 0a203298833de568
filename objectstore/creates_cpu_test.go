package objectstore

import (
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// newLender is a store whose disk is full and in which task 7 has lent its CPU, since its create waits. No task gets a CPU again by itself.
func newLender(t *testing.T) (w *world, req uint64) {
	t.Helper()
	w = diskless(t)
	w.busyCPUs = true
	req = w.create(11, put(3), 0, 6*mib, task(7))
	w.relist(int64(8 * time.Second))
	if len(w.yields) != 1 || w.yields[0] != task(7) || w.created[req] != nil {
		t.Fatalf("CPUs were asked of %v, the answer is %+v", w.yields, w.created[req])
	}
	return w, req
}

// makeRoom lets go of what fills the store.
func (w *world) makeRoom() {
	w.t.Helper()
	w.step(UnpinArgs{Task: task(5)})
	w.step(Free{[]ids.ObjectID{put(1)}})
	w.relist(int64(time.Second))
}

// A task that has lent its CPU hears of its room when it has a CPU again, and not before.
func TestACreateIsAnsweredWhenItsTaskHasACPUAgain(t *testing.T) {
	w, r := newLender(t)
	w.makeRoom()
	if len(w.ready) != 1 || w.created[r] != nil {
		t.Fatalf("with room, and without a CPU: %+v is ready, the answer is %+v", w.ready, w.created[r])
	}
	w.step(GoOn(w.ready[0]))
	if m := w.created[r]; m == nil || m.Err != nil {
		t.Fatalf("with both: %+v", m)
	}
	if len(w.c.lenders) != 0 || w.notes.Len() != 0 {
		t.Errorf("left: %v, %v", w.c.lenders, w.notes.List())
	}
}

// The same of a create that fails, and of one that is withdrawn.
func TestAFailedCreateIsAnsweredWhenItsTaskHasACPUAgain(t *testing.T) {
	w, r := newLender(t)
	w.step(FromClient{Client: 11, Msg: &wire.Abort{ID: put(3)}})
	if len(w.ready) != 1 || w.created[r] != nil {
		t.Fatalf("%+v is ready, the answer is %+v", w.ready, w.created[r])
	}
	w.step(GoOn(w.ready[0]))
	if m := w.created[r]; m == nil || m.Err == nil {
		t.Errorf("the answer is %+v", m)
	}
}

// Core by core it is the same: an owner that was rebuilt is told again, and a store that was rebuilt knows who has lent its CPU.
func TestALenderIsKnownAfterARestart(t *testing.T) {
	w, r := newLender(t)
	w.makeRoom()
	w.step(ListObjects{Job: task(7).Job()})
	if len(w.ready) != 2 {
		t.Fatalf("to an owner that was rebuilt the store says %+v", w.ready)
	}
	w.crash(true)
	w.step(FromClient{Client: 11, Msg: &wire.Create{Req: r, ID: put(3), Size: 6 * mib, Task: task(7)}}) // its client asks again
	if len(w.ready) != 3 || w.created[r] != nil {
		t.Fatalf("a store that was rebuilt says %+v, and answers %+v", w.ready, w.created[r])
	}
	w.step(GoOn(w.ready[2]))
	if m := w.created[r]; m == nil || m.Err != nil {
		t.Errorf("the answer is %+v", m)
	}
}

// Nothing is kept of a client that is gone.
func TestALenderGoesWithItsClient(t *testing.T) {
	w, _ := newLender(t)
	notes := w.notes.Len()
	w.step(ClientGone{Client: 11})
	if len(w.c.lenders) != 0 || w.notes.Len() >= notes {
		t.Errorf("lenders %v, %d notes of %d", w.c.lenders, w.notes.Len(), notes)
	}
}
