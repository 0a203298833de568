package node

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/node/jobfile"
	"mobula/internal/pidfd"
	"mobula/internal/safefs"
)

// lockName is the file by whose lock a node has its directory. It tells the process.
const lockName = "node.lock"

// CheckDir tells whether a node could have the directory, with the error that Start would give.
func CheckDir(dir string) error {
	l, err := lockDir(dir)
	if err != nil {
		return err
	}
	return l.Close()
}

// A child that a killed node had just forked holds the node's lock until its exec: the next node tries again so often.
const (
	lockTries = 200
	lockPause = 25 * time.Millisecond
)

// lockDir makes the directory and keeps every other node out of it, until the file is
// closed or the process has ended.
func lockDir(dir string) (*os.File, error) {
	invalid := func(err error) error { return dirError(dir, err) }
	if err := safefs.MakeDir(dir); err != nil {
		return nil, invalid(err)
	}
	path := filepath.Join(dir, lockName)
	for try := 1; ; try++ {
		f, err := safefs.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, invalid(err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			pid := holder(f)
			if try < lockTries && pid != 0 && pidfd.Gone(pid) {
				_ = f.Close()
				time.Sleep(lockPause)
				continue
			}
			err = taken(dir, pid)
		case err != nil:
			err = invalid(err)
		case !safefs.IsAt(f, path): // whose node has just ended and removed it
			_ = f.Close()
			continue
		default:
			if err = errors.Join(f.Truncate(0), writePID(f)); err == nil {
				return f, nil
			}
			err = invalid(err)
		}
		_ = f.Close() // nothing was written
		return nil, err
	}
}

// dirError is the error of a directory that cannot be a node's. What was found in its place keeps its code.
func dirError(dir string, err error) error {
	code := errs.CodeInvalid
	if errors.Is(err, errs.ErrPermission) {
		code = errs.CodePermission
	}
	return errs.New(code, "node directory %q: %v; give another (WithDir, MOBULA_DIR, --dir, or TMPDIR for all)", dir, err)
}

func writePID(f *os.File) error {
	_, err := f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	return err
}

// holder is the process that wrote its number into a lock file; 0: none has yet.
func holder(lock *os.File) int {
	var b [20]byte
	n, _ := lock.ReadAt(b[:], 0) // it ends before
	pid, _ := strconv.Atoi(string(bytes.TrimSpace(b[:n])))
	return max(pid, 0)
}

// taken is the error of a directory that another node has.
func taken(dir string, pid int) error {
	who := "another process"
	switch pid {
	case 0:
	case os.Getpid():
		who = fmt.Sprintf("this process (%d)", pid)
	default:
		who = fmt.Sprintf("process %d", pid)
	}
	return errs.New(errs.CodeNodeRunning, "a node of %s runs in %s: give this one another directory (WithDir, MOBULA_DIR, --dir), or stop that one; "+
		"mobula stop --address %s does where it runs by itself", who, dir, dir)
}

// ownNames is all that a node makes in its directory.
var ownNames = []string{SocketName, "gcs", "owner", "jobs", jobfile.LostName, "logs", "events", "spill", blobsName}

// claim takes a directory: the one that the node is told, or a fresh one.
func (p *place) claim(cfg Config) (err error) {
	cleanDead(placesRoot())
	if cfg.Dir == "" {
		if p.dir, err = freshDir(); err != nil {
			return err
		}
		p.tidy = func() error { return os.RemoveAll(p.dir) }
		p.lock, err = lockDir(p.dir)
		return err
	}
	p.dir = cfg.Dir
	restore, err := makePrivate(p.dir)
	if err != nil {
		return err
	}
	_, err = os.Stat(p.dir)
	made := errors.Is(err, fs.ErrNotExist)
	_, err = os.Stat(filepath.Join(p.dir, lockName))
	killed := err == nil
	if p.lock, err = lockDir(p.dir); err != nil || cfg.Keep {
		return err
	}
	err = p.claimForProgram(made, killed)
	if tidy := p.tidy; tidy != nil {
		p.tidy = func() error { return errors.Join(tidy(), restore()) }
	}
	return err
}

// makePrivate has nobody else enter an empty directory of this user's, such as a test's own; restore undoes it. One with
// something in it is the user's to close: others may be meant to read that.
func makePrivate(dir string) (restore func() error, err error) {
	restore = func() error { return nil }
	if safefs.CheckDir(dir) != nil {
		return restore, nil // there is none yet, or who locks it says what is wrong
	}
	fi, err := os.Stat(dir)
	if err != nil || fi.Mode().Perm()&0o077 == 0 {
		return restore, err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return restore, err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return restore, dirError(dir, err)
	}
	return func() error {
		if err := os.Chmod(dir, fi.Mode().Perm()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil // the node had made it, or its user has removed it
	}, nil
}

// claimForProgram is for a node inside a program: it leaves the directory as it found it. What a
// killed one left goes first.
func (p *place) claimForProgram(made, killed bool) error {
	if safefs.Exists(filepath.Join(p.dir, secretName)) {
		return errs.New(errs.CodeInvalid, "node directory %q keeps the state of a node that mobula start runs, which a node inside a program would end: give this one another", p.dir)
	}
	var all []error
	ours := slices.DeleteFunc(slices.Clone(ownNames), func(name string) bool {
		path := filepath.Join(p.dir, name)
		if killed {
			all = append(all, os.RemoveAll(path))
		}
		return safefs.Exists(path) // it is somebody else's
	})
	p.tidy = func() error {
		var all []error
		for _, name := range append(ours, lockName) {
			all = append(all, os.RemoveAll(filepath.Join(p.dir, name)))
		}
		if made {
			_ = os.Remove(p.dir) // somebody may have put something there
		}
		return errors.Join(all...)
	}
	return errors.Join(all...)
}

// release lets the next node have the directory.
func (p *place) release() error {
	var all []error
	if p.tidy != nil && p.lock != nil {
		all = append(all, p.tidy())
	}
	if p.lock != nil {
		all = append(all, p.lock.Close())
	}
	return errors.Join(all...)
}
