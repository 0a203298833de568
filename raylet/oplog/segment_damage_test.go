package oplog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// In the log of a killed process a torn record at the end is cut off, and damage before valid records is reported.
func TestDamageInTheMiddleIsNoTornTail(t *testing.T) {
	for _, c := range []struct {
		name string
		at   int64
		want error
	}{{"middle", headerSize + prefix, ErrCorrupt}, {"length", headerSize, ErrCorrupt}, {"tail", headerSize + 9*24 + prefix, nil}} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				if _, err := l.Append([]byte("0123456789")); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(filepath.Join(dir, segmentName(1))) // as a kill leaves it
			if err = errors.Join(err, l.Close()); err != nil {
				t.Fatal(err)
			}
			data[c.at] ^= 0xff
			dir = t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, segmentName(1)), data, 0o600); err != nil {
				t.Fatal(err)
			}
			if l, err = Open(dir, Options{}); err != nil {
				t.Fatal(err)
			}
			n := 0
			if err := l.Replay(func(uint64, []byte) bool { n++; return true }); !errors.Is(err, c.want) || c.want == nil && n != 9 {
				t.Errorf("replay of %d records: %v, want %v", n, err, c.want)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
