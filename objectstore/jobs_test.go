package objectstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// What jobs with files of their own could do to one another.

// A client has its copy of another job's object pinned while the object is lost: its Unpin ends the copy, be it of an object or of a packed
// value, and does not meet what takes the id later.
func TestACopyOutlivesItsLostObject(t *testing.T) {
	for _, packed := range []bool{false, true} {
		t.Run(fmt.Sprintf("packed=%v", packed), func(t *testing.T) {
			w := newWorld(t, testConfig(16*mib))
			w.joinJob(1, 1)
			w.joinJob(2, 2)
			all := []ids.ObjectID{jobObject(1, 1)}
			if packed {
				all = append(all, jobObject(1, 2))
				p := Pack{Job: 1}
				for i, id := range all {
					w.tag++
					data := make([]byte, 1000)
					data[0] = byte(w.tag)
					w.sealed[id] = w.tag
					p.Values = append(p.Values, PackValue{ID: id, Value: wire.Value{Data: data, Meta: []byte{byte(i)}}})
				}
				w.step(p)
			} else {
				w.put(1, all[0], mib)
			}
			w.relist(0)
			for _, id := range all {
				w.step(PinForGet{Client: 2, ID: id})
			}
			w.relist(0)
			o := w.c.objs[all[0]].o
			w.put(1, jobObject(1, 8), 13*mib) // the object is spilled for these
			w.put2(1, jobObject(1, 9), 2*mib+900<<10)
			w.relist(0)
			if o.resident || len(w.resolved) != len(all) || w.c.alloc.UsedBy(2) == 0 {
				t.Fatalf("it is in memory still, or was not read: %+v", w.c.Stats())
			}
			w.broken = fmt.Errorf("a bad disk: %w", spill.ErrCorrupt)
			w.step(Free{[]ids.ObjectID{jobObject(1, 8), jobObject(1, 9)}})
			w.step(PinForGet{Client: 1, ID: all[0]})
			w.relist(0)
			if len(w.lost) == 0 {
				t.Fatal("nobody was told that it is lost")
			}
			for _, id := range all {
				w.unpin(2, id, 1)
			}
			w.relist(0)
			if n := w.c.alloc.UsedBy(2); n != 0 || len(w.c.allCopies)+len(w.c.orphans)+len(w.c.pinned) != 0 {
				t.Errorf("%d bytes of the copy are left, %d copies, %d orphans, %d pinned", n, len(w.c.allCopies), len(w.c.orphans), len(w.c.pinned))
			}
		})
	}
}

// A create that met memory on its way to another job, and then the node's limit, goes on when that has arrived.
func TestACreateWaitsForAReservationNoLongerThanItLasts(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.joinJob(1, 1)
	w.joinJob(2, 2)
	w.put(1, jobObject(1, 1), 3*mib)
	a := w.create(1, jobObject(1, 2), 0, 4096, ids.TaskID{}) // a step is reserved ahead
	b := w.create(2, jobObject(2, 1), 0, 300<<10, ids.TaskID{})
	w.step(SetMemoryTarget{3 * mib})
	w.relist(int64(time.Second))
	for _, req := range []uint64{a, b} {
		if m := w.created[req]; m == nil || m.Err != nil {
			t.Errorf("create %d: %+v; %s", req-a, m, w.c.figures(4096))
		}
	}
}

// Memory that one job has warm serves another where the machine has no more, also where no free part of it is long enough.
func TestWarmMemoryOfOneJobServesAnother(t *testing.T) {
	cfg := testConfig(32 * mib)
	cfg.WarmBytes = 32 * mib
	w := newWorld(t, cfg)
	w.machine = 6 * mib
	w.joinJob(1, 1)
	w.joinJob(2, 2)
	w.put(1, jobObject(1, 1), 2*mib)
	w.put(1, jobObject(1, 2), 512<<10)
	w.put(1, jobObject(1, 3), 3*mib)
	w.step(Free{[]ids.ObjectID{jobObject(1, 1), jobObject(1, 3)}})
	if w.c.alloc.Warm() < 5*mib {
		t.Fatalf("%d bytes are warm", w.c.alloc.Warm())
	}
	w.put(2, jobObject(2, 1), 4*mib)
	w.put(1, jobObject(1, 4), 100<<10) // at once, though nothing more could be reserved
	if n := w.c.counts.Fallbacks; n != 0 {
		t.Errorf("%d are served from files", n)
	}
}

// While an earlier core's write is under way, the file that it reads stays.
func TestAFileStaysWhileAnEarlierCoreUsesIt(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.joinJob(1, 1)
	w.put(1, jobObject(1, 1), 10*mib)
	w.create(1, jobObject(1, 2), 0, 10*mib, ids.TaskID{})
	for range 100 { // up to the write
		if slices.ContainsFunc(w.c.all(), func(o *object) bool { return o.spilling }) {
			break
		}
		if !w.run(nil) {
			w.now = max(w.now, w.timer)
			w.step(Tick{})
		}
	}
	w.step(FromClient{1, &wire.Abort{ID: jobObject(1, 2)}})
	w.step(DropJob{1})
	w.step(ClientGone{1})
	under := w.jobs
	w.jobs = nil
	if len(under) == 0 || len(w.c.over) != 1 {
		t.Fatalf("no write is under way: %+v", w.c.Stats())
	}
	w.crash(true)
	w.relist(0)
	if len(w.c.over) != 1 {
		t.Error("the file has gone before the write has ended")
	}
	w.step(Drained{Epoch: w.epoch})
	w.relist(0)
	if len(w.c.over) != 0 || w.c.alloc.UsedBy(1) != 0 {
		t.Errorf("the file is left: %+v", w.c.Stats())
	}
}

