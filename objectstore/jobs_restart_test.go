package objectstore

import (
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

// What is left of an object whose attempt was dropped outlives a restart for as long as somebody reads it, and no longer: neither a client's view nor a
// running task's argument is used again, and the end of either gives the room back, though all processes of the job live on.
func TestWhatADroppedAttemptLeavesGoesAfterARestart(t *testing.T) {
	for _, c := range []struct {
		name       string
		reader     ids.ClientID // 1, of the object's job, or 2, which reads in a copy
		view, told bool         // before the restart, and after it
		task       bool
		madeAgain  bool // the object, before the restart
	}{
		{name: "a view", reader: 1, view: true, told: true},
		{name: "a view in a copy", reader: 2, view: true, told: true},
		{name: "a view that is closed meanwhile", reader: 1, view: true},
		{name: "an argument", reader: 1, task: true},
		{name: "an argument in a copy", reader: 2, task: true},
		{name: "a view, and the object is made again", reader: 1, view: true, told: true, madeAgain: true},
		{name: "an argument, and the object is made again", reader: 1, task: true, madeAgain: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, testConfig(16*mib))
			w.joinJob(1, 1)
			w.joinJob(2, 2)
			id, reader := jobObject(1, 1), ids.RootTask(ids.JobID(c.reader), 7)
			w.put(1, id, mib)
			if c.view {
				w.step(PinForGet{Client: c.reader, ID: id})
			}
			if c.task {
				w.step(PinArgs{Job: ids.JobID(c.reader), Task: reader, Attempt: 1, Worker: c.reader, IDs: []ids.ObjectID{id}})
			}
			w.relist(0)
			w.step(DropAttempt{ID: id, Attempt: 0})
			w.relist(0)
			if c.madeAgain {
				w.seal(1, 1, w.again(1, id, 1, mib), mib)
			}
			w.crash(true)
			for client := range ids.ClientID(2) {
				h := &wire.Holdings{Component: wire.ComponentStore, Epoch: w.epoch}
				if client+1 == c.reader && c.told {
					h.Pins = []wire.Unpin{{ID: id, N: 1}}
				}
				w.step(FromClient{client + 1, h})
			}
			w.relist(0)
			want := uint64(0)
			if c.told || c.task {
				want += mib
			}
			if c.madeAgain {
				want += mib
			}
			if got := w.c.alloc.Used(); got != want {
				t.Errorf("all have said what they hold: %d bytes are kept, want %d", got, want)
			}
			if c.told {
				w.unpin(c.reader, id, 1)
			}
			w.step(UnpinArgs{reader, 1})
			w.step(Free{[]ids.ObjectID{id}})
			w.relist(0)
			if n := w.c.alloc.Used(); n != 0 || len(w.c.allCopies)+len(w.c.orphans)+len(w.c.pinned) != 0 {
				t.Errorf("%d bytes are left, %d copies, %d orphans, %d pinned", n, len(w.c.allCopies), len(w.c.orphans), len(w.c.pinned))
			}
		})
	}
}
