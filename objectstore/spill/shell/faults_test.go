package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/storage"
)

func TestAFailingWriteMovesToAnotherTarget(t *testing.T) {
	for _, fault := range []error{spill.ErrFull, storage.ErrReadOnly, storage.ErrGone, errors.New("input/output error")} {
		bad, good := newGate(t), newGate(t)
		bad.failing(opPut, func() error { return fault })
		s := open(t, func(c *Config) { c.URLs = []string{bad.url, good.url} })
		all := items(8, 600_000) // four files
		locs := mustWrite(t, s, all)
		for i, l := range locs {
			if l.Target != 1 {
				t.Errorf("%v: object %d lies on the failing target", fault, i)
			}
			mustRead(t, s, l, all[i].Data)
		}
		st := s.Stats()
		if st.Targets[0].Health == spill.Healthy || !errors.Is(st.Targets[0].Why, fault) {
			t.Errorf("%v: target 0 is %v because of %v", fault, st.Targets[0].Health, st.Targets[0].Why)
		}
		if st.Targets[0].Assigned != 0 || st.OutOfDisk != 0 {
			t.Errorf("%v: stats %+v", fault, st)
		}
	}
}

func TestAllTargetsFailingIsOutOfDiskAtOnceAndOneLine(t *testing.T) {
	full, broken := newGate(t), newGate(t)
	full.setCapacity(spill.Capacity{Used: 96, Total: 100})
	broken.failing(opPut, func() error { return storage.ErrReadOnly })
	var log lines
	s := open(t, func(c *Config) {
		c.URLs, c.Logger = []string{full.url, broken.url}, log.logger()
		c.ProbeAfter, c.CapacityInterval, c.LogEvery = time.Hour, time.Hour, time.Hour // a refusal that waits for one of them never comes
	})
	for range 50 {
		r := testkit.Receive(t, "write", writeLater(s, items(2, 700_000)))
		var wire *errs.Error
		if !errors.Is(r.err, errs.ErrOutOfDisk) || !errors.As(r.err, &wire) || wire.Code != errs.CodeOutOfDisk || r.locs != nil {
			t.Fatalf("got %v, %v; want errs.CodeOutOfDisk", r.locs, r.err)
		}
	}
	if n := log.count(); n != 1 {
		t.Errorf("%d lines were logged, want 1: %q", n, log.all)
	}
	if n := full.count(opPut); n != 0 {
		t.Errorf("%d files were written beyond the threshold", n)
	}
	if n := full.count(opProbe); n > 1 {
		t.Errorf("free space was asked %d times", n)
	}
	if st := s.Stats(); st.LiveFiles != 0 || st.Moving != 0 {
		t.Errorf("stats: %+v", st)
	}
}

func TestOneFileOfAWriteFailingUndoesTheOthers(t *testing.T) {
	g := newGate(t)
	n := 0
	g.failing(opPut, func() error { // calls are one after another: one writer
		if n++; n == 2 {
			return errors.New("input/output error")
		}
		return nil
	})
	s := open(t, func(c *Config) { c.URLs, c.Writers = []string{g.url}, 1 })
	r := testkit.Receive(t, "write", writeLater(s, items(3, 1<<20)))
	if !errors.Is(r.err, errs.ErrOutOfDisk) {
		t.Fatalf("got %v", r.err)
	}
	testkit.Eventually(t, "what was written is deleted", func() bool {
		files, err := g.List(context.Background())
		return err == nil && len(files) == 0 && s.Stats().LiveFiles == 0
	})
}

func TestAPanickingStorageIsAnError(t *testing.T) {
	g := newGate(t)
	s := open(t, func(c *Config) { c.URLs = []string{g.url} })
	locs := mustWrite(t, s, items(1, 100))
	g.failing(opRead, func() error { panic("bug") })
	if err := testkit.Receive(t, "read", readLater(s, locs[0], make([]byte, 100))); !errors.Is(err, errs.ErrPanic) {
		t.Errorf("got %v, want ErrPanic", err)
	}
}

