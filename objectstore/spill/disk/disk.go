package disk

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/safefs"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/storage"
)

func init() { storage.Register("file", open) }

const (
	suffix = ".spill"
	mapped = ".map" // files of Allocate
)

// Store is one session's directory.
type Store struct {
	root string // the directory that the user named
	dir  string // the session's directory in it
	bufs *storage.Buffers
	by   storage.Options

	number *uint16 // number of the target; written by one goroutine at a time: that of Open, or of the probe

	direct atomic.Bool // cleared for good when the file system refuses direct I/O
	maps   atomic.Uint64

	mu   sync.Mutex
	lock *os.File    // flocked; nil after Close
	next *time.Timer // timer of seen
}

var _ storage.Local = (*Store)(nil)

func open(_ context.Context, u *url.URL, o storage.Options) (storage.Storage, error) {
	direct := true
	for k, v := range u.Query() {
		b, err := strconv.ParseBool(v[0])
		if k != "direct" || err != nil {
			return nil, fmt.Errorf("spill target %q: option %s=%s: the only one is direct=true|false", u, k, v[0])
		}
		direct = b
	}
	s := &Store{root: filepath.Clean(u.Path), bufs: o.Buffers, by: o}
	s.dir = filepath.Join(s.root, prefix+o.Session)
	s.direct.Store(direct)
	if err := safefs.MakeRoot(s.root); err != nil {
		return nil, typed(err, "make spill directory "+s.root)
	}
	if err := s.acquire(); err != nil {
		return nil, err
	}
	s.sweep()
	return s, nil
}

// Dir is the session's directory.
func (s *Store) Dir() string { return s.dir }

// Direct tells whether I/O still bypasses the page cache.
func (s *Store) Direct() bool { return s.direct.Load() }

func (s *Store) path(file uint64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%016x%s", file, suffix))
}

// openFile opens with direct I/O if that works here.
func (s *Store) openFile(path string, flags int) (f *os.File, direct bool, err error) {
	flags |= unix.O_CLOEXEC
	if s.direct.Load() {
		f, err = safefs.OpenFile(path, flags|unix.O_DIRECT, 0o600)
		if !errors.Is(err, unix.EINVAL) {
			return f, true, err
		}
		s.direct.Store(false)
		flags &^= os.O_EXCL // the open that was refused may have made the file
	}
	f, err = safefs.OpenFile(path, flags, 0o600)
	return f, false, err
}

// Delete implements storage.Storage.
func (s *Store) Delete(_ context.Context, file uint64) error {
	if err := os.Remove(s.path(file)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return typed(err, "delete spill file")
	}
	return nil
}

// List implements storage.Storage.
func (s *Store) List(context.Context) ([]storage.File, error) {
	names, err := safefs.ReadDir(s.dir)
	if err != nil {
		return nil, typed(err, "list spill directory")
	}
	var out []storage.File
	for _, e := range names {
		digits, ok := strings.CutSuffix(e.Name(), suffix)
		n, err := strconv.ParseUint(digits, 16, 64)
		if !ok || err != nil || len(digits) != 16 {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // deleted since
		}
		out = append(out, storage.File{Number: n, Size: uint64(info.Size())})
	}
	return out, nil
}

// Probe implements storage.Storage.
func (s *Store) Probe(_ context.Context, write bool) (spill.Capacity, error) {
	var c spill.Capacity
	if write {
		if err := s.tryWrite(); err != nil {
			return c, err
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(s.dir, &fs); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return c, fmt.Errorf("spill directory %s: %w", s.dir, storage.ErrGone)
		}
		return c, typed(&os.PathError{Op: "statfs", Path: s.dir, Err: err}, "free space")
	}
	// Space reserved for root is neither used nor ours, as df counts.
	unit := uint64(fs.Frsize)
	c.Used = (fs.Blocks - fs.Bfree) * unit
	c.Total = c.Used + fs.Bavail*unit
	return c, nil
}

// tryWrite checks that a file can be made. It makes the session's directory again if only that was lost.
func (s *Store) tryWrite() error {
	if _, err := os.Stat(s.dir); errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(s.root); err != nil {
			return fmt.Errorf("spill directory %s: %w", s.root, storage.ErrGone)
		}
		if err := s.acquire(); err != nil {
			return err
		}
	}
	path := filepath.Join(s.dir, "probe")
	f, err := safefs.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return create(err, "probe")
	}
	_, err = f.Write(make([]byte, 4096))
	err = errors.Join(err, f.Close(), os.Remove(path))
	return typed(err, "probe")
}

// typed adds the sentinel for an error of the file system. nil stays nil.
func typed(err error, what string) error {
	var kind error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EFBIG):
		kind = spill.ErrFull
	case errors.Is(err, unix.EROFS), errors.Is(err, os.ErrPermission), errors.Is(err, errs.ErrPermission):
		kind = storage.ErrReadOnly
	case errors.Is(err, os.ErrNotExist):
		kind = spill.ErrMissing
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w: %w", what, kind, err)
}

// create is typed for a call that makes a file: ErrNotExist then means that the directory is gone.
func create(err error, what string) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("%s: %w: %w", what, storage.ErrGone, err)
	}
	return typed(err, what)
}
