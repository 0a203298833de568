package objectstore

import (
	"testing"
	"time"

	"mobula/internal/ids"
)

// A client has sealed what it wrote and is gone, and the store hears of its end before it hears from the owner that it is sealed.
func TestWhatAClientSealedOutlivesIt(t *testing.T) {
	for _, crash := range []bool{false, true} {
		w := newWorld(t, testConfig(16*mib))
		w.join(1, 2)
		m := w.again(1, put(1), 3, mib)
		w.again(1, put(2), 3, mib) // and is not sealed
		for i := range 2 {
			delete(w.owned, owner{id: put(1 + i), attempt: 3, client: 1})
		}
		w.step(ClientGone{1})
		if crash { // the owners are asked once more
			w.jobs = nil
			w.crash(true)
		}
		if n := len(w.jobs); n != 2 {
			t.Fatalf("owners were asked of %d extents", n)
		}
		w.jobs = w.jobs[1:] // of the first it says that it is sealed
		w.seal(1, 3, m, mib)
		w.relist(int64(time.Second))
		w.step(Drained{Epoch: w.epoch})
		w.reads(2, put(1))
		if s := w.c.Stats(); s.Grants != 0 || s.Objects != 1 {
			t.Errorf("there is %+v", s)
		}
	}
}

// What a gone client was writing goes with its job, and with the next attempt of the same number.
func TestWhatAGoneClientWasWritingGoes(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1, 2)
	w.again(1, put(1), 3, mib)
	delete(w.owned, owner{id: put(1), attempt: 3, client: 1})
	w.step(ClientGone{1})
	w.jobs = nil // the owner says nothing
	w.again(2, put(1), 3, 2*mib)
	w.step(ClientGone{2})
	w.jobs = nil
	if s := w.c.Stats(); s.Grants != 1 {
		t.Errorf("there is %+v", s)
	}
	delete(w.owned, owner{id: put(1), attempt: 3, client: 2})
	w.step(DropJob{ids.JobID(1)})
	if s := w.c.Stats(); s.Grants != 0 || s.Held != 0 {
		t.Errorf("after the job's end there is %+v", s)
	}
}
