package objectstore

import (
	"errors"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// fullOfFiles is a store of which two views leave no room for 9 MiB, in memory or within the disk budget.
func fullOfFiles(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.put(1, put(1), 12*mib)
	w.step(PinForGet{Client: 1, ID: put(1)})
	r := w.create(1, put(2), 0, 12*mib, ids.TaskID{})
	w.relist(int64(2 * time.Second))
	if m := w.created[r]; m == nil || m.Err != nil || m.Extent.File == 0 {
		t.Fatalf("the create that fills the disk budget: %+v", m)
	}
	w.write(1, 0, w.created[r])
	w.seal(1, 0, w.created[r], 12*mib)
	w.step(PinForGet{Client: 1, ID: put(2)})
	return w
}

func TestGarbageIsCollectedBeforeTheStoreIsCalledFull(t *testing.T) {
	w := fullOfFiles(t)
	asked := w.c.Stats().Collects
	r := w.create(1, put(3), 0, 9*mib, ids.TaskID{})
	w.relist(int64(500 * time.Millisecond))
	if m := w.created[r]; m != nil {
		t.Fatalf("answered while clients collect: %+v", m)
	}
	if n := w.c.Stats().Collects; n != asked+1 {
		t.Fatalf("clients were asked %d times, want once", n-asked)
	}
	w.unpin(1, put(2), 1)
	w.step(Free{[]ids.ObjectID{put(2)}}) // that was it
	w.relist(int64(time.Millisecond))
	if m := w.created[r]; m == nil || m.Err != nil || m.Extent.File == 0 {
		t.Fatalf("after the collection: %+v", m)
	}
}

func TestGarbageIsCollectedAboveAShareOfTheStoreAndNotOften(t *testing.T) {
	cfg := testConfig(16 * mib)
	cfg.CollectThreshold, cfg.CollectEvery = 0.7, 30*time.Second
	w := newWorld(t, cfg)
	w.join(1)
	collects := func(want uint64, when string) {
		t.Helper()
		if n := w.c.Stats().Collects; n != want {
			t.Errorf("%s: clients were asked %d times, want %d", when, n, want)
		}
	}
	w.put(1, put(1), 11*mib)
	collects(0, "at 11 of 16 MiB")
	w.put(1, put(2), mib/2)
	collects(1, "at 11.5")
	w.relist(int64(29 * time.Second))
	w.put(1, put(3), mib/2)
	collects(1, "29 s later")
	w.relist(int64(2 * time.Second))
	w.put(1, put(4), mib/2)
	collects(2, "31 s later")
}

func TestTheStoreIsFullWhenCollectionsGiveNothing(t *testing.T) {
	w := fullOfFiles(t)
	r := w.create(1, put(3), 0, 9*mib, ids.TaskID{})
	w.relist(int64(10 * time.Second))
	if m := w.created[r]; m == nil || !errors.Is(m.Err, errs.ErrStoreFull) {
		t.Fatalf("nothing was let go: %+v", m)
	}
	asked := w.c.Stats().Collects
	r = w.create(1, put(4), 0, 9*mib, ids.TaskID{})
	w.relist(int64(time.Millisecond))
	if m := w.created[r]; m == nil || !errors.Is(m.Err, errs.ErrStoreFull) {
		t.Fatalf("the next one waits for what has given nothing: %+v", m)
	}
	if n := w.c.Stats().Collects; n != asked {
		t.Errorf("clients were asked %d times more", n-asked)
	}
}

func TestAfterAFullStoreACreateStillWaitsForRunningTasks(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1, 11)
	w.put(1, put(1), 4*mib)
	w.step(PinForGet{Client: 1, ID: put(1)})
	w.put(1, put(2), 10*mib)
	w.step(PinForGet{Client: 1, ID: put(2)})
	r := w.create(1, put(3), 0, 12*mib, ids.TaskID{})
	w.relist(int64(2 * time.Second)) // a file that stays
	w.write(1, 0, w.created[r])
	w.seal(1, 0, w.created[r], 12*mib)
	w.step(PinForGet{Client: 1, ID: put(3)})
	r = w.create(1, put(4), 0, 9*mib, ids.TaskID{})
	w.relist(int64(10 * time.Second))
	if m := w.created[r]; m == nil || !errors.Is(m.Err, errs.ErrStoreFull) {
		t.Fatalf("nothing was let go: %+v", m)
	}
	w.unpin(1, put(2), 1)
	w.step(PinArgs{Job: 1, Task: task(1), Worker: 11, IDs: []ids.ObjectID{put(2)}})
	w.put(1, put(5), mib) // things move again
	w.relist(int64(time.Minute))
	r = w.create(1, put(6), 0, 10*mib, ids.TaskID{})
	w.relist(int64(100 * time.Millisecond))
	if m := w.created[r]; m != nil {
		t.Fatalf("a create did not wait for a task that runs: %+v", m)
	}
	w.step(UnpinArgs{Task: task(1)})
	w.relist(int64(500 * time.Millisecond))
	if m := w.created[r]; m == nil || m.Err != nil {
		t.Fatalf("after the task has ended: %+v", m)
	}
}
