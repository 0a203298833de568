package segment

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/wire"
)

const mib = 1 << 20

func plenty(*os.File) (uint64, string) { return 1 << 40, "a test" }

func open(t testing.TB, cfg Config) *Segment {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(true) })
	return s
}

func mapping(t testing.TB, s *Segment) *Mapping {
	t.Helper()
	m, err := OpenMapping(s.File(), s.Size())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func view(t testing.TB, m *Mapping, off, size uint64, write bool) []byte {
	t.Helper()
	b, err := m.Map(wire.Extent{Off: off, Size: size}, write)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNothingIsReservedUntilAsked(t *testing.T) {
	for _, path := range []string{"", filepath.Join(t.TempDir(), "segment")} {
		s := open(t, Config{Path: path, Size: 1 << 40, Memory: plenty})
		if n, err := s.Blocks(); err != nil || n != 0 {
			t.Fatalf("%q: %d bytes taken at the start, %v", path, n, err)
		}
		if path != "" {
			continue // not on a tmpfs: the rest would take disk
		}
		if err := s.Reserve([]Range{{0, 8 * mib}, {100 * mib, 4 * mib}}); err != nil {
			t.Fatal(err)
		}
		if n, _ := s.Blocks(); n != 12*mib {
			t.Fatalf("12 MiB reserved, %d bytes taken", n)
		}
		if err := s.Punch([]Range{{2 * mib, 6 * mib}}); err != nil {
			t.Fatal(err)
		}
		if n, _ := s.Blocks(); n != 6*mib {
			t.Fatalf("6 of 12 MiB given back, %d bytes taken", n)
		}
		if err := s.PunchAllBut([]Range{{100, 5000}, {101 * mib, mib}}); err != nil {
			t.Fatal(err)
		}
		if n, _ := s.Blocks(); n != mib+8192 {
			t.Fatalf("all but two ranges given back, %d bytes taken", n)
		}
	}
}

func TestShortMemoryIsAnErrorAndTakesNothing(t *testing.T) {
	free := uint64(100 * mib)
	s := open(t, Config{Size: 1 << 40, Memory: func(*os.File) (uint64, string) { return free, "a test's bound" }, Margin: 10 * mib})
	if err := s.Reserve([]Range{{0, 80 * mib}, {80 * mib, 11 * mib}}); !errors.Is(err, errs.ErrSegmentUnavailable) {
		t.Fatalf("91 of 100 MiB with a margin of 10: %v", err)
	} else if want := "95420416 bytes asked, 104857600 available in a test's bound"; !bytes.Contains([]byte(err.Error()), []byte(want)) {
		t.Errorf("%q does not say %q", err, want)
	}
	if n, _ := s.Blocks(); n != 0 {
		t.Fatalf("a refused reservation took %d bytes", n)
	}
	if err := s.Reserve([]Range{{0, 8 * mib}}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []Range{{1 << 40, 1}, {1<<40 - 1, 2}, {^uint64(0), 2}} {
		if err := s.Reserve([]Range{r}); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("reserve of %+v: %v", r, err)
		}
	}
}

func TestANamedSegmentIsFoundAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segment")
	s, err := Open(Config{Path: path, Size: 16 * mib, Memory: plenty})
	if err != nil {
		t.Fatal(err)
	}
	if s.Found() {
		t.Fatal("a new segment counts as found")
	}
	if err := s.Reserve([]Range{{0, mib}}); err != nil {
		t.Fatal(err)
	}
	m, err := OpenMapping(s.File(), s.Size())
	if err != nil {
		t.Fatal(err)
	}
	copy(view(t, m, 4096, 5, true), "hello")
	if err := errors.Join(m.Close(), s.Close(false)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Path: path, Size: 8 * mib}); !errors.Is(err, errs.ErrInvalid) {
		t.Fatalf("another limit: %v", err)
	}
	s = open(t, Config{Path: path, Size: 16 * mib, Memory: plenty})
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 || !s.Found() {
		t.Fatalf("mode %v, found %v, %v", st.Mode(), s.Found(), err)
	}
	if got := view(t, mapping(t, s), 4096, 5, false); string(got) != "hello" {
		t.Fatalf("the segment holds %q", got)
	}
	if err := os.Symlink(path, path+".link"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Path: path + ".link", Size: 16 * mib}); !errors.Is(err, errs.ErrPermission) {
		t.Fatalf("through a symbolic link: %v", err)
	}
}

func TestMapStaysWithinItsExtent(t *testing.T) {
	s := open(t, Config{Size: 16 * mib, Memory: plenty})
	m := mapping(t, s)
	if err := s.Reserve([]Range{{0, mib}}); err != nil {
		t.Fatal(err)
	}
	b := view(t, m, 64, 100, true)
	if len(b) != 100 || cap(b) != 100 {
		t.Fatalf("len %d, cap %d, want 100", len(b), cap(b))
	}
	for _, e := range []wire.Extent{{Off: 16 * mib, Size: 1}, {Off: 16*mib - 1, Size: 2}, {Off: ^uint64(0), Size: 2}, {File: 3, Size: 1}} {
		if _, err := m.Map(e, false); !errors.Is(err, errs.ErrProtocol) {
			t.Errorf("map of %+v: %v", e, err)
		}
	}
	if _, err := OpenMapping(s.File(), 17*mib); !errors.Is(err, errs.ErrProtocol) {
		t.Errorf("mapping beyond the file: %v", err)
	}
}

