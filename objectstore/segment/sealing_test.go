package segment

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNobodyWritesACopy tries what a process that was given a copy could: root's rights are no help.
func TestNobodyWritesACopy(t *testing.T) {
	c, err := NewSealing(3*pageSize, Config{})
	if err != nil {
		t.Fatal(err)
	}
	copy(c.Data(), "as it was made")
	f, err := c.Seal()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	m := NewMapping()
	if err := m.AddCopy(9, f, 3*pageSize); err != nil {
		t.Fatal(err)
	}
	view := m.files[9].ro
	if err := unix.Mprotect(view, unix.PROT_READ|unix.PROT_WRITE); !errors.Is(err, unix.EACCES) {
		t.Errorf("the mapping was made writable: %v", err)
	}
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	for name, file := range map[string]*os.File{"the descriptor": f, "one opened again": again} {
		if _, err := file.WriteAt([]byte("changed"), 0); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s writes: %v", name, err)
		}
		if err := file.Truncate(0); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s truncates: %v", name, err)
		}
		if err := fallocate(file, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, Range{0, pageSize}); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s punches: %v", name, err)
		}
		if b, err := unix.Mmap(int(file.Fd()), 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
			t.Errorf("%s maps writable", name)
			_ = unix.Munmap(b)
		}
	}
	if got := string(view[:14]); got != "as it was made" {
		t.Errorf("the copy holds %q", got)
	}
	if err := m.DropCopy(9); err != nil {
		t.Fatal(err)
	}
	if view[0] != 0 {
		t.Error("a dropped copy still shows its content")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}
