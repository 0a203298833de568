package objectstore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/objectstore/segment"
	"mobula/wire"
)

func jobObject(job ids.JobID, n int) ids.ObjectID { return ids.RootTask(job, 1).Put(uint32(n)) }

// named is memory that a next node finds.
func named(t *testing.T) segment.Config {
	t.Helper()
	mem := segment.Config{Path: filepath.Join("/dev/shm", fmt.Sprintf("mobula-test-files-%d-%s", os.Getpid(), filepath.Base(t.TempDir())))}
	t.Cleanup(func() { _ = removeAll(mem.Path) })
	return mem
}

// However many jobs there are, and whatever each has made, read of others and let go, their files have no more memory than the limit.
func TestTheFilesOfAllJobsStayWithinTheLimit(t *testing.T) {
	const jobs, size = 4, mib
	r := newRig(t, testConfig(16*mib), spillConfig(t.TempDir()), segment.Config{})
	defer r.close(true)
	var users []*user
	for j := range jobs {
		users = append(users, r.joinJob(ids.ClientID(j+1), ids.JobID(j+1)))
	}
	within := func(when string) {
		t.Helper()
		blocks, err := r.mem.Blocks()
		if s := r.stats(); err != nil || blocks+r.mem.Index.Bytes() > s.Limit || s.Held > s.Limit {
			t.Fatalf("%s: the files take %d bytes and the index %d, of %+v, %v", when, blocks, r.mem.Index.Bytes(), s, err)
		}
	}
	id := func(n int) ids.ObjectID { return jobObject(ids.JobID(n%jobs+1), n) }
	const n = 60
	for i := range n {
		users[i%jobs].put(id(i), pattern(i, size))
		within("put")
		if i >= 3 { // one of the job's own, and two of others'
			for k := range 3 {
				of := i - k - 1
				b, err := users[i%jobs].get(id(of))
				if err != nil || !bytes.Equal(b, pattern(of, size)) {
					t.Fatalf("object %d read by job %d: %d bytes, %v", of, i%jobs+1, len(b), err)
				}
				users[i%jobs].unpin(id(of))
				within("get")
			}
		}
		if i%4 == 3 {
			r.post(Free{[]ids.ObjectID{id(i - 3)}})
		}
	}
	if s := r.stats(); s.CopiesMade == 0 || s.Lost != 0 || s.SpilledObjects == 0 {
		t.Errorf("%+v", s)
	}
}

// A job that is over gives its file back once nothing lies in it and none of its processes is left; an object that it made for another
// job keeps it.
func TestAJobThatIsOverGivesItsFileBack(t *testing.T) {
	mem := named(t)
	r := newRig(t, testConfig(16*mib), spillConfig(t.TempDir()), mem)
	defer r.close(true)
	one, two := r.joinJob(1, 1), r.joinJob(2, 2)
	one.put(jobObject(1, 1), pattern(1, mib))
	two.put(jobObject(2, 2), pattern(2, mib))
	two.put(jobObject(1, 3), pattern(3, mib)) // the result of a call of its actor by job 1
	if n := len(filesAt(mem.Path)); n != 2 {
		t.Fatalf("%d files of two jobs", n)
	}
	r.post(DropJob{2})
	r.stats()
	if n := len(filesAt(mem.Path)); n != 2 {
		t.Errorf("%d files while the job has a process", n)
	}
	r.post(ClientGone{2})
	if s := r.stats(); s.Objects != 2 || len(filesAt(mem.Path)) != 2 {
		t.Errorf("%d files with %d objects, one of which the job has made", len(filesAt(mem.Path)), s.Objects)
	}
	b, err := one.get(jobObject(1, 3))
	if err != nil || !bytes.Equal(b, pattern(3, mib)) {
		t.Fatalf("what a job that is over has made: %d bytes, %v", len(b), err)
	}
	one.unpin(jobObject(1, 3))
	r.post(Free{[]ids.ObjectID{jobObject(1, 3)}})
	left := r.filesLeft(mem.Path, 1) // the file goes after a reservation that is under way
	if s := r.stats(); len(left) != 1 || s.Objects != 1 {
		t.Errorf("left of the job: %v, %+v", left, s)
	}
	if b, err := one.get(jobObject(1, 1)); err != nil || !bytes.Equal(b, pattern(1, mib)) {
		t.Errorf("the other job's: %d bytes, %v", len(b), err)
	}
}

// What an actor of another job made, and was spilled, is not read ahead into that job's file.
func TestWhatAnotherJobMadeIsNotReadAhead(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.joinJob(1, 1)
	w.joinJob(2, 2)
	w.put(2, put(1), 10*mib)
	w.put2(1, put(2), 12*mib)
	w.step(FromClient{1, &wire.Abort{ID: put(2)}})
	w.settle(0)
	if o := w.c.objs[put(1)].o; o.resident || !o.spilled || o.job != 2 {
		t.Fatalf("it is not spilled: %+v", w.c.Stats())
	}
	w.step(DropJob{2})
	w.step(ClientGone{2})
	w.step(ReadAhead{IDs: []ids.ObjectID{put(1)}})
	w.settle(int64(time.Second))
	if used := w.c.alloc.UsedBy(2); used != 0 || len(w.c.over) != 0 {
		t.Errorf("%d bytes lie in the file of a job that is over", used)
	}
	w.step(PinForGet{Client: 1, ID: put(1)})
	w.settle(0)
	if len(w.resolved) != 1 || w.resolved[0].Result.Err != nil || w.c.alloc.UsedBy(2) != 0 || w.c.counts.CopiesMade != 1 {
		t.Errorf("read: %+v, %+v", w.resolved, w.c.Stats())
	}
}
