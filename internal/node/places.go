package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/pidfd"
	"mobula/internal/safefs"
)

// Directories that go with a process lie in one place, and are named after it: those of embedded nodes that are told none, and those in which a test has its nodes. What
// a process leaves there that was killed, the next start of any node of the same user removes; what is in shared memory of nodes there goes then too, since nobody
// can start them again (segments.go).

func placesRoot() string { return filepath.Join(os.TempDir(), fmt.Sprintf("mobula-%d", os.Getuid())) }

// freshDir makes a directory that only the user may enter.
func freshDir() (string, error) {
	root := placesRoot()
	if err := safefs.MakeDir(root); err != nil {
		return "", dirError(root, err)
	}
	dir, err := os.MkdirTemp(root, fmt.Sprintf("node-%d-", os.Getpid()))
	if err != nil {
		return "", errs.New(errs.CodeInvalid, "node directory: %v; set TMPDIR or the directory", err)
	}
	return dir, nil
}

// lockSuffix names the file beside a directory by whose lock a process has it.
const lockSuffix = ".lock"

// ProgramDir makes a directory for nodes that this process alone starts, again and again, in the directory or below it. It goes with the process, by remove at the latest.
func ProgramDir() (dir string, remove func() error, err error) {
	if dir, err = freshDir(); err != nil {
		return "", nil, err
	}
	path := dir + lockSuffix
	lock, err := safefs.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return "", nil, errors.Join(dirError(dir, err), os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), os.Remove(path), lock.Close()) }, nil
}

// cleanDead removes what processes left that were killed: directories named after one that is gone, of which nobody has a lock: the process may be one of another
// container, and a node that it has started may live.
func cleanDead(root string) {
	entries, err := safefs.ReadDir(root)
	if err != nil {
		return // nothing to clean that could be seen
	}
	for _, e := range entries {
		var pid int
		if n, _ := fmt.Sscanf(e.Name(), "node-%d-", &pid); n != 1 || pid == os.Getpid() || !pidfd.Gone(pid) || strings.HasSuffix(e.Name(), lockSuffix) {
			continue
		}
		dir := filepath.Join(root, e.Name())
		if unlock, free := lockAll(dir); free {
			_ = os.RemoveAll(dir) // the next start tries again
			_ = os.Remove(dir + lockSuffix)
			unlock()
		}
	}
}

// lockAll takes the locks of a process' directory and of each node in it, unless somebody has one.
func lockAll(dir string) (unlock func(), free bool) {
	var all []*os.File
	unlock = func() {
		for _, f := range all {
			_ = f.Close()
		}
	}
	paths := []string{dir + lockSuffix, filepath.Join(dir, lockName)}
	within, err := safefs.ReadDir(dir)
	if err != nil {
		return unlock, false
	}
	for _, e := range within {
		paths = append(paths, filepath.Join(dir, e.Name(), lockName))
	}
	for _, path := range paths {
		f, err := safefs.OpenFile(path, os.O_RDWR, 0)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
			continue
		case err != nil:
			unlock()
			return nil, false
		}
		all = append(all, f)
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			unlock()
			return nil, false
		}
	}
	return unlock, true
}
