package storagetest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"mobula/internal/ids"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
)

// Subject is an implementation under test.
type Subject struct {
	Open func(t *testing.T, session string, bufs *storage.Buffers) storage.Storage
	// Damage changes a stored file behind the implementation's back.
	Damage func(t *testing.T, s storage.Storage, file uint64, change func([]byte) []byte)
}

// Objects makes one object of each size, in page-aligned memory.
func Objects(sizes ...int) []format.Object {
	out := make([]format.Object, len(sizes))
	for i, n := range sizes {
		data := Pages(n)
		r := rand.NewChaCha8([32]byte{byte(i), byte(n), byte(n >> 8)})
		_, _ = r.Read(data)
		out[i] = format.Object{ID: ids.Derive(ids.RootTask(1, 2), uint64(i)).Return(i), Data: data}
	}
	return out
}

// Pages is page-aligned memory.
func Pages(n int) []byte {
	b := make([]byte, n+2*format.Page)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & (format.Page - 1))
	return b[skip:][:n:n]
}

// Run runs the conformance test.
func Run(t *testing.T, sub Subject) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Subject, storage.Storage, *storage.Buffers)
	}{
		{"RoundTrip", roundTrip},
		{"ManyBatches", manyBatches},
		{"ReadMany", readMany},
		{"Missing", missing},
		{"Damage", damage},
		{"ListAndDelete", listAndDelete},
		{"PutAgain", putAgain},
		{"Sessions", sessions},
		{"Concurrent", concurrent},
		{"Cancelled", cancelled},
		{"Probe", probe},
	} {
		t.Run(c.name, func(t *testing.T) {
			bufs := storage.NewBuffers(2)
			s := sub.Open(t, "one", bufs)
			defer func() {
				if err := s.Close(true); err != nil {
					t.Errorf("close: %v", err)
				}
				if n := bufs.Lent(); n != 0 {
					t.Errorf("%d buffers were not given back", n)
				}
				bufs.Trim()
			}()
			c.run(t, sub, s, bufs)
		})
	}
}

func put(t *testing.T, s storage.Storage, bufs *storage.Buffers, file uint64, objs []format.Object) []format.Entry {
	t.Helper()
	st := format.NewStream(format.Header{Session: "one", File: file}, objs, bufs)
	if err := s.Put(context.Background(), file, st); err != nil {
		t.Fatalf("put file %d: %v", file, err)
	}
	return slices.Clone(st.Entries())
}

func read(t *testing.T, s storage.Storage, file uint64, e format.Entry, want []byte, dst []byte) {
	t.Helper()
	crc, err := s.Read(context.Background(), file, e.Off, dst)
	if err != nil {
		t.Fatalf("read %+v: %v", e, err)
	}
	if crc != e.CRC || !bytes.Equal(dst, want) {
		t.Fatalf("read %+v: checksum %08x, bytes equal: %v", e, crc, bytes.Equal(dst, want))
	}
}

func roundTrip(t *testing.T, _ Subject, s storage.Storage, bufs *storage.Buffers) {
	objs := Objects(0, 1, 100, 4095, 4096, 4097, format.Large-1, format.Large, format.Large+1, 1<<20)
	entries := put(t, s, bufs, 7, objs)
	for i, e := range entries {
		read(t, s, 7, e, objs[i].Data, Pages(len(objs[i].Data)))
		read(t, s, 7, e, objs[i].Data, make([]byte, len(objs[i].Data)+3)[3:]) // anywhere in memory
	}
	part := make([]byte, 1000) // a range inside an object
	if _, err := s.Read(context.Background(), 7, entries[9].Off+12345, part); err != nil || !bytes.Equal(part, objs[9].Data[12345:13345]) {
		t.Errorf("ranged read: %v", err)
	}
	h, got, err := storage.Index(context.Background(), s, 7)
	if err != nil || h.File != 7 || h.Session != "one" || !slices.Equal(got, entries) {
		t.Errorf("index: %+v, %d entries, %v", h, len(got), err)
	}
}

