package index

import (
	"encoding/binary"
	"math/rand"
	"path/filepath"
	"testing"

	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/record"
)

// encodeNarrow is the half that release 0.4 wrote for a record whose payload is in the half.
func encodeNarrow(dst []byte, gen uint32, r *record.Record) {
	le := binary.LittleEndian
	clear(dst)
	le.PutUint32(dst[4:], gen)
	dst[8] = byte(r.State)
	for bit, on := range map[byte]bool{flagRes: r.Resident, flagSpill: r.Spilled, flagSlab: r.Block.Slab, flagPacked: r.Packed, flagCopy: r.Copy} {
		if on {
			dst[9] |= bit
		}
	}
	le.PutUint32(dst[10:], uint32(len(r.Path)+len(r.Payload)))
	short, _ := r.ID.Task.Short()
	copy(dst[22:], short[:])
	le.PutUint32(dst[38:], r.ID.Index)
	le.PutUint64(dst[46:], uint64(r.Client))
	if r.State == record.StateClient {
		le.PutUint32(dst[42:], uint32(r.Job))
		le.PutUint32(dst[54:], uint32(r.PID))
	} else {
		le.PutUint32(dst[42:], r.Attempt)
		le.PutUint32(dst[54:], uint32(r.Job))
	}
	le.PutUint32(dst[58:], r.File)
	le.PutUint64(dst[62:], r.Block.Off)
	le.PutUint64(dst[70:], r.Block.Size)
	le.PutUint64(dst[78:], r.Size)
	le.PutUint16(dst[86:], r.Loc.Target)
	le.PutUint64(dst[88:], r.Loc.File)
	le.PutUint64(dst[96:], r.Loc.Off)
	le.PutUint64(dst[104:], r.Loc.Size)
	le.PutUint32(dst[112:], r.Loc.CRC)
	le.PutUint16(dst[116:], uint16(len(r.Path)))
	copy(dst[shortIDsSize+copy(dst[shortIDsSize:], r.Path):], r.Payload)
	checksum(dst)
}

// An index of release 0.4 is read as it is. Records are rewritten in the present layout one by one, so a node that is killed at any
// moment leaves both layouts side by side.
func TestAnIndexOfRelease04(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	x := open(t, path)
	rnd := rand.New(rand.NewSource(2))
	want := map[uint32]record.Record{}
	for slot := range uint32(200) {
		r := randomRecord(rnd)
		for r.Block.Size == 0 || len(r.Path)+len(r.Payload) > halfSize-shortIDsSize {
			r = randomRecord(rnd)
		}
		r.Job &= 1<<32 - 1
		r.Block.Owner = alloc.Owner(r.Job)
		r.ID = ids.RootTask(r.Job, rnd.Uint64()).Put(slot)
		if err := x.Write(slot, &r); err != nil { // for its window
			t.Fatal(err)
		}
		encodeNarrow(x.half(slot, 0), 5, &r)
		encodeNarrow(x.half(slot, 1), 4, &r)
		want[slot] = r
	}
	head := make([]byte, 24)
	if _, err := x.file.ReadAt(head, 0); err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(head[8:], shortIDs)
	binary.LittleEndian.PutUint32(head[20:], crc(head[:20]))
	if _, err := x.file.WriteAt(head, 0); err != nil {
		t.Fatal(err)
	}
	reopen := func() {
		t.Helper()
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		x = open(t, path)
	}
	reopen()
	checkReplay(t, x, want)
	if o, err := ReadOwner(x.file); err != nil || o.shortIDs {
		t.Errorf("the header is still that of release 0.4: %+v, %v", o, err)
	}
	for slot := uint32(0); slot < 200; slot += 3 {
		r := randomRecord(rnd)
		if err := x.Write(slot, &r); err != nil {
			t.Fatal(err)
		}
		want[slot] = r
	}
	reopen()
	checkReplay(t, x, want)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}
