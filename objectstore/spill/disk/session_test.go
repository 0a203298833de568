package disk

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/errs"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
	"mobula/objectstore/spill/storage/storagetest"
)

func TestALiveSessionIsNeitherSharedNorSwept(t *testing.T) {
	bufs := storage.NewBuffers(1)
	defer bufs.Trim()
	dir := diskDir(t)
	s := openAt(t, dir, "", "live", bufs)
	if err := s.Put(context.Background(), 1, format.NewStream(format.Header{Session: "live"}, storagetest.Objects(10), bufs)); err != nil {
		t.Fatal(err)
	}
	_, err := storage.Open(context.Background(), &url.URL{Scheme: "file", Path: dir}, storage.Options{Session: "live", Buffers: bufs})
	if !errors.Is(err, storage.ErrInUse) {
		t.Errorf("second open of a session: got %v, want ErrInUse", err)
	}
	openAt(t, dir, "", "other", bufs)
	if _, err := os.Stat(s.path(1)); err != nil {
		t.Errorf("another session swept a live one: %v", err)
	}
}

// A process that is killed keeps no lock: its session can be taken over under its name. Any other
// sweeps it, unless it may be started again.
func TestAKilledProcessLeavesItsSessionToOthers(t *testing.T) {
	bufs := storage.NewBuffers(1)
	defer bufs.Trim()
	dir := diskDir(t)
	runKilled(t, dir, "same", true)
	runKilled(t, dir, "old", true)
	runKilled(t, dir, "gone", false)
	long := time.Now().Add(-keepFor - time.Hour)
	if err := os.Chtimes(filepath.Join(dir, prefix+"old", lockName), long, long); err != nil {
		t.Fatal(err)
	}
	openAt(t, dir, "", "first", bufs)
	foreign := filepath.Join(dir, prefix+"no-lock") // not made by this package: no lock file
	keep := filepath.Join(dir, "data")
	for _, d := range []string{foreign, keep} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := openAt(t, dir, "", "same", bufs)
	files, err := s.List(context.Background())
	if err != nil || len(files) != 1 || files[0].Number != 9 {
		t.Errorf("the session taken over has %v, %v; want file 9", files, err)
	}
	for _, d := range []string{"gone", "old"} {
		if _, err := os.Stat(filepath.Join(dir, prefix+d)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory of dead session %q: %v, want it removed", d, err)
		}
	}
	for _, d := range []string{foreign, keep} {
		if _, err := os.Stat(d); err != nil {
			t.Errorf("a directory that is no session was swept: %v", err)
		}
	}
}

// How long its process ran before it was killed does not count.
func TestASessionThatWasOpenForLongIsKeptForADay(t *testing.T) {
	bufs := storage.NewBuffers(1)
	defer bufs.Trim()
	dir := diskDir(t)
	synctest.Test(t, func(t *testing.T) {
		long := openKept(t, dir, "long", bufs)
		time.Sleep(3*keepFor - time.Minute)
		long.mu.Lock() // it is killed: nothing says more of it, and the lock is free
		long.next.Stop()
		if err := long.lock.Close(); err != nil {
			t.Fatal(err)
		}
		long.mu.Unlock()
		lockFile := filepath.Join(dir, prefix+"long", lockName)
		for _, kept := range []bool{true, false} {
			s := openKept(t, dir, "other", bufs)
			if _, err := os.Stat(lockFile); (err == nil) != kept {
				t.Errorf("of the session there is %v, kept %v", err, kept)
			}
			if err := s.Close(true); err != nil {
				t.Fatal(err)
			}
			time.Sleep(keepFor)
		}
	})
}

func openKept(t *testing.T, dir, session string, bufs *storage.Buffers) *Store {
	t.Helper()
	s, err := storage.Open(t.Context(), &url.URL{Scheme: "file", Path: dir}, storage.Options{Session: session, Buffers: bufs, Restarts: true})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s.(*Store)
}

func TestCloseKeepsOrRemoves(t *testing.T) {
	bufs := storage.NewBuffers(1)
	defer bufs.Trim()
	dir := diskDir(t)
	for _, remove := range []bool{false, true} {
		s := openAt(t, dir, "", "s", bufs)
		if err := s.Put(context.Background(), 1, format.NewStream(format.Header{Session: "s"}, storagetest.Objects(10), bufs)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(remove); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(s.path(1)); (err == nil) == remove {
			t.Errorf("after Close(%v) the file: %v", remove, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

func TestAPlantedDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, prefix+"s")); err != nil {
		t.Fatal(err)
	}
	_, err := storage.Open(context.Background(), &url.URL{Scheme: "file", Path: dir}, storage.Options{Session: "s"})
	if !errors.Is(err, errs.ErrPermission) {
		t.Errorf("a symlink in the session's place: got %v, want ErrPermission", err)
	}
}

const childEnv = "MOBULA_DISK_TEST_CHILD"

// runKilled has a process open a session, write a file and be killed.
func runKilled(t *testing.T, dir, session string, restarts bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=hold", "DIR="+dir, "SESSION="+session, "RESTARTS="+strconv.FormatBool(restarts))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make([]byte, 1)
	_, err = out.Read(ready)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		t.Fatalf("the process did not come up: %v", err)
	}
}

// child is the other process of these tests.
func child(run string) int {
	bufs := storage.NewBuffers(1)
	open := func(dir, session string) (*Store, error) {
		s, err := storage.Open(context.Background(), &url.URL{Scheme: "file", Path: dir}, storage.Options{Session: session, Buffers: bufs, Restarts: os.Getenv("RESTARTS") == "true"})
		if err != nil {
			return nil, err
		}
		return s.(*Store), nil
	}
	var err error
	switch run {
	case "hold":
		var s *Store
		if s, err = open(os.Getenv("DIR"), os.Getenv("SESSION")); err == nil {
			err = s.Put(context.Background(), 9, format.NewStream(format.Header{Session: "x"}, storagetest.Objects(100), bufs))
		}
		if err == nil {
			os.Stdout.WriteString("!")
			select {} // until killed
		}
	case "faults":
		err = faults(open, bufs, os.Getenv("DIR"))
	}
	if err != nil {
		os.Stderr.WriteString("child: " + err.Error() + "\n")
		return 1
	}
	return 0
}