func TestFilesComeAndGo(t *testing.T) {
	s := open(t, Config{Size: mib, Memory: plenty})
	m := mapping(t, s)
	path := filepath.Join(t.TempDir(), "fallback")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 10000), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // announced twice
		if err := m.Add(7, f, 10000); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w, err := m.Map(wire.Extent{File: 7, Off: 9000, Size: 1000}, true)
	if err != nil {
		t.Fatal(err)
	}
	w[999] = 'y'
	r, err := m.Map(wire.Extent{File: 7, Size: 10000}, false)
	if err != nil || r[9999] != 'y' || r[9998] != 'x' {
		t.Fatalf("the two mappings differ: %v", err)
	}
	if err := m.Drop(7); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Map(wire.Extent{File: 7, Size: 1}, false); !errors.Is(err, errs.ErrProtocol) {
		t.Fatalf("map of a dropped file: %v", err)
	}
}

func TestCopyCopies(t *testing.T) {
	s := open(t, Config{Size: 64 * mib, Memory: plenty})
	m := mapping(t, s)
	for _, cold := range []bool{true, false} {
		copyAll(t, s, m, cold)
	}
	if err := m.Write(wire.Extent{Size: 10}, make([]byte, 11)); !errors.Is(err, errs.ErrInvalid) {
		t.Fatalf("11 bytes into an extent of 10: %v", err)
	}
}

// copyAll writes copies of many sizes, into memory that is reserved or that the copy brings.
func copyAll(t *testing.T, s *Segment, m *Mapping, cold bool) {
	t.Helper()
	for _, n := range []int{0, 1, 4095, 100_000, parallelFrom - 1, parallelFrom, 3*parallelFrom + 12345} {
		src := make([]byte, n)
		for i := range src {
			src[i] = byte(i*7 + i>>8 + n)
		}
		e := wire.Extent{Off: 4096, Size: uint64(n)}
		if err := s.Punch([]Range{{0, 64 * mib}}); err != nil {
			t.Fatal(err)
		}
		if !cold {
			if err := s.Reserve([]Range{{0, 64 * mib}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Write(e, src); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(view(t, m, 4096, uint64(n), false), src) {
			t.Fatalf("%d bytes did not arrive as they were", n)
		}
	}
}

// A reservation made ahead may cover a part of an extent that is granted without memory, and end anywhere.
func TestAWriteIntoWhatIsPartlyThere(t *testing.T) {
	s := open(t, Config{Size: 64 * mib})
	m := mapping(t, s)
	src := make([]byte, 3*parallelFrom)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	for _, part := range []Range{{0, 10*mib + 3*pageSize}, {9*mib + pageSize, 2 * mib}, {20*mib - 5*pageSize, 44 * mib}} {
		for _, used := range []bool{false, true} {
			if err := s.Punch([]Range{{0, 64 * mib}}); err != nil {
				t.Fatal(err)
			}
			if err := s.Reserve([]Range{part}); err != nil {
				t.Fatal(err)
			}
			if used {
				clear(view(t, m, part.Off, part.Size, true))
			}
			if err := m.Write(wire.Extent{Off: 4096, Size: uint64(len(src))}, src); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(view(t, m, 4096, uint64(len(src)), false), src) {
				t.Fatalf("with memory at %v, used: %v, the bytes did not arrive as they were", part, used)
			}
		}
	}
}

// Written bytes stay if a reservation that also covers them fails: the segment does not know which ranges are
// granted.
func TestAReservationThatFailsTakesNothingAway(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); errors.Is(err, unix.EPERM) {
		t.Skip("a tmpfs of one's own takes CAP_SYS_ADMIN")
	} else if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	free := func(*os.File) (uint64, string) { return 1 << 40, "a test's bound" } // and then others take it
	s := open(t, Config{Size: 64 * mib, Path: filepath.Join(dir, "segment"), Memory: free})
	m := mapping(t, s)
	src := bytes.Repeat([]byte{7}, 4*mib)
	if err := m.Write(wire.Extent{Off: 2 * mib, Size: uint64(len(src))}, src); err != nil {
		t.Fatal(err)
	}
	if err := s.Reserve([]Range{{0, 8 * mib}, {8 * mib, 32 * mib}}); !errors.Is(err, errs.ErrSegmentUnavailable) {
		t.Fatalf("40 of 16 MiB: %v", err)
	}
	if err := s.Reserve([]Range{{0, 40 * mib}}); !errors.Is(err, errs.ErrSegmentUnavailable) {
		t.Fatalf("40 of 16 MiB: %v", err)
	}
	if !bytes.Equal(view(t, m, 2*mib, uint64(len(src)), false), src) {
		t.Error("what was written is gone")
	}
	if n, err := s.Blocks(); err != nil || n > 8*mib {
		t.Errorf("%d bytes are taken, %v; want no more than the first range", n, err)
	}
}

func TestAvailableOfThisMachine(t *testing.T) {
	s := open(t, Config{Size: mib, Memory: plenty})
	if n, bound := Available(s.File()); n == 0 || n == ^uint64(0) {
		t.Fatalf("this machine's available memory is %d, by %s", n, bound)
	}
}
