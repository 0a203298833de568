package index

import (
	"bytes"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/record"
	"mobula/objectstore/spill"
)

const segmentSize = 1 << 30

func open(t testing.TB, path string) *Index {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Open(f, Owner{Segment: segmentSize})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func randomRecord(rnd *rand.Rand) record.Record {
	const most = 1<<48 - 1 // of a size or an offset
	r := record.Record{State: record.State(1 + rnd.Intn(int(record.StateEnd)-1)), ID: ids.RootTask(3, rnd.Uint64()).Put(rnd.Uint32() >> 1), Attempt: rnd.Uint32(),
		Client: ids.ClientID(rnd.Uint64()), Resident: rnd.Intn(2) == 0, File: rnd.Uint32(),
		Block: alloc.Block{Off: rnd.Uint64() & most, Size: rnd.Uint64() & most, Slab: rnd.Intn(2) == 0}, Size: rnd.Uint64() & most, Spilled: rnd.Intn(2) == 0,
		Loc: spill.Location{Target: uint16(rnd.Uint32()), File: rnd.Uint64(), Off: rnd.Uint64() & most, Size: rnd.Uint64() & most, CRC: rnd.Uint32()}, Packed: rnd.Intn(2) == 0}
	if r.State == record.StateClient {
		r.Attempt, r.PID = 0, rnd.Int31()
	}
	r.Job = ids.JobID(rnd.Uint64())
	r.Block.Owner, r.Copy = alloc.Owner(r.Job), rnd.Intn(2) == 0
	r.Payload = make([]byte, []int{0, 1, inlineMax, inlineMax + 1, 4096, 50000}[rnd.Intn(6)])
	rnd.Read(r.Payload)
	if rnd.Intn(3) == 0 {
		r.Path = "/var/tmp/mobula-0/node/fallback-17"
	}
	return r
}

func same(a, b record.Record) bool {
	if len(a.Payload) == 0 && len(b.Payload) == 0 {
		a.Payload, b.Payload = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

// checkReplay compares what a replay gives with the truth.
func checkReplay(t testing.TB, x *Index, want map[uint32]record.Record) {
	t.Helper()
	got := x.Replay()
	if len(got) != len(want) || x.Torn() != 0 {
		t.Fatalf("%d records, %d torn, want %d whole", len(got), x.Torn(), len(want))
	}
	for _, e := range got {
		if !same(e.Record, want[e.Slot]) {
			t.Fatalf("slot %d: got %+v, want %+v", e.Slot, e.Record, want[e.Slot])
		}
	}
}

func TestRandomUpdatesSurviveReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	x := open(t, path)
	rnd := rand.New(rand.NewSource(1))
	want := map[uint32]record.Record{}
	for i := range 30000 {
		slot := uint32(rnd.Intn(4000))
		switch rnd.Intn(8) {
		case 0, 1:
			if err := x.Clear(slot); err != nil {
				t.Fatal(err)
			}
			delete(want, slot)
		case 2, 3: // an update that keeps the payload
			if r, ok := want[slot]; ok {
				r.State, r.Resident, r.PID = record.StateSealed, !r.Resident, 0
				u := r
				if u.Payload = nil; rnd.Intn(2) == 0 {
					r.Path = "elsewhere"
				}
				if r.Path == "" {
					r.Path = "here"
				}
				u.Path = r.Path
				if err := x.Write(slot, &u); err != nil {
					t.Fatal(err)
				}
				want[slot] = r
			}
		default:
			r := randomRecord(rnd)
			if err := x.Write(slot, &r); err != nil {
				t.Fatal(err)
			}
			want[slot] = r
		}
		if i%10000 == 5000 { // as after a panic of the writer
			checkReplay(t, x, want)
		}
	}
	pages := len(x.pages)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = open(t, path)
	checkReplay(t, x, want)
	if len(x.pages) != pages {
		t.Errorf("%d free overflow pages after reopening, %d before", len(x.pages), pages)
	}
	for slot := range want {
		if err := x.Clear(slot); err != nil {
			t.Fatal(err)
		}
	}
	checkReplay(t, x, nil)
	if len(x.pages) != len(x.over)*pagesPerWin {
		t.Errorf("%d overflow pages free of %d: some leaked", len(x.pages), len(x.over)*pagesPerWin)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// A crash in the middle of an update leaves any part of the half that was being written.
func TestATornUpdateLeavesTheOldRecord(t *testing.T) {
	x := open(t, filepath.Join(t.TempDir(), "index"))
	defer x.Close()
	rnd := rand.New(rand.NewSource(2))
	old, next := randomRecord(rnd), randomRecord(rnd)
	old.Payload, next.Payload = []byte("old"), []byte("next")
	if err := x.Write(5, &old); err != nil {
		t.Fatal(err)
	}
	which := x.slots[5].half ^ 1
	before := bytes.Clone(x.half(5, which))
	if err := x.Write(5, &next); err != nil {
		t.Fatal(err)
	}
	at := x.half(5, which)
	after := bytes.Clone(at)
	olds := 0
	for n := range halfSize {
		copy(at[:n], after[:n])
		copy(at[n:], before[n:])
		got := x.Replay()
		if len(got) != 1 || (!same(got[0].Record, old) && !same(got[0].Record, next)) {
			t.Fatalf("with %d bytes written the slot has %+v", n, got)
		}
		if same(got[0].Record, old) {
			olds++
		}
	}
	if olds < fixedSize {
		t.Fatalf("the old record was there only %d times", olds)
	}
}

func TestDamageLosesOnlyWhatItHits(t *testing.T) {
	x := open(t, filepath.Join(t.TempDir(), "index"))
	defer x.Close()
	rnd := rand.New(rand.NewSource(3))
	want := map[uint32]record.Record{}
	for slot := range uint32(200) {
		r := randomRecord(rnd)
		if err := x.Write(slot, &r); err != nil {
			t.Fatal(err)
		}
		want[slot] = r
	}
	for i := range 300 {
		w := x.windows[rnd.Intn(len(x.windows))]
		w[windowHead+rnd.Intn(windowSize-windowHead)] ^= 1 << rnd.Intn(8)
		got := x.Replay()
		if len(got) < len(want)-i-1 {
			t.Fatalf("%d flipped bits: %d of %d records left", i+1, len(got), len(want))
		}
		for _, e := range got {
			if !same(e.Record, want[e.Slot]) {
				t.Fatalf("slot %d came back changed: %+v", e.Slot, e.Record)
			}
		}
	}
}

func TestAnotherSegmentsIndexIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f, Owner{Segment: segmentSize / 2}); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("got %v, want ErrCorrupt", err)
	}
}

// FuzzOpen feeds any bytes as a file: an error or a consistent index, never a panic.
func FuzzOpen(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed")
	x := open(f, path)
	rnd := rand.New(rand.NewSource(4))
	for slot := range uint32(20) {
		r := randomRecord(rnd)
		if err := x.Write(slot, &r); err != nil {
			f.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), false, []byte{})
	f.Add(uint32(headerSize+70), true, []byte("\x00\x01\x02\x03 damage"))
	f.Add(uint32(headerSize+windowSize+70), false, []byte{1, 0, 0, 0, 255, 255})
	f.Fuzz(func(t *testing.T, at uint32, mended bool, damage []byte) {
		data := bytes.Clone(whole)
		copy(data[int(at)%len(data):], damage)
		if mended {
			mend(data)
		}
		path := filepath.Join(t.TempDir(), "index")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		x, err := Open(file, Owner{Segment: segmentSize})
		if err != nil {
			return
		}
		defer x.Close()
		first := x.Replay()
		want := map[uint32]record.Record{}
		for _, e := range x.Replay() {
			want[e.Slot] = e.Record
		}
		if len(first) != len(want) {
			t.Fatalf("two replays gave %d and %d records", len(first), len(want))
		}
		for i := range uint32(20) { // and it can be used
			r := randomRecord(rnd)
			if err := x.Write(i*3, &r); err != nil {
				t.Fatal(err)
			}
			want[i*3] = r
		}
		for _, e := range x.Replay() {
			if r, ok := want[e.Slot]; !ok || !same(e.Record, r) {
				t.Fatalf("slot %d: %+v, want %+v", e.Slot, e.Record, r)
			}
			delete(want, e.Slot)
		}
		if len(want) != 0 {
			t.Fatalf("%d records were lost", len(want))
		}
	})
}

// mend makes the checksum of every half in use right for what it holds, so that the
// fields behind it are looked at.
func mend(data []byte) {
	for w := headerSize; w+windowSize <= len(data); w += windowSize {
		for i := range slotsPerWin * 2 {
			b := data[w+windowHead+i*halfSize:][:halfSize]
			if !bytes.Equal(b, make([]byte, halfSize)) {
				checksum(b)
			}
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	x, err := NewMemfd(segmentSize)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	r := record.Record{State: record.StateSealed, ID: ids.RootTask(1, 1).Put(1), Resident: true, Size: 1000, Payload: []byte("meta")}
	for i := 0; b.Loop(); i++ {
		if err := x.Write(uint32(i&4095), &r); err != nil {
			b.Fatal(err)
		}
	}
}
