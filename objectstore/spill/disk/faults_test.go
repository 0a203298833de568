package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
	"mobula/objectstore/spill/storage/storagetest"
)

// A mount namespace of its own lets the test fill a disk and make it read-only, which
// permissions alone do not do to root.
func TestFaultsOfAFileSystem(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=faults", "DIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// faults runs inside the namespace.
func faults(open func(dir, session string) (*Store, error), bufs *storage.Buffers, dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	ctx := context.Background()
	s, err := open(dir, "s")
	if err != nil {
		return err
	}
	write := func(file uint64, size int) error {
		return s.Put(ctx, file, format.NewStream(format.Header{Session: "s", File: file}, storagetest.Objects(size), bufs))
	}
	var wrong []error
	expect := func(what string, got, want error) {
		if !errors.Is(got, want) || (want == nil && got != nil) {
			wrong = append(wrong, fmt.Errorf("%s: got %v, want %v", what, got, want))
		}
	}

	expect("a file that fits", write(1, 2<<20), nil)
	expect("a file larger than the disk", write(2, 9<<20), spill.ErrFull)
	if files, err := s.List(ctx); err != nil || len(files) != 1 {
		wrong = append(wrong, fmt.Errorf("a write that failed left %v, %v", files, err))
	}
	_, err = s.Allocate(9 << 20)
	expect("a mapped file larger than the disk", err, spill.ErrFull)
	if left, err := s.Allocated(); err != nil || len(left) != 0 {
		wrong = append(wrong, fmt.Errorf("a reservation that failed left %v, %v", left, err))
	}
	c, err := s.Probe(ctx, false)
	if err != nil || c.Total != 8<<20 || c.Used < 2<<20 || c.Used > 3<<20 {
		wrong = append(wrong, fmt.Errorf("capacity: %+v, %v", c, err))
	}

	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	expect("a write to a read-only disk", write(3, 100), storage.ErrReadOnly)
	_, err = s.Probe(ctx, true)
	expect("a probe of a read-only disk", err, storage.ErrReadOnly)
	_, err = s.Read(ctx, 1, 0, make([]byte, 100))
	expect("a read from a read-only disk", err, nil)
	_, err = s.Allocate(4096)
	expect("a mapped file on a read-only disk", err, storage.ErrReadOnly)
	_, err = open(dir, "t")
	expect("open on a read-only disk", err, storage.ErrReadOnly)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	_, err = s.Probe(ctx, true)
	expect("a probe of the repaired disk", err, nil)

	if err := os.RemoveAll(s.dir); err != nil {
		return err
	}
	expect("a write to a directory that is gone", write(4, 100), storage.ErrGone)
	_, err = s.Read(ctx, 1, 0, make([]byte, 100))
	expect("a read from a directory that is gone", err, spill.ErrMissing)
	_, err = s.Probe(ctx, false)
	expect("a look at a directory that is gone", err, storage.ErrGone)
	_, err = s.Probe(ctx, true)
	expect("a probe makes the session's directory again", err, nil)
	expect("a write after that", write(5, 100), nil)
	s.root, s.dir = filepath.Join(dir, "absent"), filepath.Join(dir, "absent", "s")
	_, err = s.Probe(ctx, true)
	expect("a probe makes no directory of the user's", err, storage.ErrGone)
	return errors.Join(wrong...)
}

func mincore(m, vec []byte) error {
	_, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&vec[0])))
	if e != 0 {
		return e
	}
	return nil
}