func manyBatches(t *testing.T, _ Subject, s storage.Storage, bufs *storage.Buffers) {
	objs := Objects(3*format.BatchBytes+777, 50, format.BatchBytes, 9<<20)
	for i, e := range put(t, s, bufs, 1, objs) {
		read(t, s, 1, e, objs[i].Data, Pages(len(objs[i].Data)))
	}
}

func readMany(t *testing.T, sub Subject, s storage.Storage, bufs *storage.Buffers) {
	sizes := []int{10, 5000, format.Large, 0, format.Large + 100, 64, 300_000, 4096, 100_000, 1, 100_001, 12_288}
	objs := Objects(sizes...)
	entries := put(t, s, bufs, 2, objs)
	for _, shift := range []int{0, 64, 1} { // of the memory that is read into
		for from := range sizes {
			for _, step := range []int{1, 2, 3} { // with objects left out
				var parts []storage.Part
				var of []int
				for i := from; i < len(sizes); i += step {
					parts = append(parts, storage.Part{Off: entries[i].Off, Dst: Pages(sizes[i] + shift)[shift:]})
					of = append(of, i)
				}
				if err := s.ReadMany(context.Background(), 2, parts); err != nil {
					t.Fatalf("read objects %v: %v", of, err)
				}
				for k, i := range of {
					if parts[k].CRC != entries[i].CRC || !bytes.Equal(parts[k].Dst, objs[i].Data) {
						t.Fatalf("read objects %v shifted by %d: object %d differs", of, shift, i)
					}
				}
			}
		}
	}
	one := []storage.Part{{Off: 0, Dst: make([]byte, 10)}}
	if err := s.ReadMany(context.Background(), 42, one); !errors.Is(err, spill.ErrMissing) {
		t.Errorf("a file that never was: got %v, want ErrMissing", err)
	}
	sub.Damage(t, s, 2, func(p []byte) []byte { return p[:entries[8].Off+5000] })
	both := []storage.Part{{Off: entries[7].Off, Dst: make([]byte, sizes[7])}, {Off: entries[8].Off, Dst: make([]byte, sizes[8])}}
	if err := s.ReadMany(context.Background(), 2, both); !errors.Is(err, spill.ErrCorrupt) {
		t.Errorf("over the end of a truncated file: got %v, want ErrCorrupt", err)
	}
}

func missing(t *testing.T, _ Subject, s storage.Storage, _ *storage.Buffers) {
	if _, err := s.Read(context.Background(), 42, 0, make([]byte, 10)); !errors.Is(err, spill.ErrMissing) {
		t.Errorf("read of a file that never was: got %v, want ErrMissing", err)
	}
}

func damage(t *testing.T, sub Subject, s storage.Storage, bufs *storage.Buffers) {
	objs := Objects(2<<20, 5000, 5<<20)
	entries := put(t, s, bufs, 3, objs)
	sub.Damage(t, s, 3, func(p []byte) []byte { p[entries[0].Off+1000] ^= 4; return p })
	dst := Pages(2 << 20)
	if crc, err := s.Read(context.Background(), 3, entries[0].Off, dst); err != nil || crc == entries[0].CRC {
		t.Errorf("flipped bit: checksum %08x of %08x, %v: it must differ", crc, entries[0].CRC, err)
	}
	read(t, s, 3, entries[1], objs[1].Data, make([]byte, 5000)) // its neighbour is intact
	sub.Damage(t, s, 3, func(p []byte) []byte { return p[:entries[2].Off+(1<<20)+5] })
	if _, err := s.Read(context.Background(), 3, entries[2].Off, Pages(5<<20)); !errors.Is(err, spill.ErrCorrupt) {
		t.Errorf("read over the end of a truncated file: got %v, want ErrCorrupt", err)
	}
	if _, _, err := storage.Index(context.Background(), s, 3); !errors.Is(err, spill.ErrCorrupt) {
		t.Errorf("index of a truncated file: got %v, want ErrCorrupt", err)
	}
	sub.Damage(t, s, 3, func([]byte) []byte { return nil })
	if _, err := s.Read(context.Background(), 3, 0, make([]byte, 8)); !errors.Is(err, spill.ErrCorrupt) {
		t.Errorf("read of an empty file: got %v, want ErrCorrupt", err)
	}
}

