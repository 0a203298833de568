package shell

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/objectstore/segment"
)

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
			r.post(objectstore.Free{IDs: []ids.ObjectID{id(i - 3)}})
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
	r.post(objectstore.DropJob{Job: 2})
	r.stats()
	if n := len(filesAt(mem.Path)); n != 2 {
		t.Errorf("%d files while the job has a process", n)
	}
	r.post(objectstore.ClientGone{Client: 2})
	if s := r.stats(); s.Objects != 2 || len(filesAt(mem.Path)) != 2 {
		t.Errorf("%d files with %d objects, one of which the job has made", len(filesAt(mem.Path)), s.Objects)
	}
	b, err := one.get(jobObject(1, 3))
	if err != nil || !bytes.Equal(b, pattern(3, mib)) {
		t.Fatalf("what a job that is over has made: %d bytes, %v", len(b), err)
	}
	one.unpin(jobObject(1, 3))
	r.post(objectstore.Free{IDs: []ids.ObjectID{jobObject(1, 3)}})
	left := r.filesLeft(mem.Path, 1) // the file goes after a reservation that is under way
	if s := r.stats(); len(left) != 1 || s.Objects != 1 {
		t.Errorf("left of the job: %v, %+v", left, s)
	}
	if b, err := one.get(jobObject(1, 1)); err != nil || !bytes.Equal(b, pattern(1, mib)) {
		t.Errorf("the other job's: %d bytes, %v", len(b), err)
	}
}

// A process that shortens its own job's file harms that job's objects alone.
func TestADamagedFileIsOneJobsLoss(t *testing.T) {
	mem := named(t)
	scfg := spillConfig(t.TempDir())
	scfg.Restarts, scfg.Keep = true, true
	r := newRig(t, testConfig(8*mib), scfg, mem)
	one, two := r.joinJob(1, 1), r.joinJob(2, 2)
	one.put(jobObject(1, 1), pattern(1, mib))
	two.put(jobObject(2, 1), pattern(2, mib))
	r.post(objectstore.ClientGone{Client: 1})
	r.post(objectstore.ClientGone{Client: 2})
	r.stats()
	r.close(false)
	for _, f := range filesAt(mem.Path) {
		if job, ok := jobOfFile(mem.Path, f); ok && job == 1 {
			if err := os.Truncate(f, 4096); err != nil {
				t.Fatal(err)
			}
		}
	}
	r = newRig(t, testConfig(8*mib), scfg, mem)
	defer r.close(true)
	if !errors.Is(r.mem.Removed, errs.ErrInvalid) {
		t.Errorf("what was removed: %v", r.mem.Removed)
	}
	u := r.joinJob(3, 2)
	if b, err := u.get(jobObject(2, 1)); err != nil || !bytes.Equal(b, pattern(2, mib)) {
		t.Errorf("the other job's: %d bytes, %v", len(b), err)
	}
	if _, err := getOrLost(r, u, jobObject(1, 1)); err == nil {
		t.Error("an object without bytes is there")
	}
}

// A driver that comes after its job's end gets no file, which nobody would remove.
func TestAJobThatIsOverGetsNoNewFile(t *testing.T) {
	mem := named(t)
	r := newRig(t, testConfig(8*mib), spillConfig(t.TempDir()), mem)
	defer r.close(true)
	r.joinJob(1, 1).put(jobObject(1, 1), pattern(1, mib))
	r.post(objectstore.DropJob{Job: 1})
	r.post(objectstore.ClientGone{Client: 1})
	r.filesLeft(mem.Path, 0) // spill storage may not be ready yet
	if _, err := r.mem.Segment(1); !errors.Is(err, errs.ErrOwnerDied) || len(filesAt(mem.Path)) != 0 {
		t.Errorf("%v, %v", filesAt(mem.Path), err)
	}
}

// The files of a store, segment and index, take no more than its limit, however many objects there are.
func TestManyObjectsKeepTheLimit(t *testing.T) {
	r := newRig(t, testConfig(8*mib), spillConfig(t.TempDir()), segment.Config{})
	u := r.join(1)
	for i := range 8000 { // 3 MiB of records
		u.put(put(i), pattern(i, 2000))
		if i%100 != 0 {
			continue
		}
		seg, err := r.mem.Blocks()
		if s := r.stats(); err != nil || seg+r.mem.Index.Bytes() > s.Limit {
			t.Fatalf("%d objects: %d bytes of the segment and %d of the index, of %d, %v", i, seg, r.mem.Index.Bytes(), s.Limit, err)
		}
	}
	if n := r.mem.Index.Bytes(); n < 3*mib {
		t.Fatalf("the index has %d bytes: this shows nothing", n)
	}
	for i := 0; i < 8000; i += 500 {
		if b, err := u.get(put(i)); err != nil || string(b) != string(pattern(i, 2000)) {
			t.Fatalf("object %d: %v", i, err)
		}
		u.unpin(put(i))
	}
	r.close(true)
}

// A job that is opened again has a file again.
func TestAJobThatIsOpenedAgainGetsAFile(t *testing.T) {
	mem := named(t)
	r := newRig(t, testConfig(8*mib), spillConfig(t.TempDir()), mem)
	defer r.close(true)
	r.joinJob(1, 1).put(jobObject(1, 1), pattern(1, mib))
	r.post(objectstore.DropJob{Job: 1})
	r.post(objectstore.ClientGone{Client: 1})
	r.filesLeft(mem.Path, 0)
	r.post(objectstore.JobOpened{Job: 1})
	u := r.joinJob(2, 1)
	u.put(jobObject(1, 2), pattern(2, mib))
	if b, err := u.get(jobObject(1, 2)); err != nil || !bytes.Equal(b, pattern(2, mib)) {
		t.Errorf("what it has made: %d bytes, %v", len(b), err)
	}
}
