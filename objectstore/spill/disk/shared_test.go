package disk

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/testkit"
	"mobula/objectstore/spill/storage"
)

const stranger = 65533 // another user

// sharedRoot is a spill root that everybody may write to.
func sharedRoot(t *testing.T) string {
	t.Helper()
	dir := diskDir(t)
	if err := unix.Chmod(dir, 0o1777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openSoon opens a session, which must not wait for what others have put there.
func openSoon(t *testing.T, root, session string) error {
	t.Helper()
	bufs := storage.NewBuffers(1)
	defer bufs.Trim()
	done := make(chan error, 1)
	go func() {
		s, err := storage.Open(context.Background(), &url.URL{Scheme: "file", Path: root}, storage.Options{Session: session, Buffers: bufs})
		if err == nil {
			err = s.Close(true)
		}
		done <- err
	}()
	return testkit.Receive(t, "a start beside what another user has put into the shared spill root", done)
}

// Whatever others put into a shared spill root, a sweep neither waits for it nor deletes through it.
func TestASweepIsSafeFromStrangers(t *testing.T) {
	root := sharedRoot(t)
	fifo := filepath.Join(root, prefix+"fifo")
	must(t, os.Mkdir(fifo, 0o755))
	must(t, unix.Mkfifo(filepath.Join(fifo, lockName), 0o666))
	must(t, os.Lchown(fifo, stranger, stranger))
	own := filepath.Join(root, prefix+"own-fifo") // as a stranger could with a directory that was ours and open
	must(t, os.Mkdir(own, 0o700))
	must(t, unix.Mkfifo(filepath.Join(own, lockName), 0o666))

	victim := diskDir(t)
	precious := filepath.Join(victim, "precious")
	must(t, os.WriteFile(precious, nil, 0o600))
	must(t, os.WriteFile(filepath.Join(victim, lockName), nil, 0o600))
	must(t, os.Symlink(victim, filepath.Join(root, prefix+"link")))
	theirs := filepath.Join(root, prefix+"theirs")
	must(t, os.Mkdir(theirs, 0o777))
	must(t, os.WriteFile(filepath.Join(theirs, lockName), nil, 0o666))
	must(t, os.WriteFile(filepath.Join(theirs, "data"), nil, 0o666))
	must(t, os.Lchown(theirs, stranger, stranger))

	if err := openSoon(t, root, "mine"); err != nil {
		t.Fatalf("open: %v", err)
	}
	for _, path := range []string{precious, filepath.Join(theirs, "data")} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("the sweep deleted what is not ours: %v", err)
		}
	}
}

// Something with a session's name that is not this user's directory is an error that says so.
func TestASessionsNameThatIsTakenByAStranger(t *testing.T) {
	victim := diskDir(t)
	must(t, os.WriteFile(filepath.Join(victim, lockName), []byte("precious"), 0o600))
	for name, plant := range map[string]func(dir string){
		"another's": func(dir string) { must(t, os.Mkdir(dir, 0o777)); must(t, os.Lchown(dir, stranger, stranger)) },
		"link":      func(dir string) { must(t, os.Symlink(victim, dir)) },
		"FIFO":      func(dir string) { must(t, unix.Mkfifo(dir, 0o666)) },
		"lock: link": func(dir string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Symlink(filepath.Join(victim, lockName), filepath.Join(dir, lockName)))
		},
		"lock: FIFO": func(dir string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, unix.Mkfifo(filepath.Join(dir, lockName), 0o666))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := sharedRoot(t)
			plant(filepath.Join(root, prefix+"mine"))
			if err := openSoon(t, root, "mine"); !errors.Is(err, errs.ErrPermission) {
				t.Errorf("open: %v", err)
			}
		})
	}
	if b, err := os.ReadFile(filepath.Join(victim, lockName)); err != nil || string(b) != "precious" {
		t.Errorf("the victim's file has %q (%v)", b, err)
	}
}