func listAndDelete(t *testing.T, _ Subject, s storage.Storage, bufs *storage.Buffers) {
	ctx := context.Background()
	want := map[uint64]uint64{}
	for _, f := range []uint64{1, 2, 1 << 40} {
		objs := Objects(int(f % 1000))
		_, want[f] = format.Sizes(objs)
		put(t, s, bufs, f, objs)
	}
	list := func() map[uint64]uint64 {
		files, err := s.List(ctx)
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		m := map[uint64]uint64{}
		for _, f := range files {
			m[f.Number] = f.Size
		}
		return m
	}
	equal := func(a, b map[uint64]uint64) bool {
		if len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if b[k] != v {
				return false
			}
		}
		return true
	}
	if got := list(); !equal(got, want) {
		t.Fatalf("list is %v, want %v", got, want)
	}
	for range 2 { // the second time there is nothing to delete
		if err := s.Delete(ctx, 2); err != nil {
			t.Fatalf("delete: %v", err)
		}
	}
	delete(want, 2)
	if got := list(); !equal(got, want) {
		t.Fatalf("list after delete is %v, want %v", got, want)
	}
}

func putAgain(t *testing.T, _ Subject, s storage.Storage, bufs *storage.Buffers) {
	put(t, s, bufs, 5, Objects(1<<20))
	objs := Objects(10)
	e := put(t, s, bufs, 5, objs)[0]
	read(t, s, 5, e, objs[0].Data, make([]byte, 10))
	files, err := s.List(context.Background())
	if err != nil || len(files) != 1 || files[0].Size != 2*format.Page {
		t.Errorf("a smaller file in the place of a larger one: %v, %v", files, err)
	}
}

func sessions(t *testing.T, sub Subject, s storage.Storage, bufs *storage.Buffers) {
	put(t, s, bufs, 1, Objects(10))
	other := sub.Open(t, "other", bufs)
	if files, err := other.List(context.Background()); err != nil || len(files) != 0 {
		t.Errorf("a new session sees %v, %v", files, err)
	}
	if err := other.Close(true); err != nil {
		t.Errorf("close: %v", err)
	}
	if files, err := s.List(context.Background()); err != nil || len(files) != 1 {
		t.Errorf("after another session came and went this one has %v, %v", files, err)
	}
}

func concurrent(t *testing.T, _ Subject, s storage.Storage, bufs *storage.Buffers) {
	objs := Objects(100, 300_000, 5<<20)
	var wg sync.WaitGroup
	for f := range uint64(4) {
		wg.Go(func() {
			st := format.NewStream(format.Header{Session: "one", File: f}, objs, bufs)
			if err := s.Put(context.Background(), f, st); err != nil {
				t.Errorf("put %d: %v", f, err)
				return
			}
			for i, e := range st.Entries() {
				dst := make([]byte, len(objs[i].Data))
				if crc, err := s.Read(context.Background(), f, e.Off, dst); err != nil || crc != e.CRC {
					t.Errorf("file %d object %d: checksum %08x, want %08x, %v", f, i, crc, e.CRC, err)
				}
			}
		})
	}
	wg.Wait()
}

func cancelled(t *testing.T, _ Subject, s storage.Storage, bufs *storage.Buffers) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	st := format.NewStream(format.Header{Session: "one", File: 1}, Objects(1<<20), bufs)
	if err := s.Put(ctx, 1, st); !errors.Is(err, context.Canceled) {
		t.Errorf("put with a cancelled context: %v", err)
	}
	if files, err := s.List(context.Background()); err != nil || len(files) != 0 {
		t.Errorf("a cancelled put left %v, %v", files, err)
	}
}

func probe(t *testing.T, _ Subject, s storage.Storage, _ *storage.Buffers) {
	for _, write := range []bool{false, true} {
		c, err := s.Probe(context.Background(), write)
		if err != nil || c.Used > c.Total {
			t.Errorf("probe(%v): %+v, %v", write, c, err)
		}
	}
	if files, err := s.List(context.Background()); err != nil || len(files) != 0 {
		t.Errorf("probes left %v, %v", files, err)
	}
}
