package shell

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/objectstore/index"
	"mobula/objectstore/segment"
)

// fullIndex is an index that never has room for a record.
func fullIndex(t *testing.T, segment uint64) *index.Index {
	t.Helper()
	fd, err := unix.MemfdCreate("full-index", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(os.NewFile(uintptr(fd), "full-index"), index.Owner{Segment: segment})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(x.File().Fd(), unix.F_ADD_SEALS, unix.F_SEAL_GROW); err != nil {
		t.Fatal(err)
	}
	return x
}

// A store that restarts between Create and Seal hands the extent out to nobody else, whether its
// index could take the records or not; nor what is read.
func TestARestartBetweenCreateAndSeal(t *testing.T) {
	for _, full := range []bool{false, true} {
		t.Run(map[bool]string{false: "index", true: "full index"}[full], func(t *testing.T) {
			r := newRig(t, testConfig(8*mib), spillConfig(t.TempDir()), segment.Config{})
			if r.stats(); full { // the store is idle, and has written nothing
				old := r.mem.Index
				r.mem.Index = fullIndex(t, 8*mib)
				if err := old.Close(); err != nil {
					t.Fatal(err)
				}
			}
			u, v := r.join(1), r.join(2)
			u.put(put(1), pattern(1, mib))
			read, err := v.get(put(1))
			if err != nil {
				t.Fatal(err)
			}
			m := u.create(put(2), 3*mib, ids.TaskID{})
			if m.Err != nil {
				t.Fatal(m.Err)
			}
			b, err := u.mapping.Map(m.Extent, true)
			if err != nil {
				t.Fatal(err)
			}
			half := len(b) / 2
			copy(b[:half], pattern(2, 3*mib))
			r.sys.Faults.Inject(actors.Fault{Kind: "objectstore", MessageType: "objectstore.Inspect", Nth: 1, Action: actors.PanicMidStep})
			r.stats() // it may be answered before the panic
			r.stats()
			if n := r.sys.Restarts()["objectstore"]; n != 1 {
				t.Fatalf("%d restarts", n)
			}
			for i := 3; i < 7; i++ { // all there is left, and more
				v.put(put(i), pattern(i, mib))
			}
			copy(b[half:], pattern(2, 3*mib)[half:])
			r.post(objectstore.SealObject{Client: 1, ID: put(2), Size: 3 * mib})
			got, err := v.get(put(2))
			if err != nil || !bytes.Equal(got, pattern(2, 3*mib)) {
				t.Errorf("what was being written while the store restarted: %d bytes, %v", len(got), err)
			}
			if !bytes.Equal(read, pattern(1, mib)) {
				t.Error("what was being read while the store restarted has changed")
			}
			for i := 3; i < 7; i++ {
				if got, err := u.get(put(i)); err != nil || !bytes.Equal(got, pattern(i, mib)) {
					t.Errorf("object %d, put after the restart: %d bytes, %v", i, len(got), err)
				}
			}
			if len(r.lost) > 0 {
				t.Errorf("lost: %+v", r.lost)
			}
			r.close(true)
		})
	}
}
