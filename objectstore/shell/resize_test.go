package shell

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"mobula/objectstore"
	"mobula/objectstore/index"
	"mobula/objectstore/segment"
)

// A store that is started with another size keeps every object: at the new size where all fit, else at the old.
func TestObjectsSurviveAnotherSize(t *testing.T) {
	const was, objects = 16 * mib, 10
	for name, c := range map[string]struct {
		asked, want uint64
		client      bool // of before is there still
	}{
		"as before":            {was, was, false},
		"larger":               {2 * was, 2 * was, false},
		"smaller, and all fit": {12 * mib, 12 * mib, false},
		"too small":            {4 * mib, was, false},
		"larger, but mapped":   {2 * was, was, true},
		"smaller, but mapped":  {12 * mib, was, true},
	} {
		t.Run(name, func(t *testing.T) {
			mem := segment.Config{Path: filepath.Join("/dev/shm", "mobula-test-size-"+filepath.Base(t.TempDir())+"-"+name[:3])}
			t.Cleanup(func() {
				_ = removeAll(mem.Path)
			})
			scfg := spillConfig(t.TempDir())
			scfg.Restarts, scfg.Keep = true, true
			r := newRig(t, testConfig(was), scfg, mem)
			u := r.join(7)
			for i := range objects {
				u.put(put(i), pattern(i, mib))
			}
			if !c.client {
				r.post(objectstore.ClientGone{Client: 7})
			}
			r.stats() // it has happened
			r.close(false)

			r = newRig(t, testConfig(c.asked), scfg, mem)
			defer r.close(true)
			if got := r.mem.Size(); got != c.want || (r.mem.Kept != nil) != (c.want != c.asked) || r.mem.Removed != nil {
				t.Fatalf("a segment of %d bytes, want %d; kept: %v; removed: %v", got, c.want, r.mem.Kept, r.mem.Removed)
			}
			r.post(objectstore.ClientGone{Client: 7})
			u = r.join(8)
			for i := range objects {
				b, err := getOrLost(r, u, put(i))
				if err != nil || !bytes.Equal(b, pattern(i, mib)) {
					t.Errorf("object %d of %d bytes: %v", i, len(b), err)
				}
				u.unpin(put(i))
			}
			u.put(put(100), pattern(100, mib))
			if s := r.stats(); s.Limit != c.want || s.Lost != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A node that was killed between the two steps of a change of size has left a file that is longer than its index says.
func TestAChangeOfSizeThatWasInterrupted(t *testing.T) {
	for name, leave := range map[string]func(m *Memory) error{
		"before it grew":   func(m *Memory) error { return m.resize(32 * mib) },
		"before it shrank": func(m *Memory) error { return m.Index.Resize(12 * mib) },
	} {
		mem := segment.Config{Path: filepath.Join(t.TempDir(), "segment")}
		scfg := spillConfig(t.TempDir())
		scfg.Restarts, scfg.Keep = true, true
		r := newRig(t, testConfig(16*mib), scfg, mem)
		u := r.join(7)
		u.put(put(1), pattern(1, mib))
		r.post(objectstore.ClientGone{Client: 7})
		r.stats()
		if err := r.store.Stop(context.Background()); err != nil { // which waits for reservations under way
			t.Fatal(err)
		}
		if err := leave(r.mem); err != nil {
			t.Fatal(err)
		}
		r.close(false)
		r = newRig(t, testConfig(16*mib), scfg, mem)
		u = r.join(8)
		if b, err := getOrLost(r, u, put(1)); err != nil || !bytes.Equal(b, pattern(1, mib)) || r.mem.Size() != 16*mib {
			t.Errorf("%s: %d bytes, %v, in a segment of %d", name, len(b), err, r.mem.Size())
		}
		r.close(true)
	}
}

// What an earlier node left and cannot be used goes, and the reason is told.
func TestDamageIsRemovedWithAWord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segment")
	m, err := OpenMemory(segment.Config{Path: path, Size: mib}, index.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Removed != nil || m.Kept != nil {
		t.Errorf("of a new one: %v, %v", m.Removed, m.Kept)
	}
	if err := m.Close(false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".index", bytes.Repeat([]byte{0xee}, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err = OpenMemory(segment.Config{Path: path, Size: mib}, index.Owner{}); err != nil || m.Removed == nil {
		t.Fatalf("of a damaged one: %v", err)
	}
	if err := m.Close(true); err != nil {
		t.Fatal(err)
	}
}
