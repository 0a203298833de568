package objectstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

const mib = 1 << 20

var root = ids.RootTask(1, 1)

func task(n int) ids.TaskID  { return ids.Derive(root, uint64(n)) }
func put(n int) ids.ObjectID { return root.Put(uint32(n)) }

func TestPutGetFree(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1, 2)
	w.put(1, put(1), 3*mib)
	w.step(PinForGet{Client: 2, ID: put(1), Refs: []ids.ObjectID{put(9)}})
	if len(w.resolved) != 1 || w.resolved[0].Result.Size != 3*mib || w.resolved[0].Result.Value.Meta[1] != 7 || w.resolved[0].Result.Value.Refs[0] != put(9) {
		t.Fatalf("get answered with %+v", w.resolved)
	}
	w.step(Free{[]ids.ObjectID{put(1)}})
	if w.c.alloc.Held() != 3*mib {
		t.Fatalf("a pinned object was freed: held %d", w.c.alloc.Held())
	}
	w.unpin(2, put(1), 1)
	if w.c.alloc.Held() != 0 || len(w.c.objs) != 0 {
		t.Fatalf("held %d after the last pin fell", w.c.alloc.Held())
	}
	w.step(PinForGet{Client: 2, ID: put(1)})
	if len(w.lost) != 1 || !errors.Is(w.lost[0].Err, errs.ErrObjectLost) || w.lost[0].Client != 2 {
		t.Fatalf("get of a freed object: %+v", w.lost)
	}
}

func TestTooLargeNamesAllFigures(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.put(1, put(1), 2*mib)
	w.step(PinForGet{Client: 1, ID: put(1)})
	r := w.create(1, put(2), 0, 17*mib, ids.TaskID{})
	e := w.created[r]
	if e == nil || !errors.Is(e.Err, errs.ErrObjectTooLarge) {
		t.Fatalf("17 MiB in a store of 16: %+v", e)
	}
	for _, figure := range []string{"17825792", "16777216", "held 2097152", "pinned 2097152"} {
		if !strings.Contains(e.Err.Error(), figure) {
			t.Errorf("%q does not name %s", e.Err, figure)
		}
	}
}

func TestCreatesAreServedInOrder(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1, 2)
	w.put(1, put(1), 14*mib)
	w.step(PinForGet{Client: 1, ID: put(1)})
	big := w.create(2, put(2), 0, 12*mib, ids.TaskID{})
	small := w.create(1, put(3), 0, 100, ids.TaskID{})
	w.relist(int64(100 * time.Millisecond))
	if w.created[big] != nil || w.created[small] != nil {
		t.Fatal("a later, smaller create went before an earlier one")
	}
	w.unpin(1, put(1), 1)
	w.relist(int64(100 * time.Millisecond))
	if w.created[big] == nil || w.created[small] == nil || w.created[big].Extent.File != 0 {
		t.Fatalf("creates after the pin fell: %+v, %+v", w.created[big], w.created[small])
	}
	if s := w.c.Stats(); s.SpilledBytes != 14*mib || s.Fallbacks != 0 {
		t.Fatalf("room was made by %+v", s.Counters)
	}
}

func TestAnythingThatFitsTheLimitCanBeCreated(t *testing.T) {
	w := newWorld(t, testConfig(8*mib))
	w.join(1)
	for i := range 40 {
		w.put(1, put(i), uint64(i*i)*4000+1)
		w.relist(int64(time.Second))
	}
	m := w.put2(1, put(100), 8*mib)
	if m.Extent.File != 0 || w.c.alloc.Held() != 8*mib {
		t.Fatalf("the whole store could not be created: %+v", m)
	}
	w.write(1, 0, m)
	w.seal(1, 0, m, 8*mib)
	for i := range 40 { // each is still there
		w.step(PinForGet{Client: 1, ID: put(i)})
		w.relist(int64(time.Second))
		w.unpin(1, put(i), 1)
	}
	if len(w.resolved) != 40 {
		t.Fatalf("%d of 40 objects came back", len(w.resolved))
	}
}

