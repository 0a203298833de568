package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
)

// Read implements storage.Storage.
func (s *Store) Read(ctx context.Context, file uint64, off uint64, dst []byte) (uint32, error) {
	crc, err := s.read(ctx, file, off, dst)
	if errors.Is(err, unix.EINVAL) && s.direct.CompareAndSwap(true, false) {
		crc, err = s.read(ctx, file, off, dst)
	}
	return crc, err
}

func (s *Store) read(ctx context.Context, file uint64, off uint64, dst []byte) (uint32, error) {
	path := s.path(file)
	f, direct, err := s.openFile(path, os.O_RDONLY)
	if err != nil {
		return 0, typed(err, "open spill file")
	}
	defer func() { _ = f.Close() }() // only read
	r := reader{fd: int(f.Fd()), direct: direct, bufs: s.bufs}
	if !direct && len(dst) > format.BatchBytes {
		_ = unix.Fadvise(r.fd, int64(off), int64(len(dst)), unix.FADV_SEQUENTIAL)
	}
	crc, err := r.all(ctx, off, dst)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, fmt.Errorf("read %d bytes at %d of %s: the file ends before them: %w", len(dst), off, path, spill.ErrCorrupt)
	case err != nil:
		return 0, typed(&os.PathError{Op: "read", Path: path, Err: err}, fmt.Sprintf("read %d bytes at %d", len(dst), off))
	}
	return crc, nil
}

type reader struct {
	fd     int
	direct bool
	bufs   *storage.Buffers
}

type chunk struct {
	data []byte
	err  error
}

// all reads dst in chunks, one chunk ahead of the checksum.
func (r *reader) all(ctx context.Context, off uint64, dst []byte) (uint32, error) {
	if len(dst) <= format.BatchBytes {
		err := r.chunk(off, dst)
		return format.Checksum(dst), err
	}
	ready := make(chan chunk, 1)
	go func() {
		defer close(ready)
		for at := 0; at < len(dst); at += format.BatchBytes {
			p := dst[at:min(at+format.BatchBytes, len(dst))]
			err := ctx.Err()
			if err == nil {
				err = r.chunk(off+uint64(at), p)
			}
			ready <- chunk{p, err}
			if err != nil {
				return
			}
		}
	}()
	var crc uint32
	var err error
	for c := range ready { // until it is closed: the goroutine uses dst until then
		if c.err != nil {
			err = c.err
			continue
		}
		crc = format.Extend(crc, c.data)
	}
	return crc, err
}

// chunk reads p from off. Whole pages are read directly into an aligned p; the rest goes through a buffer.
func (r *reader) chunk(off uint64, p []byte) error {
	if !r.direct {
		err := r.fill(off, p)
		_ = unix.Fadvise(r.fd, int64(off), int64(len(p)), unix.FADV_DONTNEED)
		return err
	}
	if off%format.Page == 0 && aligned(p) {
		whole := len(p) &^ (format.Page - 1)
		if err := r.fill(off, p[:whole]); err != nil {
			return err
		}
		off, p = off+uint64(whole), p[whole:]
	}
	if len(p) == 0 {
		return nil
	}
	buf := r.bufs.Get()
	defer r.bufs.Put(buf)
	for len(p) > 0 {
		from := off &^ (format.Page - 1)
		skip := int(off - from)
		n := int(format.Align(uint64(skip+min(len(p), format.BatchBytes-skip)), format.Page))
		if err := r.fill(from, buf[:n]); err != nil {
			return err
		}
		n = copy(p, buf[skip:n])
		off, p = off+uint64(n), p[n:]
	}
	return nil
}

// fill reads all of p.
func (r *reader) fill(off uint64, p []byte) error {
	for len(p) > 0 {
		n, err := unix.Pread(r.fd, p, int64(off))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 || (n < len(p) && r.direct && n%format.Page != 0) {
			return io.ErrUnexpectedEOF
		}
		off, p = off+uint64(n), p[n:]
	}
	return nil
}

func aligned(p []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(p)))%format.Page == 0
}
