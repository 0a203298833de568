package oplog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/testkit"
)

func mustOpen(t interface{ Fatalf(string, ...any) }, dir string, opt Options) *Log {
	l, err := Open(dir, opt)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return l
}

// TestModel compares a log with a list, over appends, frees, upkeep and reopenings.
func TestModel(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "oplog")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		opt := Options{MinSegment: 4096, MaxSegment: 4096 << rapid.IntRange(0, 3).Draw(t, "growth"), Reuse: 4096 << rapid.IntRange(0, 4).Draw(t, "reuse")}
		opt.Unlink, opt.Memory = rapid.Bool().Draw(t, "unlink"), 4096<<rapid.IntRange(0, 4).Draw(t, "memory")
		l := mustOpen(t, dir, opt)
		defer func() { l.Close() }()
		type row struct {
			cookie uint64
			rec    []byte
		}
		var live []row // in the order of the log
		check := func() {
			var got []row
			if err := l.Replay(func(c uint64, rec []byte) bool {
				got = append(got, row{c, bytes.Clone(rec)})
				return true
			}); err != nil {
				t.Fatalf("replay: %v", err)
			}
			same := slices.EqualFunc(got, live, func(a, b row) bool { return a.cookie == b.cookie && bytes.Equal(a.rec, b.rec) })
			if !same {
				t.Fatalf("replay gave %d records, %d are live", len(got), len(live))
			}
			if n := l.Stats().Records; n != len(live) {
				t.Fatalf("%d counted, %d live", n, len(live))
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "action") {
			case 0, 1, 2:
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					n := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 9000)).Draw(t, "size")
					rec := bytes.Repeat([]byte{byte(len(live))}, n)
					c, err := l.Append(rec)
					if err != nil || c == 0 {
						t.Fatalf("append: %d, %v", c, err)
					}
					live = append(live, row{c, rec})
				}
			case 3, 4:
				for range min(len(live), rapid.IntRange(0, 30).Draw(t, "frees")) {
					i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
					c := live[i].cookie
					live = slices.Delete(live, i, i+1)
					if err := l.Free(c); err != nil {
						t.Fatalf("free: %v", err)
					}
					if err := l.Free(c); err != nil && !errors.Is(err, ErrNoRecord) {
						t.Fatalf("free again: %v", err)
					}
				}
			case 5:
				budget := rapid.IntRange(1, 10_000).Draw(t, "budget")
				_, err := l.Tend(budget, func(c uint64, rec []byte) error {
					i := slices.IndexFunc(live, func(r row) bool { return r.cookie == c })
					if i < 0 || !bytes.Equal(live[i].rec, rec) {
						t.Fatalf("%#x is moved, which is not live or differs", c)
					}
					nc, err := l.Append(rec)
					live = append(slices.Delete(live, i, i+1), row{nc, bytes.Clone(rec)})
					return err
				})
				if err != nil {
					t.Fatalf("tend: %v", err)
				}
			case 6:
				if len(live) > 0 {
					r := rapid.SampledFrom(live).Draw(t, "read")
					got, err := l.Read(r.cookie)
					if err != nil || !bytes.Equal(got, r.rec) {
						t.Fatalf("read %#x: %d bytes, want %d: %v", r.cookie, len(got), len(r.rec), err)
					}
				}
			case 7:
				if opt.Unlink {
					continue // it cannot be opened again
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				l = mustOpen(t, dir, opt)
				// Every record in a file counts as live again; free ones are freed again.
				known := make(map[uint64]bool)
				for _, r := range live {
					known[r.cookie] = true
				}
				var dead []uint64
				if err := l.Replay(func(c uint64, _ []byte) bool {
					if !known[c] {
						dead = append(dead, c)
					}
					delete(known, c)
					return true
				}); err != nil || len(known) > 0 {
					t.Fatalf("after reopening %d records are missing: %v", len(known), err)
				}
				for _, c := range dead {
					if err := l.Free(c); err != nil {
						t.Fatal(err)
					}
				}
			}
			check()
		}
	})
}

func TestDeadSegmentsAreDeletedAndFewAreMapped(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{MinSegment: 64 << 10, MaxSegment: 64 << 10, Reuse: 64 << 10})
	defer l.Close()
	var cookies []uint64
	for range 10_000 {
		c, err := l.Append(make([]byte, 150))
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, c)
	}
	before := files(t, dir)
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(maps), dir); n < 1 || n > 2 {
		t.Errorf("%d segments are mapped", n)
	}
	for _, c := range cookies[:9_990] {
		if err := l.Free(c); err != nil {
			t.Fatal(err)
		}
	}
	if after := files(t, dir); before < 20 || after != 3 {
		t.Errorf("%d files before, %d after all but the last records were freed (one is the spare, one the reserve)", before, after)
	}
	if err := l.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

func files(t *testing.T, dir string) int {
	t.Helper()
	return len(names(t, dir))
}

