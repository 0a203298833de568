package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/machine"
	"mobula/internal/pidfd"
	"mobula/internal/safefs"
	"mobula/objectstore/index"
	"mobula/objectstore/record"
)

// A node has the lock of its index for as long as it lives. A segment's own descriptor is no good for it: every client has it too.

const (
	lockTries = 40
	lockPause = 50 * time.Millisecond // a sweep holds it for less
)

func lockIndex(f *os.File, path string) error {
	var err error
	for range lockTries {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(lockPause)
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return errs.New(errs.CodeNodeRunning, "%s belongs to a node that runs: was its directory copied? Remove the files %q and %q in the copy", path, "identity", "home")
	case err != nil:
		return errs.New(errs.CodeSegmentUnavailable, "lock %s: %v", path, err)
	case !safefs.IsAt(f, path):
		return errs.New(errs.CodeSegmentUnavailable, "%s was removed while it was opened: start the node again", path)
	}
	return nil
}

// SweepDead removes the segments below dir, of this user and with the prefix, whose node was killed and has nothing to come back for, and gives
// their paths. It leaves one that a node has locked, one that a client maps still, one of an earlier build, which says nothing of itself, and one
// whose node awaited tells is expected again.
func SweepDead(dir, prefix string, awaited func(index.Owner) bool) (removed []string, err error) {
	entries, err := safefs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []error
	for _, e := range entries {
		path, ok := strings.CutSuffix(filepath.Join(dir, e.Name()), ".index")
		if !ok || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		switch gone, err := sweepDead(path, awaited); {
		case err != nil:
			all = append(all, err)
		case gone:
			removed = append(removed, path)
		}
	}
	return removed, errors.Join(all...)
}

func sweepDead(path string, awaited func(index.Owner) bool) (bool, error) {
	f, err := safefs.OpenFile(path+".index", os.O_RDWR, 0)
	if err != nil {
		return false, nil // another user's, or gone
	}
	defer func() { _ = f.Close() }() // nothing was written
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || int(st.Uid) != os.Geteuid() {
		return false, nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !safefs.IsAt(f, path+".index") {
		return false, nil
	}
	o, err := index.ReadOwner(f)
	if err != nil || o.Node == "" || awaited(o) {
		return false, nil
	}
	if o.Boot == machine.Boot() && mapped(path, o) {
		return false, nil
	}
	if err := removeAll(path); err != nil {
		return false, fmt.Errorf("segment of a dead node: %w", err)
	}
	return true, nil
}

// mapped tells whether a client that the index knows lives: its node may be started again for it.
func mapped(path string, o index.Owner) bool {
	f, err := safefs.OpenFile(path+".index", os.O_RDWR, 0)
	if err != nil {
		return true
	}
	x, err := index.Open(f, o)
	if err != nil {
		return false // damaged: nobody can come back to it
	}
	defer func() { _ = x.Close() }() // only read
	for _, e := range x.Replay() {
		if e.State == record.StateClient && !pidfd.Gone(int(e.PID)) {
			return true
		}
	}
	return false
}
