package format

import (
	"bytes"
	"encoding/binary"
	"testing"

	"mobula/internal/ids"
)

// A file that release 0.4 wrote is read: its ids had 16 bytes, of which the job was 4.
func TestAFileOfRelease04(t *testing.T) {
	le := binary.LittleEndian
	want := make([]Entry, 300)
	var index []byte
	for i := range want {
		e := &want[i]
		*e = Entry{ID: ids.RootTask(7, uint64(i)).Put(uint32(i)), Attempt: uint32(i), Off: headerSize + uint64(i)*64, Size: 64, CRC: uint32(i) * 3}
		short, ok := e.ID.Task.Short()
		if !ok {
			t.Fatal("release 0.4 cannot name it")
		}
		index = append(index, short[:]...)
		index = le.AppendUint32(index, e.ID.Index)
		index = le.AppendUint32(index, e.Attempt)
		index = le.AppendUint64(index, e.Off)
		index = le.AppendUint64(index, e.Size)
		index = le.AppendUint32(index, e.CRC)
	}
	index = append(le.AppendUint32(index, Checksum(index)), endMark...)
	off := uint64(headerSize + 300*64)
	head := AppendHeader(nil, Header{Session: "s", File: 9, Count: 300, IndexOff: off, Size: Align(off+uint64(len(index)), Page)})
	le.PutUint32(head[8:], shortIDs)
	le.PutUint32(head[len(head)-4:], Checksum(head[:len(head)-4]))
	h, err := DecodeHeader(head)
	if err != nil || h.IndexLen() != uint64(len(index)) || h.File != 9 {
		t.Fatalf("%+v, %v", h, err)
	}
	got, err := DecodeIndex(index, h)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("entry %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if again := AppendIndex(nil, got); bytes.Equal(again, index) {
		t.Error("it is still written with short ids")
	}
}
