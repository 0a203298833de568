package objectstore

import (
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

// again has a client make an object anew, which may be there still, and gives what it was granted.
func (w *world) again(c ids.ClientID, id ids.ObjectID, attempt uint32, size uint64) *wire.Created {
	w.t.Helper()
	r := w.create(c, id, attempt, size, task(1))
	w.relist(0)
	m := w.created[r]
	if m == nil || m.Err != nil {
		w.t.Fatalf("the create is answered by %+v", m)
	}
	w.write(c, attempt, m)
	return m
}

// get has a client pin an object.
func (w *world) reads(c ids.ClientID, id ids.ObjectID) {
	w.t.Helper()
	n := len(w.resolved)
	w.step(PinForGet{Client: c, ID: id})
	w.relist(0)
	if len(w.resolved) != n+1 || w.resolved[n].Result.Err != nil {
		w.t.Fatalf("client %v got %+v, lost %+v", c, w.resolved[n:], w.lost)
	}
}

// A task that runs again makes objects that are there still: its owner may be letting go of them, and frees them before or after the create is answered.
func TestWhatIsMadeAgainIsThereWhenItIsSealed(t *testing.T) {
	for _, test := range []struct {
		name          string
		pinned, early bool
		attempt       uint32
	}{
		{"freed before the create", false, true, 2}, {"freed before it, and pinned", true, true, 2}, {"freed before it, and pinned, by the same attempt", true, true, 0},
		{"freed after the create", false, false, 2}, {"freed after it, and pinned", true, false, 2}, {"freed after it, and pinned, by the same attempt", true, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, testConfig(16*mib))
			w.join(1, 2, 3)
			w.put(1, put(1), mib)
			if test.pinned {
				w.reads(2, put(1))
			}
			free := func() { w.step(Free{[]ids.ObjectID{put(1)}}) }
			if test.early {
				free()
			}
			m := w.again(1, put(1), test.attempt, 2*mib)
			if !test.early {
				free()
			}
			delete(w.sealed, put(1)) // it is another
			w.seal(1, test.attempt, m, 2*mib)
			w.reads(3, put(1))
			if i := w.c.Info(put(1)); i.Size != 2*mib || i.Attempt != test.attempt {
				t.Errorf("it is %+v", i)
			}
			w.unpin(3, put(1), 1)
			if test.pinned {
				w.unpin(2, put(1), 1)
			}
			free()
			if s := w.c.Stats(); s.Objects != 0 || s.Held != 0 {
				t.Errorf("left is %+v", s)
			}
		})
	}
}

// What was made again is told from what had its id before, across a restart too; and that stays where it is while somebody may read it.
func TestWhatWasMadeAgainOutlivesARestart(t *testing.T) {
	for _, connected := range []bool{true, false} {
		w := newWorld(t, testConfig(16*mib))
		w.join(1, 2, 3)
		w.put(1, put(1), mib)
		w.reads(2, put(1))
		w.step(Free{[]ids.ObjectID{put(1)}})
		m := w.again(1, put(1), 2, 2*mib)
		delete(w.sealed, put(1))
		w.seal(1, 2, m, 2*mib)
		w.crash(connected)
		w.step(Drained{Epoch: w.epoch})
		if !connected {
			w.join(1, 2, 3)
		}
		for c := range ids.ClientID(3) {
			h := &wire.Holdings{Component: wire.ComponentStore, Epoch: w.epoch}
			if c+1 == 2 {
				h.Pins = []wire.Unpin{{ID: put(1), N: 1}}
			}
			w.step(FromClient{c + 1, h})
		}
		w.reads(3, put(1))
		if i := w.c.Info(put(1)); i.Size != 2*mib || i.Attempt != 2 {
			t.Errorf("after the restart it is %+v", i)
		}
		for i := range 5 { // nothing takes the memory that the second client reads
			w.put(1, put(10+i), 2*mib)
		}
	}
}

// An owner that lost its word that an object is free has it made again: the store takes its word for what the object is.
func TestTheOwnerSaysWhichAttemptCounts(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1, 2)
	w.put(1, put(1), mib)
	m := w.again(1, put(1), 5, mib)
	delete(w.sealed, put(1))
	w.seal(1, 5, m, mib)
	if i := w.c.Info(put(1)); i.Attempt != 5 {
		t.Errorf("it is %+v", i)
	}
	w.reads(2, put(1))
	n := w.again(1, put(1), 6, mib)
	delete(w.owned, owner{id: put(1), attempt: 6, client: 1})
	w.step(DropAttempt{ID: put(1), Attempt: 6}) // a loser's
	if i := w.c.Info(put(1)); i.Attempt != 5 {
		t.Errorf("after a loser, it is %+v, %+v", i, n)
	}
}

// The node that an object is read from is gone, the object is freed and made again, all before that read has ended.
func TestAnObjectIsMadeAgainWhileItsReadEnds(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.joinJob(1, 1)
	id := jobObject(1, 1)
	task := ids.RootTask(1, 7)
	var read uint64
	w.show = func(f Effect) {
		if e, ok := f.(Import); ok {
			read = e.Job
		}
	}
	w.step(Located{ID: id, Attempt: 1, Size: mib, Meta: []byte{1, 7}, On: []ids.Home{2}})
	w.step(PinArgs{Job: 1, Task: task, Attempt: 1, Worker: 1, IDs: []ids.ObjectID{id}})
	for read == 0 {
		if !w.run(nil) {
			t.Fatalf("it is not read: %+v", w.c.Stats())
		}
	}
	w.jobs = nil // the read lasts
	w.step(UnpinArgs{Task: task, Attempt: 1})
	w.step(NodeGone{2})
	w.step(Free{[]ids.ObjectID{id}})
	r := w.create(1, id, 2, mib, ids.TaskID{})
	w.relist(0)
	w.write(1, 2, w.created[r])
	w.seal(1, 2, w.created[r], mib)
	w.step(RestoreDone{Job: read, Err: errCancelled})
	if o := w.c.objs[id].o; o == nil || o.attempt != 2 || !o.resident || len(w.c.orphans) != 0 {
		t.Errorf("the store has %+v, and %d orphans", o, len(w.c.orphans))
	}
}
