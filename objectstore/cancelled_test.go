package objectstore

import (
	"testing"

	"mobula/internal/ids"
)

// A read may go on after its object's attempt was dropped. A core that takes over meanwhile must not hand out the block that it fills.
func TestABlockThatACancelledReadFillsIsNotHandedOutByTheNextCore(t *testing.T) {
	w := spilledBeside(t)
	w.step(PinForGet{Client: 1, ID: put(1)})
	for len(w.jobs) > 0 && w.c.restores.underWay == 0 {
		w.run(nil)
	}
	if w.c.restores.underWay != 1 {
		t.Fatalf("nothing is being read: %+v", w.c.Stats())
	}
	w.step(DropAttempt{ID: put(1)})
	w.crash(true)
	reads := w.jobs
	w.jobs = nil
	for i := range 3 {
		r := w.create(1, put(10+i), 0, 4*mib, ids.TaskID{})
		w.relist(0)
		if m := w.created[r]; m != nil && m.Err == nil {
			w.write(1, 0, m)
		}
	}
	for _, j := range reads {
		j.run() // checks that nobody was given what it writes to
	}
	w.step(Drained{Epoch: w.epoch})
	w.relist(0)
	if len(w.disk) != 0 || len(w.c.all()) != 0 {
		t.Fatalf("left over: %d spilled, %d objects", len(w.disk), len(w.c.all()))
	}
}
