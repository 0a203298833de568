package disk

import (
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
	attempts = 10 // to take a lock whose directory is being removed

	keepFor   = 24 * time.Hour // after the session was last seen open
	seenEvery = time.Hour
)

// acquire makes the session's directory and takes its lock.
func (s *Store) acquire() error {
	for range attempts {
		if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return create(err, "make spill directory")
		}
		if err := safefs.CheckDir(s.dir); errors.Is(err, os.ErrNotExist) {
			continue // another process swept it just now
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
		var note string
		if s.keep {
			note = bootID()
		}
		if err := safefs.Rewrite(path, []byte(note)); err != nil {
			_ = f.Close()
			return create(err, "write lock of spill session")
		}
		s.mu.Lock()
		if s.lock != nil {
			_ = s.lock.Close() // of a directory that somebody deleted
		}
		s.lock = f
		s.mu.Unlock()
		s.seen()
		return nil
	}
	return fmt.Errorf("spill directory %s: it was removed %d times while it was opened: %w", s.dir, attempts, storage.ErrGone)
}

// seen has the lock file say when the session was last open, now and from time to time: its files are kept for a day after that.
func (s *Store) seen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil || !s.keep {
		return
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Join(s.dir, lockName), now, now) // it may be gone, or the disk be read-only: the next time may do
	if s.next != nil {
		s.next.Stop()
	}
	s.next = time.AfterFunc(seenEvery, s.seen)
}

// lock opens and locks a lock file. It is os.ErrNotExist if the file was removed before the lock
// was had, storage.ErrInUse if another process has it.
func lock(path string, create bool) (*os.File, error) {
	flags := os.O_RDONLY | unix.O_CLOEXEC // no writer: the disk may be remounted read-only under it
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

// sweep removes the directories of sessions whose process is gone. What cannot be removed is
// left: it is not this session's.
func (s *Store) sweep() {
	names, err := safefs.ReadDir(s.root)
	if err != nil {
		return
	}
	for _, e := range names {
		dir := filepath.Join(s.root, e.Name())
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) || dir == s.dir || safefs.CheckDir(dir) != nil {
			continue // another user's, or nobody's
		}
		if f, err := lock(filepath.Join(dir, lockName), false); err == nil {
			if !awaited(f) {
				removeSession(dir)
			}
			_ = f.Close()
		}
	}
}

// awaited tells whether the process that had this lock may come back to its files: it said so, the
// machine still runs and it was there within a day.
func awaited(lock *os.File) bool {
	var note [64]byte
	n, _ := lock.ReadAt(note[:], 0)
	info, err := lock.Stat()
	return err == nil && n > 0 && string(note[:n]) == bootID() && time.Since(info.ModTime()) < keepFor
}

// bootID names this run of the machine.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// removeSession deletes a session whose lock the caller holds. The lock file goes last, so that a sweep
// that is interrupted is taken up by the next.
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
