package objectstore

import (
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

func jobObject(job ids.JobID, n int) ids.ObjectID { return ids.RootTask(job, 1).Put(uint32(n)) }

// What an actor of another job made, and was spilled, is not read ahead into that job's file.
func TestWhatAnotherJobMadeIsNotReadAhead(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.joinJob(1, 1)
	w.joinJob(2, 2)
	w.put(2, put(1), 10*mib)
	w.put2(1, put(2), 12*mib)
	w.step(FromClient{1, &wire.Abort{ID: put(2)}})
	w.relist(0)
	if o := w.c.objs[put(1)].o; o.resident || !o.spilled || o.job != 2 {
		t.Fatalf("it is not spilled: %+v", w.c.Stats())
	}
	w.step(DropJob{2})
	w.step(ClientGone{2})
	w.step(ReadAhead{IDs: []ids.ObjectID{put(1)}})
	w.relist(int64(time.Second))
	if used := w.c.alloc.UsedBy(2); used != 0 || len(w.c.over) != 0 {
		t.Errorf("%d bytes lie in the file of a job that is over", used)
	}
	w.step(PinForGet{Client: 1, ID: put(1)})
	w.relist(0)
	if len(w.resolved) != 1 || w.resolved[0].Result.Err != nil || w.c.alloc.UsedBy(2) != 0 || w.c.counts.CopiesMade != 1 {
		t.Errorf("read: %+v, %+v", w.resolved, w.c.Stats())
	}
}
