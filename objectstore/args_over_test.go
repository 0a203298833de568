package objectstore

import (
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

// A worker may still read the arguments of a task whose job is over: their memory goes to nobody else before it says that it is done, or its process ends. One
// that belongs to the job is ended; another job's lives on, and has read in a copy.
func TestArgumentsOfAJobThatIsOverStayWithTheirReader(t *testing.T) {
	for _, c := range []struct {
		name   string
		worker ids.ClientID
		crash  bool
		end    Event
	}{
		{"of the job", 1, false, ClientGone{1}},
		{"of the job, and the store restarts", 1, true, ClientGone{1}},
		{"of another job", 2, false, UnpinArgs{ids.RootTask(1, 7), 1}},
		{"of another job, and the store restarts", 2, true, UnpinArgs{ids.RootTask(1, 7), 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, testConfig(16*mib))
			w.joinJob(1, 1)
			w.joinJob(2, 2)
			w.joinJob(3, 3)
			id := jobObject(1, 1)
			w.put(1, id, mib)
			k := NoteKey{Task: ids.RootTask(1, 7), Attempt: 1}
			w.step(PinArgs{Job: 1, Task: k.Task, Attempt: k.Attempt, Worker: c.worker, IDs: []ids.ObjectID{id}})
			w.relist(0)
			if len(w.argsOK[k].Values) != 1 {
				t.Fatalf("the argument is not there: %+v", w.argsOK)
			}
			at := w.argsOK[k].Values[0].Extent
			w.step(DropJob{1})
			if c.crash {
				w.crash(true)
				w.step(Drained{Epoch: w.epoch})
				for client := range ids.ClientID(3) {
					w.step(FromClient{client + 1, &wire.Holdings{Component: wire.ComponentStore, Epoch: w.epoch}})
				}
			}
			w.own(owner{id: id, client: c.worker, pin: true}, at)
			r := w.create(3, jobObject(3, 1), 0, 15*mib, ids.TaskID{}) // fails the test if it is given what is owned
			w.relist(0)
			if m := w.created[r]; m != nil && m.Err == nil {
				w.own(owner{id: jobObject(3, 1), client: 3}, m.Extent)
			}
			w.check(c.worker, id, at)
			if n := w.c.Stats().Pinned; n == 0 || w.c.activeSets != 0 {
				t.Errorf("%d bytes are pinned, %d sets count", n, w.c.activeSets)
			}
			delete(w.owned, owner{id: id, client: c.worker, pin: true})
			w.step(c.end)
			w.relist(0)
			w.step(ClientGone{1})
			w.relist(0)
			if len(w.c.sets) != 0 || w.c.alloc.UsedBy(1) != 0 || len(w.c.over) != 0 || w.notes.Len() != 0 || w.c.Stats().Pinned != 0 {
				t.Errorf("left over: %d sets, %d bytes of the job, %v, notes %v", len(w.c.sets), w.c.alloc.UsedBy(1), w.c.over, w.notes.List())
			}
		})
	}
}

// What was asked for and not answered nobody reads.
func TestArgumentsThatWaitEndWithTheirJob(t *testing.T) {
	w := newWorldOfTwoArgs(t)
	w.step(PinArgs{Job: 1, Task: task(1), Attempt: 1, Worker: 11, IDs: []ids.ObjectID{put(1)}})
	w.step(PinArgs{Job: 1, Task: task(2), Attempt: 1, Worker: 12, IDs: []ids.ObjectID{put(2)}})
	w.step(DropJob{1})
	if w.c.findSet(task(1), 1) == nil || w.c.findSet(task(2), 1) != nil || w.c.argWait.Len() != 0 {
		t.Errorf("%d sets are left, %d wait", len(w.c.sets), w.c.argWait.Len())
	}
}
