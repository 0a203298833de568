package objectstore

import (
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/objectstore/spill"
)

// A core may be lost between two effects of a write's end. The next core has the end again, and its objects the copies that were noted before.
func TestAWriteThatIsToldAgainKeepsItsCopies(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	var told SpillDone
	w.show = func(f Effect) {
		switch e := f.(type) {
		case SpillWrite:
			told.Job = e.Job
		case WriteRecord:
			if e.Record.Spilled {
				told.Locs = append(told.Locs, e.Record.Loc)
			}
		}
	}
	for i := range 8 {
		w.put(1, put(i), 2*mib)
	}
	w.relist(int64(time.Second))
	w.show = nil
	if len(told.Locs) == 0 {
		t.Fatal("nothing was spilled")
	}
	nobodys := spill.Location{File: 1 << 40, Size: 8}
	w.crash(true)
	w.disk[nobodys] = bytesOf{}
	told.Locs = append(told.Locs, nobodys)
	w.step(told)
	w.step(Drained{Epoch: w.epoch})
	if _, there := w.disk[nobodys]; there {
		t.Error("a copy that no object has is kept")
	}
	for i := range 8 {
		before := len(w.resolved)
		w.step(PinForGet{Client: 1, ID: put(i)})
		w.relist(int64(time.Second))
		if len(w.resolved) != before+1 || w.resolved[before].Result.Err != nil {
			t.Fatalf("object %d cannot be read: %+v, lost %+v", i, w.resolved[before:], w.lost)
		}
		w.unpin(1, put(i), 1)
	}
}

// Likewise of the end of a fallback file's creation: what was placed in the file keeps it, and a file in which nothing was placed goes.
func TestAFallbackFileThatIsToldAgainStays(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.put(1, put(1), 12*mib)
	w.step(PinForGet{Client: 1, ID: put(1)})
	r := w.create(1, put(2), 0, 8*mib, ids.TaskID{})
	w.relist(int64(2 * time.Second))
	m := w.created[r]
	if m == nil || m.Extent.File == 0 {
		t.Fatalf("it does not lie in a fallback file: %+v", m)
	}
	w.write(1, 0, m)
	w.crash(true)
	w.step(FallbackDone{Job: 1 << 40, File: m.Extent.File, Path: w.files[m.Extent.File]})
	if w.files[m.Extent.File] == "" {
		t.Error("the file in which a client writes is dropped")
	}
	nobodys := w.nextF + 1
	w.files[nobodys] = "nobody's"
	w.step(FallbackDone{Job: 1 << 41, File: nobodys, Path: "nobody's"})
	if w.files[nobodys] != "" {
		t.Error("a file in which nothing lies is kept")
	}
}

// A core may be lost between two effects with which it drops the file of a job that is over: the next one knows that the job is, and drops the file.
func TestTheFileOfAJobIsDroppedBeforeThatIsForgotten(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.put(1, put(1), 2*mib)
	w.step(DropJob{Job: w.job[1]})
	var order []string
	w.show = func(f Effect) {
		switch f.(type) {
		case DropSegment:
			order = append(order, "drop")
		case Forget:
			order = append(order, "forget")
		}
	}
	w.step(ClientGone{Client: 1})
	w.relist(int64(time.Second))
	if len(order) < 2 || order[len(order)-2] != "drop" || order[len(order)-1] != "forget" {
		t.Errorf("the store does %v", order)
	}
}