// put2 is put without the write, with time to spill.
func (w *world) put2(c ids.ClientID, id ids.ObjectID, size uint64) *wire.Created {
	w.t.Helper()
	r := w.create(c, id, 0, size, ids.TaskID{})
	w.relist(int64(500 * time.Millisecond))
	if m := w.created[r]; m != nil && m.Err == nil {
		return m
	}
	w.t.Fatalf("create of %d bytes: %+v; %s", size, w.created[r], w.c.figures(size))
	return nil
}

func TestCopiesGoWithoutAWrite(t *testing.T) {
	w := newWorld(t, testConfig(8*mib))
	w.join(1)
	w.put(1, put(1), 3*mib)
	m := w.put2(1, put(2), 8*mib)
	w.write(1, 0, m)
	w.seal(1, 0, m, 8*mib)
	w.step(PinForGet{Client: 1, ID: put(1)})
	w.relist(int64(time.Second))
	w.unpin(1, put(1), 1)
	spilled := w.c.counts.SpilledBytes
	if s := w.c.Stats(); s.Copies != 3*mib {
		t.Fatalf("the restored object is no copy: %+v", s)
	}
	w.put2(1, put(3), 8*mib)
	if got := w.c.counts; got.SpilledBytes != spilled || got.Evictions != 1 {
		t.Fatalf("evicting a copy wrote %d bytes, %d evictions", got.SpilledBytes-spilled, got.Evictions)
	}
}

func TestSpillStartsAboveTheThreshold(t *testing.T) {
	const limit, one = 64 * mib, mib
	w := newWorld(t, testConfig(limit))
	w.join(1)
	for i := range 64 {
		w.put(1, put(i), one)
		held, started := w.c.alloc.Held(), len(w.jobs) > 0 || w.c.spills > 0 || w.c.spillAt > 0
		if asked := w.collects > 0; asked != (held > limit*7/10) {
			t.Fatalf("asked to collect: %v, at %d of %d bytes", asked, held, limit)
		}
		if below := held <= limit*8/10; below && started && w.c.spills > 0 {
			t.Fatalf("spilling at %d of %d bytes", held, limit)
		} else if !below {
			if !started || held > limit*8/10+one {
				t.Fatalf("not spilling at %d of %d bytes", held, limit)
			}
			break
		}
	}
	w.relist(int64(time.Second))
	if s := w.c.Stats(); s.Spills != 1 || s.SpilledBytes < limit/8 || s.Held > limit*8/10 || w.collects != 1 {
		t.Fatalf("after the threshold: %+v, %d requests to collect", s, w.collects)
	}
}

func TestTwoTasksThatEachNeedTheOthersRoom(t *testing.T) {
	const limit = 100 * mib
	w := newWorld(t, testConfig(limit))
	w.join(1, 11, 12)
	w.put(1, put(2), limit*35/100)
	w.put(1, put(1), limit*35/100) // beside the free part
	w.step(PinArgs{Job: 1, Task: task(1), Worker: 11, IDs: []ids.ObjectID{put(1)}})
	w.step(PinArgs{Job: 1, Task: task(2), Worker: 12, IDs: []ids.ObjectID{put(2)}})
	if len(w.argsOK) != 2 {
		t.Fatalf("%d of two tasks got their arguments", len(w.argsOK))
	}
	a := w.create(11, task(1).Return(0), 0, limit*40/100, task(1))
	b := w.create(12, task(2).Return(0), 0, limit*40/100, task(2))
	w.relist(int64(time.Millisecond)) // at once, not after a stall
	if m := w.created[a]; m == nil || m.Err != nil || m.Extent.File == 0 {
		t.Fatalf("the first create: %+v", m)
	}
	if w.created[b] != nil {
		t.Fatal("the second was served while the first may let go")
	}
	w.write(11, 0, w.created[a])
	w.seal(11, 0, w.created[a], limit*40/100)
	w.step(UnpinArgs{Task: task(1)})
	w.relist(int64(time.Second))
	if m := w.created[b]; m == nil || m.Err != nil || m.Extent.File != 0 {
		t.Fatalf("the second create: %+v", m)
	}
	if s := w.c.Stats(); s.Fallbacks != 1 || s.FallbackBytes != limit*40/100 {
		t.Fatalf("%+v", s)
	}
}

