package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/safefs"
	"mobula/objectstore/spill/storage"
)

const (
	prefix   = "mobula-"
	lockName = "lock"
	attempts = 10 // attempts to take a lock whose directory is being removed

	keepFor   = 24 * time.Hour // after the session was last seen open
	seenEvery = time.Hour

	maxOwner = 4 << 10
)

// acquire makes the session's directory and takes its lock.
func (s *Store) acquire() error {
	for range attempts {
		if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return create(err, "make spill directory")
		}
		if err := safefs.CheckDir(s.dir); errors.Is(err, os.ErrNotExist) {
			continue // another process has just swept it
		} else if err != nil {
			return typed(err, "spill directory "+s.dir)
		}
		path := filepath.Join(s.dir, lockName)
		f, err := lock(path, true)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := s.enter(f, path); err != nil {
			_ = f.Close()
			return err
		}
		s.mu.Lock()
		if s.lock != nil {
			_ = s.lock.Close() // it belonged to a directory that somebody deleted
		}
		s.lock = f
		s.mu.Unlock()
		s.seen()
		return nil
	}
	return fmt.Errorf("spill directory %s: it was removed %d times while it was opened: %w", s.dir, attempts, storage.ErrGone)
}

// enter writes this process as the session's owner into its lock file f.
func (s *Store) enter(f *os.File, path string) error {
	me := storage.Self(s.by)
	me.Number = s.number
	if o, ok := ownerIn(f); ok {
		if err := o.Foreign(s.by); err != nil {
			return fmt.Errorf("spill directory %s: %w", s.dir, err)
		}
		if o.Local() && o.Alive() && o.PID != os.Getpid() { // although its lock is not visible from here
			return fmt.Errorf("%s belongs to process %d: %w", path, o.PID, storage.ErrInUse)
		}
		if me.Number == nil {
			me.Number = o.Number
		}
	}
	if err := safefs.Rewrite(path, me.Encode()); err != nil {
		return create(err, "write lock of spill session")
	}
	s.number = me.Number
	return nil
}

// ownerIn reads the owner in a lock file; false if it has none, as in release 0.3.
func ownerIn(f *os.File) (o storage.Owner, ok bool) {
	b := make([]byte, maxOwner)
	n, _ := f.ReadAt(b, 0) // the file is shorter
	err := json.Unmarshal(b[:n], &o)
	return o, err == nil && o.Boot != ""
}

// Number is the target's number, if the session has one.
func (s *Store) Number() (uint16, bool) {
	if s.number == nil {
		return 0, false
	}
	return *s.number, true
}

// SetNumber keeps the target's number in the session.
func (s *Store) SetNumber(n uint16) error {
	s.number = &n
	me := storage.Self(s.by)
	me.Number = &n
	if err := safefs.Rewrite(filepath.Join(s.dir, lockName), me.Encode()); err != nil {
		return create(err, "write lock of spill session")
	}
	return nil
}

// seen updates the time of the lock file, now and from time to time, so that it says when the session was last
// open.
func (s *Store) seen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Join(s.dir, lockName), now, now) // the file may be gone, or the disk read-only: the next time may work
	if s.next != nil {
		s.next.Stop()
	}
	s.next = time.AfterFunc(seenEvery, s.seen)
}

// lock opens and locks a lock file. It fails with os.ErrNotExist if the file was removed before the lock was
// taken, and with storage.ErrInUse if another process has the lock.
func lock(path string, create bool) (*os.File, error) {
	flags := os.O_RDONLY | unix.O_CLOEXEC // read-only: the disk may be remounted read-only
	if create {
		flags |= os.O_CREATE
	}
	f, err := safefs.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, typed(err, "open lock of spill session")
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, storage.ErrInUse)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	var here, there unix.Stat_t
	if unix.Fstat(int(f.Fd()), &here) != nil || unix.Stat(path, &there) != nil || here.Ino != there.Ino || here.Dev != there.Dev {
		_ = f.Close()
		return nil, fmt.Errorf("%s was removed: %w", path, os.ErrNotExist)
	}
	return f, nil
}

// sweep removes the directories of sessions whose process is gone. It ignores failures, since these are other
// sessions.
func (s *Store) sweep() {
	names, err := safefs.ReadDir(s.root)
	if err != nil {
		return
	}
	for _, e := range names {
		dir := filepath.Join(s.root, e.Name())
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) || dir == s.dir || safefs.CheckDir(dir) != nil {
			continue // of another user, or not a session
		}
		if f, err := lock(filepath.Join(dir, lockName), false); err == nil {
			if !awaited(f) {
				removeSession(dir)
			}
			_ = f.Close()
		}
	}
}

// awaited tells whether an owner may come back to the files of this lock, which nobody on this machine has. For a process of this machine it is
// known that it is gone, and whether it may be started again. Any other process (on another host, in another container, or before a reboot) counts
// as gone only on a disk that no other host can have, if the lock was not held for a day.
func awaited(lock *os.File) bool {
	info, err := lock.Stat()
	if err != nil {
		return true
	}
	lately := time.Since(info.ModTime()) < keepFor
	if o, ok := ownerIn(lock); ok && o.Local() {
		return o.Alive() && o.PID != os.Getpid() || o.Restarts && lately
	}
	return lately || !onlyHere(lock)
}

// onlyHere tells whether a file is on a file system of one machine, where flock covers every process.
func onlyHere(f *os.File) bool {
	var fs unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &fs) != nil {
		return false
	}
	const zfs = 0x2fc12fc1
	switch fs.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfs:
		return true
	}
	return false
}

// removeSession deletes a session whose lock the caller holds. It deletes the lock file last, so that the next
// sweep goes on if this one is interrupted.
func removeSession(dir string) {
	names, err := safefs.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range names {
		if e.Name() != lockName && !e.IsDir() {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(filepath.Join(dir, lockName))
	_ = os.Remove(dir)
}

// Close implements storage.Storage.
func (s *Store) Close(remove bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	if remove {
		removeSession(s.dir)
	}
	if s.next != nil {
		s.next.Stop()
	}
	err := s.lock.Close()
	s.lock = nil
	return err
}
