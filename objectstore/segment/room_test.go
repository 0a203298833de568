package segment

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/wire"
)

// unbacked maps a part of a segment, and brings no memory for it.
func unbacked(t *testing.T, s *Segment, off, size uint64) []byte {
	t.Helper()
	b, err := mapping(t, s).Slice(wire.Extent{Off: off, Size: size}, true)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAColdRoomGetsMemoryAsItIsWritten(t *testing.T) {
	s := open(t, Config{Size: 64 * mib, Memory: plenty})
	const off, size = 3 * mib, 5*mib + 123
	r := s.ColdRoom(unbacked(t, s, off, size), off)
	want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
	for at := 0; at < size; at += mib {
		if err := r.Write(at, want[at:min(at+mib, size)]); err != nil {
			t.Fatal(err)
		}
		written := min(uint64(at+mib), (size+pageSize-1)&^(pageSize-1))
		if n, err := s.Blocks(); err != nil || n != written {
			t.Fatalf("%d bytes of memory for %d that were written, %v", n, written, err)
		}
	}
	if !r.Cold() || !bytes.Equal(r.Bytes, want) {
		t.Error("it has other bytes")
	}
	for _, at := range []int{-1, size - 3} {
		if err := r.Write(at, want[:4]); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("a write at %d of %d: %v", at, size, err)
		}
	}
}

// What is available is looked at again and again: it may have been taken since the room was given.
func TestAColdRoomLooksForMemory(t *testing.T) {
	free := uint64(1 << 40)
	s := open(t, Config{Size: 64 * mib, Memory: func(*os.File) (uint64, string) { return free, "a test" }})
	r := s.ColdRoom(unbacked(t, s, 0, 2*lookStep), 0)
	if err := r.Write(0, make([]byte, lookStep)); err != nil {
		t.Fatal(err)
	}
	free = DefaultMargin
	if err := r.Write(lookStep, []byte{1}); !errors.Is(err, errs.ErrSegmentUnavailable) {
		t.Fatalf("without memory: %v", err)
	}
	if n, err := s.Blocks(); err != nil || n != lookStep {
		t.Errorf("%d bytes of memory, %v", n, err)
	}
}

// A file system that is full is an error, where a write to a mapping would be a signal.
func TestAColdRoomOnAFullFileSystem(t *testing.T) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if errors.Is(err, unix.EPERM) {
		t.Skip("a tmpfs of one's own takes CAP_SYS_ADMIN")
	} else if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fs) }()
	if err := errors.Join(unix.FsconfigSetString(fs, "size", "1m"), unix.FsconfigCreate(fs)); err != nil {
		t.Fatal(err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(mount) }()
	fd, err := unix.Openat(mount, "segment", unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s := &Segment{file: os.NewFile(uintptr(fd), "segment"), size: 4 * mib, memory: plenty}
	defer func() { _ = s.Close(false) }()
	if err := s.file.Truncate(int64(s.size)); err != nil {
		t.Fatal(err)
	}
	r := s.ColdRoom(unbacked(t, s, 0, 4*mib), 0)
	if err := r.Write(0, bytes.Repeat([]byte{7}, mib/2)); err != nil {
		t.Fatal(err)
	}
	if err := r.Write(mib/2, make([]byte, mib)); !errors.Is(err, errs.ErrSegmentUnavailable) {
		t.Fatalf("on a full file system: %v", err)
	}
	if !bytes.Equal(r.Bytes[:mib/2], bytes.Repeat([]byte{7}, mib/2)) {
		t.Error("what was there is not")
	}
}

func TestARoomWithMemoryKeepsWhatItHas(t *testing.T) {
	b := bytes.Repeat([]byte{5}, 3*pageSize)
	r := NewRoom(b)
	if part := r.Expect(100, 2*pageSize); len(part) != 2*pageSize-100 || &part[0] != &b[100] {
		t.Error("the part is another one")
	}
	if err := r.Write(10, []byte{6}); err != nil || r.Cold() || b[9] != 5 || b[10] != 6 || b[11] != 5 {
		t.Errorf("%v, cold: %v, %v", err, r.Cold(), b[9:12])
	}
}