func TestTasksThatShareALargeArgumentRunTogether(t *testing.T) {
	const limit = 100 * mib
	w := newWorld(t, testConfig(limit))
	w.join(1, 11, 12, 13)
	w.put(1, put(1), limit*80/100) // more than the share of running tasks
	w.put(1, put(2), limit*5/100)
	w.step(PinArgs{Job: 1, Task: task(1), Worker: 11, IDs: []ids.ObjectID{put(1)}})
	w.step(PinArgs{Job: 1, Task: task(2), Worker: 12, IDs: []ids.ObjectID{put(1)}})
	w.step(PinArgs{Job: 1, Task: task(3), Worker: 13, IDs: []ids.ObjectID{put(1), put(2)}})
	if len(w.argsOK) != 2 {
		t.Fatalf("%d of the two tasks that need the one object got it, and the one that needs more", len(w.argsOK))
	}
	w.step(UnpinArgs{Task: task(1)})
	w.step(UnpinArgs{Task: task(2)})
	if _, ok := w.argsOK[NoteKey{Task: task(3)}]; !ok {
		t.Fatal("the task that needs more does not run alone")
	}
}

// An owner that was restarted names the attempts that it knows of: no others' arguments are in the way of theirs.
func TestKeepArgs(t *testing.T) {
	const limit = 100 * mib
	w := newWorld(t, testConfig(limit))
	w.join(1, 11, 12, 13)
	for i := range 4 {
		w.put(1, put(i), limit*20/100)
	}
	for i := range 4 {
		w.step(PinArgs{Job: ids.JobID(1 + i/3), Task: task(i), Attempt: 1, Worker: 11, IDs: []ids.ObjectID{put(i)}})
	}
	if len(w.argsOK) != 3 || w.c.findSet(task(3), 1) == nil {
		t.Fatalf("%d of 4 tasks' arguments are in memory", len(w.argsOK))
	}
	w.step(KeepArgs{Job: 1, Attempts: []UnpinArgs{{task(1), 1}, {task(2), 2}}})
	for i, want := range []bool{false, true, false, true} {
		if has := w.c.findSet(task(i), 1) != nil; has != want {
			t.Errorf("the arguments of task %d are pinned: %v", i, has)
		}
	}
	if _, ok := w.argsOK[NoteKey{Task: task(3), Attempt: 1}]; !ok {
		t.Error("the other job's task waits")
	}
	w.step(PinArgs{Job: 1, Task: task(0), Attempt: 1, Worker: 12, IDs: []ids.ObjectID{put(0)}})
	if s := w.c.findSet(task(0), 1); s == nil || s.req.Worker != 12 {
		t.Error("what is asked for again is not for the worker that runs it now")
	}
}

