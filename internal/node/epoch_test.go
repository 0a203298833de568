package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobula/internal/errs"
)

func TestEveryLifeOfADirectoryHasALargerEpoch(t *testing.T) {
	dir := t.TempDir()
	old := uint64(time.Now().UnixNano()) // an id that release 0.3 gave out
	last := old
	for range 3 {
		e, err := nextEpoch(dir, true)
		if err != nil || e <= last || e&(1<<epochShift-1) != 0 {
			t.Fatalf("%d after %d: %v", e, last, err)
		}
		last = e + 1<<20 // clients of that life
	}
}

// The count is the directory's: what the wall clock says at a later start does not matter.
func TestAnEpochIsCountedAndNotRead(t *testing.T) {
	dir := t.TempDir()
	for was, want := range map[string]uint64{"1": 2 << epochShift, "4000000000": 4_000_000_001 << epochShift} { // 1970, and the year 2514
		if err := writeDurably(filepath.Join(dir, epochName), was+"\n"); err != nil {
			t.Fatal(err)
		}
		if e, err := nextEpoch(dir, true); err != nil || e != want {
			t.Errorf("after %s: %d, %v; want %d", was, e, err, want)
		}
	}
}

func TestADamagedEpochIsNamed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, epochName)
	for _, text := range []string{"", "x", "4294967295"} { // the last leaves no room for ids
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := nextEpoch(dir, true); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