func TestLimiter(t *testing.T) {
	l := limiter{every: 10 * time.Second}
	now := time.Unix(1000, 0)
	lines := 0
	for range 1000 { // 100 s in steps of 0.1 s
		if _, ok := l.allow(now); ok {
			lines++
		}
		now = now.Add(100 * time.Millisecond)
	}
	if lines != 10 {
		t.Errorf("%d lines in 100 s, want 10", lines)
	}
	if skipped, ok := l.allow(now); !ok || skipped != 99 {
		t.Errorf("the next line says that %d were left out, %v; want 99", skipped, ok)
	}
}

const childEnv = "MOBULA_SPILL_TEST_CHILD"

// A small file system of its own, in a mount namespace: full and read-only for real.
func TestARealDiskThatFillsAndTurnsReadOnly(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=disk", "DIR="+t.TempDir())
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

func child(run string) int {
	var err error
	switch run {
	case "disk":
		err = realDisk(os.Getenv("DIR"))
	case "kill":
		err = killed(os.Getenv("DIR"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

func realDisk(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=10m"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	var log lines
	cfg := Default("test")
	cfg.Dir, cfg.MinFileBytes, cfg.ProbeAfter, cfg.LogEvery, cfg.Logger = dir, 1<<20, 10*time.Millisecond, time.Hour, log.logger()
	s, err := Open(cfg)
	if err == nil {
		err = s.Start(nil)
	}
	if err != nil {
		return err
	}
	write := func() written {
		select {
		case r := <-writeLater(s, items(1, 1<<20)):
			return r
		case <-time.After(testkit.Patience()):
			return written{err: errors.New("no answer")}
		}
	}
	var locs []spill.Location
	for {
		r := write()
		if r.err != nil {
			if !errors.Is(r.err, errs.ErrOutOfDisk) {
				return fmt.Errorf("full disk: got %v, want ErrOutOfDisk", r.err)
			}
			break
		}
		if locs = append(locs, r.locs...); len(locs) > 10 {
			return fmt.Errorf("%d MiB were written to 10", len(locs))
		}
	}
	if len(locs) < 7 { // room for two objects is left
		return fmt.Errorf("the disk was full after %d of 10 MiB", len(locs))
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || float64(fs.Blocks-fs.Bfree) > 0.95*float64(fs.Blocks) {
		return fmt.Errorf("%d of %d blocks are used, %v: beyond the threshold", fs.Blocks-fs.Bfree, fs.Blocks, err)
	}
	for range 20 {
		if r := write(); !errors.Is(r.err, errs.ErrOutOfDisk) {
			return fmt.Errorf("full disk: got %v", r.err)
		}
	}
	if n := log.count(); n != 1 {
		return fmt.Errorf("%d lines were logged in a moment, want 1: %q", n, log.all)
	}
	s.Remove(locs[:4])
	if r := write(); r.err != nil { // it waits for the deletes
		return fmt.Errorf("after objects were removed: %w", r.err)
	}
	if !soon(func() bool { return s.Stats().FilesDeleted >= 4 }) {
		return fmt.Errorf("%d files were deleted, want 4", s.Stats().FilesDeleted)
	}
	soon(func() bool {
		err = unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
		return !errors.Is(err, unix.EBUSY) // a deletion is under way
	})
	if err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	var r written
	known := soon(func() bool { // it may count as full until it is asked again
		r = write()
		st := s.Stats().Targets[0]
		return !errors.Is(r.err, errs.ErrOutOfDisk) || st.Health == spill.Failed && errors.Is(st.Why, storage.ErrReadOnly)
	})
	if !errors.Is(r.err, errs.ErrOutOfDisk) {
		return fmt.Errorf("read-only disk: got %v, want ErrOutOfDisk", r.err)
	}
	if !known {
		return fmt.Errorf("read-only disk: %+v", s.Stats().Targets[0])
	}
	done := make(chan error, 1)
	s.Read(locs[5], make([]byte, 1<<20), func(err error) { done <- err })
	if err := <-done; err != nil {
		return fmt.Errorf("read from a read-only disk: %w", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	if !soon(func() bool { return s.Stats().Targets[0].Health == spill.Healthy }) {
		return fmt.Errorf("the repaired disk stays %v", s.Stats().Targets[0].Health)
	}
	if r := write(); r.err != nil {
		return fmt.Errorf("after the repair: %w", r.err)
	}
	return s.Close(context.Background())
}