func TestUnlinkedLogLeavesNothingAndStillReads(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{MinSegment: 16 << 10, MaxSegment: 16 << 10, Unlink: true, Memory: 64 << 10, Reuse: 16 << 10})
	var cookies []uint64
	for i := range uint64(500) {
		c, err := l.Append(numbered(i))
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, c)
	}
	if n := files(t, dir); n != 0 {
		t.Fatalf("%d files have names", n)
	}
	for i, c := range cookies {
		if got, err := l.Read(c); err != nil || !bytes.Equal(got, numbered(uint64(i))) {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	i := uint64(0)
	if err := l.Replay(func(_ uint64, rec []byte) bool {
		if !bytes.Equal(rec, numbered(i)) {
			t.Fatalf("record %d differs", i)
		}
		i++
		return true
	}); err != nil || i != 500 {
		t.Fatalf("%d records, %v", i, err)
	}
	if err := l.Remove(); err != nil {
		t.Fatal(err)
	}
}

func TestMisuseIsNamed(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	if _, err := l.Append(make([]byte, MaxRecord+1)); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("too large: %v", err)
	}
	c, err := l.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if rec, err := l.Read(c); err != nil || len(rec) != 0 {
		t.Errorf("an empty record: %v, %v", rec, err)
	}
	for _, bad := range []uint64{0, 1, c + 1, c + 8, c + 1<<20, c + 1<<40, ^uint64(0)} {
		if _, err := l.Read(bad); !errors.Is(err, ErrNoRecord) {
			t.Errorf("read %#x: %v", bad, err)
		}
		if err := l.Free(bad); !errors.Is(err, ErrNoRecord) {
			t.Errorf("free %#x: %v", bad, err)
		}
		if err := l.Lapse(bad); !errors.Is(err, ErrNoRecord) {
			t.Errorf("lapse %#x: %v", bad, err)
		}
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	_, a := l.Append(nil)
	_, r := l.Read(c)
	_, te := l.Tend(1, nil)
	for _, err := range []error{a, r, te, l.Free(c), l.Lapse(c), l.Replay(nil)} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	}
}

// The disk is full when the second segment should be made: nothing is lost, and once there is room the log goes
// on.
func TestFullDiskIsTypedAndSurvived(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{MinSegment: 8 << 10, MaxSegment: 8 << 10})
	defer l.Close()
	n := 0
	for ; l.Stats().Segments < 2; n++ {
		if _, err := l.Append(numbered(uint64(n))); err != nil {
			t.Fatal(err)
		}
	}
	full := diskError(fmt.Errorf("fallocate: %w", unix.ENOSPC), dir, 4096)
	if !errors.Is(full, errs.ErrOutOfDisk) || !strings.Contains(full.Error(), "4096 bytes") {
		t.Fatalf("ENOSPC gives %v", full)
	}
	// A missing directory stands for a disk that accepts no file.
	moved := dir + ".moved"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for range 100 {
		if _, err := l.Append(numbered(uint64(n))); err != nil {
			failed++
			continue
		}
		n++
	}
	if failed == 0 {
		t.Fatal("no append failed")
	}
	if err := os.Rename(moved, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(numbered(uint64(n))); err != nil {
		t.Fatalf("there is room again: %v", err)
	}
	i := uint64(0)
	if err := l.Replay(func(_ uint64, rec []byte) bool {
		if !bytes.Equal(rec, numbered(i)) {
			t.Fatalf("record %d differs", i)
		}
		i++
		return true
	}); err != nil || int(i) != n+1 {
		t.Fatalf("%d records of %d: %v", i, n+1, err)
	}
}

// A child that appends is killed with SIGKILL, four times over one directory: each time the log holds
// a prefix of what it appended, with every acknowledged record.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(0)
	for round := range 4 {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "OPLOG_TEST_CHILD="+dir, fmt.Sprintf("OPLOG_TEST_FIRST=%d", next))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, out, int64(8*(500+300*round))); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		acked, _ := acks(out)
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child was not killed")
		}
		l := mustOpen(t, dir, Options{})
		i := uint64(0)
		if err := l.Replay(func(_ uint64, rec []byte) bool {
			if !bytes.Equal(rec, numbered(i)) {
				t.Fatalf("round %d: record %d differs", round, i)
			}
			i++
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if i <= acked {
			t.Fatalf("round %d: %d records, %d was acknowledged", round, i, acked)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		next = i
	}
}

func TestDamageIsToldFromATornTail(t *testing.T) {
	for _, c := range []struct {
		name string
		at   func(size, end int) int
		want error
		all  bool
	}{
		{"a record in the middle", func(_, end int) int { return end / 2 }, ErrCorrupt, false},
		{"the header", func(int, int) int { return 3 }, ErrCorrupt, false},
		{"the seal", func(int, int) int { return 17 }, ErrCorrupt, false},
		{"behind the last record", func(_, end int) int { return end + 100 }, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			l := mustOpen(t, dir, Options{MinSegment: 64 << 10})
			for i := range uint64(50) {
				if _, err := l.Append(numbered(i)); err != nil {
					t.Fatal(err)
				}
			}
			size, end := l.active.size, l.off
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			flip(t, filepath.Join(dir, segmentName(1)), c.at(size, end))
			l = mustOpen(t, dir, Options{})
			defer l.Close()
			i := uint64(0)
			err := l.Replay(func(_ uint64, rec []byte) bool {
				if !bytes.Equal(rec, numbered(i)) {
					t.Fatalf("record %d differs", i)
				}
				i++
				return true
			})
			if !errors.Is(err, c.want) || (i == 50) != c.all {
				t.Fatalf("%d records, error %v", i, err)
			}
			if files(t, dir) != 1 {
				t.Fatal("the damaged file was deleted")
			}
		})
	}
}

func flip(t *testing.T, path string, at int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 0x10
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