// What a task needs that comes next is read while nobody asks for anything, into free memory
// only, and its task then does not wait.
func TestReadAhead(t *testing.T) {
	const limit = 100 * mib
	cfg := testConfig(limit)
	cfg.MaxRestores = 3
	w := newWorld(t, cfg)
	w.join(1)
	for i := range 16 { // more than the threshold: the first are spilled
		w.put(1, put(i), limit/10)
		w.relist(int64(time.Second))
	}
	for i := 8; i < 16; i++ {
		w.step(Free{[]ids.ObjectID{put(i)}})
	}
	spilled := func(i int) bool { r := w.c.objs[put(i)]; return !r.o.resident }
	if !spilled(0) || !spilled(1) || !spilled(2) {
		t.Fatal("the oldest objects are in memory")
	}
	w.step(ReadAhead{[]ids.ObjectID{put(0), put(1), put(2), put(99)}})
	if n := w.c.restores.underWay; n != 2 {
		t.Fatalf("%d reads under way, want 2: one is for who waits", n)
	}
	w.relist(int64(time.Second))
	if s := w.c.Stats(); spilled(0) || spilled(1) || spilled(2) || s.ReadAhead != 3 || s.Restores != 3 || s.Pinned != 0 {
		t.Fatalf("read ahead: %+v", s)
	}
	w.step(PinArgs{Job: 1, Task: task(1), Worker: 1, IDs: []ids.ObjectID{put(0), put(1), put(2)}})
	if _, ok := w.argsOK[NoteKey{Task: task(1)}]; !ok {
		t.Fatal("the task waits for what was read")
	}
	w.step(UnpinArgs{Task: task(1)})
	written := w.c.counts.SpilledBytes
	for i := 20; i < 23; i++ { // of 40 MiB that are free, and the copies
		w.put(1, put(i), limit/10)
	}
	if got := w.c.counts; w.c.alloc.Held()+limit/10 > limit && got.Evictions == 0 || got.SpilledBytes != written {
		t.Errorf("copies read ahead stay while others need their memory: %+v", got)
	}
	for i := 23; i < 40; i++ {
		w.put(1, put(i), limit/10)
		w.relist(int64(time.Second))
		w.step(PinForGet{Client: 1, ID: put(i)})
		if w.c.pinnedBytes >= limit*8/10 {
			break
		}
	}
	w.relist(int64(time.Second))
	n := w.c.counts.ReadAhead
	for i := range 8 {
		w.step(ReadAhead{[]ids.ObjectID{put(i)}})
		w.relist(int64(time.Second))
	}
	if got := w.c.counts; got.ReadAhead != n || w.c.readaheadQueue.Len() != 0 {
		t.Errorf("%d read ahead into a full store, %d held", got.ReadAhead-n, w.c.alloc.Held())
	}
}

func TestADriverWhoseViewsFillTheStore(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.put(1, put(1), 12*mib)
	w.step(PinForGet{Client: 1, ID: put(1)})
	r := w.create(1, put(2), 0, 8*mib, ids.TaskID{})
	w.relist(int64(990 * time.Millisecond))
	if w.created[r] != nil {
		t.Fatal("the escape was taken while the driver might have closed its view")
	}
	w.relist(int64(20 * time.Millisecond))
	if m := w.created[r]; m == nil || m.Extent.File == 0 {
		t.Fatalf("after the stall: %+v", m)
	}
	w.write(1, 0, w.created[r])
	w.seal(1, 0, w.created[r], 8*mib)
	w.step(PinForGet{Client: 1, ID: put(2)}) // the same view, outside the segment
	if n := len(w.resolved); n != 2 || w.resolved[1].Extent.File == 0 {
		t.Fatalf("view of a fallback object: %+v", w.resolved[n-1])
	}
	next := w.create(1, put(3), 0, 5*mib, ids.TaskID{})
	w.relist(int64(time.Millisecond))
	if m := w.created[next]; m == nil || m.Extent.File == 0 {
		t.Fatalf("the next create waits for another stall: %+v", m)
	}
	last := w.create(1, put(4), 0, 8*mib, ids.TaskID{})
	w.relist(int64(2 * time.Second))
	if m := w.created[last]; m == nil || !errors.Is(m.Err, errs.ErrStoreFull) || !strings.Contains(m.Err.Error(), "pinned 12582912") {
		t.Fatalf("beyond the disk budget: %+v", m)
	}
	w.unpin(1, put(2), 1)
	w.step(Free{[]ids.ObjectID{put(2)}})
	w.relist(0)
	if len(w.files) != 1 {
		t.Fatalf("%d fallback files left, want the one of the unsealed create", len(w.files))
	}
}

