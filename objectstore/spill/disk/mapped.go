package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"mobula/internal/safefs"
)

// Allocate implements storage.Local. The file is not opened for direct I/O, since it will be mapped.
func (s *Store) Allocate(size uint64) (*os.File, error) {
	var f *os.File
	for { // a killed session may have used some numbers
		path := filepath.Join(s.dir, fmt.Sprintf("%d%s", s.maps.Add(1), mapped))
		var err error
		f, err = safefs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_CLOEXEC, 0o600)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, create(err, "make mapped file")
		}
	}
	if err := s.fillBlocks(f, size); err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return nil, typed(err, fmt.Sprintf("reserve %d bytes for a mapped file", size))
	}
	return f, nil
}

// fillBlocks gives every page a block: a store into a mapped hole would be a SIGBUS on a full disk.
func (s *Store) fillBlocks(f *os.File, size uint64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size))
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		if err != nil {
			err = &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
		}
		return err
	}
	buf := s.bufs.Get()
	defer s.bufs.Put(buf)
	clear(buf)
	for off := uint64(0); off < size; {
		n, err := f.WriteAt(buf[:min(uint64(len(buf)), size-off)], int64(off))
		if err != nil {
			return err
		}
		off += uint64(n)
	}
	return nil
}

// Reopen implements storage.Local.
func (s *Store) Reopen(path string) (*os.File, error) {
	if err := s.mine(path); err != nil {
		return nil, err
	}
	f, err := safefs.OpenFile(path, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, typed(err, "open mapped file")
	}
	return f, nil
}

// Allocated implements storage.Local.
func (s *Store) Allocated() ([]string, error) {
	names, err := safefs.ReadDir(s.dir)
	if err != nil {
		return nil, typed(err, "list mapped files")
	}
	var out []string
	for _, e := range names {
		if strings.HasSuffix(e.Name(), mapped) {
			out = append(out, filepath.Join(s.dir, e.Name()))
		}
	}
	return out, nil
}

// Unlink implements storage.Local.
func (s *Store) Unlink(path string) error {
	if err := s.mine(path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return typed(err, "unlink mapped file")
	}
	return nil
}

func (s *Store) mine(path string) error {
	if filepath.Dir(path) != s.dir || !strings.HasSuffix(path, mapped) {
		return fmt.Errorf("%s is no mapped file of %s: %w", path, s.dir, os.ErrNotExist)
	}
	return nil
}