// Values that wait for room to be packed do not bring back the file of a job that has ended meanwhile.
func TestAWaitingPackEndsWithItsJob(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.joinJob(1, 1)
	w.joinJob(2, 2)
	full := w.create(2, jobObject(2, 1), 0, 16*mib, ids.TaskID{})
	w.relist(0)
	if m := w.created[full]; m == nil || m.Err != nil {
		t.Fatalf("%+v", m)
	}
	w.step(Pack{Job: 1, Values: []PackValue{{ID: jobObject(1, 1), Value: wire.Value{Data: make([]byte, 1000)}}}})
	w.step(DropJob{1})
	w.step(ClientGone{1})
	w.relist(0)
	w.step(FromClient{2, &wire.Abort{ID: jobObject(2, 1)}})
	if len(w.c.over) != 0 || len(w.jobs) != 0 || w.c.alloc.UsedBy(1) != 0 || w.c.queues[laneCreate].peek(laneCreate) != nil {
		t.Errorf("left of the job: %+v, %d jobs", w.c.Stats(), len(w.jobs))
	}
}

// A job that was over on a node is opened there again while a process of before is still there. What it makes then outlives the core, and its file the
// process.
func TestAJobThatIsOpenedAgainIsNotOver(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.joinJob(1, 1)
	w.put(1, jobObject(1, 1), mib)
	w.step(DropJob{1})
	w.step(JobOpened{1})
	w.joinJob(2, 1)
	w.put(2, jobObject(1, 2), mib)
	w.crash(true)
	w.relist(0)
	w.step(ClientGone{1})
	w.step(Drained{Epoch: w.epoch})
	w.relist(0)
	if r, ok := w.c.objs[jobObject(1, 2)]; !ok || r.o.gone || !r.o.resident || w.notes.Len() != 0 {
		t.Errorf("the store has %+v, and remembers %v", r.o, w.notes.List())
	}
	w.step(DropJob{1})
	w.step(ClientGone{2})
	w.relist(0)
	if len(w.c.over) != 0 || w.c.alloc.UsedBy(1) != 0 || w.notes.Len() != 0 {
		t.Errorf("the job's file is left: %+v, %v", w.c.Stats(), w.notes.List())
	}
}

// A job that is opened again after its file was dropped has a file again.
func TestAJobThatIsOpenedAgainHasAFile(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.joinJob(1, 1)
	w.put(1, jobObject(1, 1), mib)
	w.step(DropJob{1})
	w.step(ClientGone{1})
	if !w.noFile[1] {
		t.Fatal("the job's file is left")
	}
	w.step(JobOpened{1})
	w.joinJob(2, 1)
	w.put(2, jobObject(1, 2), mib)
}

// A process that joins a job after its end does not open it: the job's file goes with the process, whatever becomes of the core.
func TestALateProcessDoesNotOpenItsJob(t *testing.T) {
	for _, crash := range []bool{false, true} {
		w := newWorld(t, testConfig(16*mib))
		w.joinJob(1, 1)
		w.put(1, jobObject(1, 1), mib)
		w.step(DropJob{1})
		w.joinJob(2, 1)
		if crash {
			w.crash(true)
			w.step(Drained{Epoch: w.epoch})
		}
		w.step(ClientGone{1})
		if w.noFile[1] {
			t.Errorf("crash %v: the file goes while the process has it", crash)
		}
		w.step(ClientGone{2})
		w.relist(0)
		if !w.noFile[1] || len(w.c.over) != 0 || w.notes.Len() != 0 {
			t.Errorf("crash %v: the job's file is left: %+v, %v", crash, w.c.Stats(), w.notes.List())
		}
	}
}

// A copy that is made for a process of a job that is over goes with that process.
func TestALateCopyGoesWithItsReader(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.joinJob(1, 1)
	w.joinJob(2, 2)
	w.put(1, jobObject(1, 1), mib)
	w.step(DropJob{2})
	w.step(PinForGet{Client: 2, ID: jobObject(1, 1)})
	w.relist(0)
	if len(w.resolved) != 1 || w.resolved[0].Result.Err != nil {
		t.Fatalf("%+v", w.resolved)
	}
	delete(w.owned, owner{id: jobObject(1, 1), client: 2, pin: true})
	w.step(ClientGone{2})
	w.relist(0)
	if len(w.c.over) != 0 || w.c.alloc.UsedBy(2) != 0 {
		t.Errorf("the job's file is left: %+v", w.c.Stats())
	}
}