func TestARestoreThatCannotFitIsServedFromAFile(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.put(1, put(1), 10*mib)
	m := w.put2(1, put(2), 12*mib) // spills the first
	w.write(1, 0, m)
	w.seal(1, 0, m, 12*mib)
	w.step(PinForGet{Client: 1, ID: put(2)})
	w.step(PinForGet{Client: 1, ID: put(1)})
	w.relist(int64(1100 * time.Millisecond))
	if len(w.resolved) != 2 || w.resolved[1].Extent.File == 0 {
		t.Fatalf("get of a spilled object in a store full of views: %+v", w.resolved)
	}
	w.unpin(1, put(1), 1)
	if len(w.files) != 0 {
		t.Fatal("the file stays although the object is spilled too")
	}
	w.step(PinArgs{Job: 1, Task: task(5), Worker: 1, IDs: []ids.ObjectID{put(1), put(2)}}) // 22 of 16 MiB, alone
	w.relist(int64(1100 * time.Millisecond))
	if got := w.argsOK[NoteKey{Task: task(5)}]; len(got.Values) != 2 || got.Values[0].Extent.File == 0 {
		t.Fatalf("arguments larger than the store: %+v", got)
	}
}

func TestOutOfDiskIsAnErrorInBoundedTime(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.failing = true
	w.put(1, put(1), 12*mib)
	r := w.create(1, put(2), 0, 8*mib, ids.TaskID{})
	w.relist(int64(3 * time.Second))
	if m := w.created[r]; m == nil || !errors.Is(m.Err, errs.ErrOutOfDisk) || !strings.Contains(m.Err.Error(), "disk full") {
		t.Fatalf("with every directory full: %+v", m)
	}
	w.relist(int64(60 * time.Second))
	if n := len(w.logs); n == 0 || n > 8 {
		t.Fatalf("%d log lines in a minute", n)
	}
	w.failing = false
	w.relist(int64(10 * time.Second))
	if m := w.put2(1, put(3), 8*mib); m.Extent.File != 0 {
		t.Fatalf("after the disk came back: %+v", m)
	}
}

// What is deleted makes room on a full disk: the next create does not wait for the pause to end.
func TestADiskThatWasFullIsTriedWhenItHasRoom(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.put(1, put(1), 12*mib)
	m := w.put2(1, put(2), 12*mib) // spills the first
	w.write(1, 0, m)
	w.seal(1, 0, m, 12*mib)
	w.relist(int64(time.Second))
	w.failing = true
	for i := range 8 { // the pauses get long
		r := w.create(1, put(3+i), 0, 8*mib, ids.TaskID{})
		w.relist(int64(4 * time.Second))
		if m := w.created[r]; m == nil || !errors.Is(m.Err, errs.ErrOutOfDisk) {
			t.Fatalf("with a full disk: %+v", m)
		}
	}
	w.create(1, put(20), 0, 8*mib, ids.TaskID{}) // tries, and starts another pause
	w.relist(int64(100 * time.Millisecond))
	w.failing = false
	w.step(Free{[]ids.ObjectID{put(1)}})
	r := w.create(1, put(21), 0, 8*mib, ids.TaskID{})
	w.relist(int64(100 * time.Millisecond)) // clients are asked to collect first
	if m := w.created[r]; m == nil || m.Err != nil {
		t.Fatalf("after an object on it was freed: %+v", m)
	}
}

func TestNoMemoryIsAnError(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.noMem = true
	r := w.create(1, put(1), 0, 2*mib, ids.TaskID{})
	w.relist(int64(3 * time.Second))
	if m := w.created[r]; m == nil || !errors.Is(m.Err, errs.ErrSegmentUnavailable) {
		t.Fatalf("without memory: %+v", m)
	}
	w.noMem = false
	w.relist(int64(3 * time.Second))
	w.put(1, put(1), 2*mib)
	w.noMem = true // what the segment has is used again, by spilling
	m := w.put2(1, put(2), 2*mib)
	if m.Extent.File != 0 {
		t.Fatalf("%+v", m)
	}
}
