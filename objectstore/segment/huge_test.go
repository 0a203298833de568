package segment

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/wire"
)

// Where the process may mount a tmpfs, a segment that is not small has huge pages for who asks for
// them, no name, and is shown as a memfd is.
func TestHugePages(t *testing.T) {
	if fd, err := mountHuge(); errors.Is(err, unix.EPERM) {
		t.Skip("a tmpfs of one's own takes CAP_SYS_ADMIN")
	} else if err != nil {
		t.Fatal(err)
	} else if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Size: 64*mib + 3*pageSize})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(true); err != nil {
			t.Error(err)
		}
	}()
	link, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(s.File().Fd())))
	if err != nil || !strings.HasPrefix(link, "/"+shownName) {
		t.Errorf("shown as %q, %v", link, err)
	}
	m, err := OpenMapping(s.File(), s.Size())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	b, err := m.Slice(wire.Extent{Off: 8 * mib, Size: 16 * mib}, true)
	if err != nil {
		t.Fatal(err)
	}
	before := hugeShared(t)
	if err := unix.Madvise(b, unix.MADV_HUGEPAGE); err != nil {
		t.Fatal(err)
	}
	if err := unix.Madvise(b, unix.MADV_POPULATE_WRITE); err != nil {
		t.Fatal(err)
	}
	if got := hugeShared(t) - before; got < 8*mib {
		t.Errorf("16 MiB are there as %d bytes of huge pages", got)
	}
	if err := s.Reserve([]Range{{40 * mib, mib}}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Blocks(); err != nil || n != 17*mib {
		t.Errorf("%d bytes taken, %v: want what was populated and 1 MiB in small pages", n, err)
	}
	if err := s.PunchAllBut([]Range{{8*mib + 100, 4}}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Blocks(); err != nil || n != pageSize {
		t.Errorf("%d bytes taken, %v: want a page", n, err)
	}
}

// hugeShared is how much of this process' shared memory is mapped by huge pages, in bytes.
func hugeShared(t *testing.T) (sum int64) {
	data, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "ShmemPmdMapped:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += kib << 10
		}
	}
	return sum
}

// A small segment, or one that may not have a mount, is a memfd.
func TestSmallPages(t *testing.T) {
	s, err := Open(Config{Size: hugeFrom - 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(true); err != nil {
			t.Error(err)
		}
	}()
	seals, err := unix.FcntlInt(s.File().Fd(), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		t.Errorf("seals %x, %v", seals, err)
	}
}
