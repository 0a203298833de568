package oplog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// image is a segment's bytes with n records, sealed or not.
func image(n int, sealed bool) []byte {
	b := make([]byte, 16<<10)
	putHeader(b, 1)
	off := headerSize
	for i := range uint64(n) {
		rec := numbered(i)
		putRecord(b, 1, off, rec)
		off += span(len(rec))
	}
	if sealed {
		putSeal(b, 1, off)
	}
	return b
}

// FuzzReplay opens a log over arbitrary bytes. It must not panic, and for a good image that was cut or changed it
// must give exactly a prefix of the records.
func FuzzReplay(f *testing.F) {
	f.Add(image(5, true), 200, byte(0xff))
	f.Add(image(20, false), 3000, byte(1))
	f.Add(image(0, false), 64, byte(7))
	f.Add([]byte{}, 0, byte(0))
	f.Add(image(3, false)[:70], 65, byte(255))
	f.Fuzz(func(t *testing.T, raw []byte, at int, change byte) {
		replayBytes(t, raw) // whatever it gives
		good := image(20, at%2 == 0)
		good = good[:len(good)-len(raw)%len(good)]
		if i := at; i >= 0 && i < len(good) {
			good[i] ^= change
		}
		for i, rec := range replayBytes(t, good) {
			if !bytes.Equal(rec, numbered(uint64(i))) {
				t.Fatalf("record %d of a damaged log is not the one that was appended", i)
			}
		}
	})
}

func replayBytes(t *testing.T, raw []byte) (out [][]byte) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, segmentName(1)), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir, Options{MinSegment: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var cookies []uint64
	err = l.Replay(func(c uint64, rec []byte) bool {
		out = append(out, bytes.Clone(rec))
		cookies = append(cookies, c)
		return true
	})
	if err != nil && !errors.Is(err, ErrCorrupt) {
		t.Fatalf("replay: %v", err)
	}
	for i, c := range cookies {
		if rec, err := l.Read(c); err != nil || !bytes.Equal(rec, out[i]) {
			t.Fatalf("read of a record that was replayed: %v", err)
		}
		if err := l.Free(c); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func BenchmarkAppend150(b *testing.B) {
	l, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Remove()
	rec := make([]byte, 150)
	var cs []uint64
	b.SetBytes(150)
	b.ReportAllocs()
	for b.Loop() {
		c, err := l.Append(rec)
		if err != nil {
			b.Fatal(err)
		}
		if cs = append(cs, c); len(cs) == 10_000 { // a job of ten thousand tasks under way
			for _, c := range cs {
				if err := l.Free(c); err != nil {
					b.Fatal(err)
				}
			}
			cs = cs[:0]
		}
	}
}
