package index

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/record"
	"mobula/objectstore/spill"
)

func openAs(t *testing.T, path string, o Owner) *Index {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Open(f, o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// After a reboot nothing that was in memory counts as present. It stays so however often the machine starts, and whenever a node is
// killed while it drops these records.
func TestWhatAnotherRunOfTheMachineHeldIsForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	block, loc := alloc.Block{Off: 1 << 20, Size: 1 << 16}, spill.Location{Target: 1, File: 2, Off: 4096, Size: 1 << 16, CRC: 7}
	long := make([]byte, 5000)
	was := []record.Record{
		{State: record.StateSealed, ID: ids.RootTask(1, 1).Put(1), Resident: true, Block: block, Size: 1 << 16},
		{State: record.StateSealed, ID: ids.RootTask(1, 1).Put(2), Resident: true, Block: block, Size: 1 << 16, Spilled: true, Loc: loc, Payload: []byte("meta")},
		{State: record.StateSealed, ID: ids.RootTask(1, 1).Put(3), Size: 1 << 16, Spilled: true, Loc: loc, Packed: true, Payload: long},
		{State: record.StateRestoring, ID: ids.RootTask(1, 1).Put(4), Block: block, Size: 1 << 16, Spilled: true, Loc: loc},
		{State: record.StateGranted, ID: ids.RootTask(1, 1).Put(5), Client: 9, Resident: true, Block: block, Size: 1 << 16},
		{State: record.StateSealed, ID: ids.RootTask(1, 1).Put(6), Resident: true, File: 3, Path: "/fallback", Size: 1 << 16, Payload: long},
		{State: record.StateSealed, ID: ids.RootTask(1, 1).Put(7), Resident: true, File: 4, Path: "/fallback", Size: 1 << 16, Spilled: true, Loc: loc, Payload: long},
		{State: record.StateClient, Client: 9, PID: 1},
	}
	want := map[uint32]record.Record{}
	for i, r := range was {
		if r.Spilled {
			r.State, r.Resident, r.File, r.Block, r.Path = record.StateSealed, false, 0, alloc.Block{}, ""
			want[uint32(i)] = r
		}
	}
	x := openAs(t, path, Owner{Segment: segmentSize, Boot: "first"})
	for i := range was {
		if err := x.Write(uint32(i), &was[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i, boot := range []string{"first", "second", "second", "third"} {
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		x = openAs(t, path, Owner{Segment: segmentSize, Boot: boot})
		if i == 0 {
			if got := x.Replay(); len(got) != len(was) || x.Forgotten() != 0 {
				t.Fatalf("in the same run %d records are left", len(got))
			}
			continue
		}
		checkReplay(t, x, want)
		if n := x.Forgotten(); (n != 0) != (i == 1) {
			t.Errorf("start %d: %d forgotten", i, n)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// An index of an earlier build is read: as it is if it lies in memory, else as one from before a reboot.
func TestAnIndexOfAnEarlierBuild(t *testing.T) {
	for dir, kept := range map[string]int{t.TempDir(): 0, "/dev/shm": 1} {
		path := filepath.Join(dir, "mobula-test-earlier-index")
		defer func() { _ = os.Remove(path) }()
		x := openAs(t, path, Owner{Segment: segmentSize})
		if inMemory(x.file) != (kept == 1) {
			t.Skipf("%s is not what it is elsewhere", dir)
		}
		if err := x.Write(0, &record.Record{State: record.StateSealed, ID: ids.RootTask(1, 1).Put(1), Resident: true, Size: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := x.file.WriteAt(make([]byte, headerSize-24), 24); err != nil { // what it did not know
			t.Fatal(err)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		x = openAs(t, path, Owner{Segment: segmentSize, Boot: "now"})
		if got := x.Replay(); len(got) != kept {
			t.Errorf("in %s: %d records", dir, len(got))
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADamagedHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	x := openAs(t, path, Owner{Segment: segmentSize, Boot: "now"})
	defer func() { _ = x.Close() }()
	if _, err := x.file.WriteAt([]byte("!"), ownerAt+10); err != nil {
		t.Fatal(err)
	}
	if o, err := ReadOwner(x.file); err != nil || o != (Owner{Segment: segmentSize}) {
		t.Errorf("with a damaged owner: %+v, %v", o, err)
	}
	if _, err := x.file.WriteAt(binary.LittleEndian.AppendUint64(nil, 1), 12); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadOwner(x.file); !errors.Is(err, ErrCorrupt) {
		t.Errorf("with a damaged size: %v", err)
	}
}

func TestAnotherNodesIndexIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	x := openAs(t, path, Owner{Segment: segmentSize, Node: "a"})
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f, Owner{Segment: segmentSize, Node: "b"}); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want ErrForeign", err)
	}
}
