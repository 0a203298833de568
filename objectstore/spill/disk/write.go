package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"mobula/objectstore/spill/format"
)

// depth is how many batches of a file are in flight: while one is written, the next is checksummed.
const depth = 2

// Put implements storage.Storage.
func (s *Store) Put(ctx context.Context, file uint64, st *format.Stream) error {
	err := s.put(ctx, file, st)
	if errors.Is(err, unix.EINVAL) && s.direct.CompareAndSwap(true, false) {
		st.Rewind() // the file system accepts O_DIRECT, but fails the I/O
		err = s.put(ctx, file, st)
	}
	return err
}

func (s *Store) put(ctx context.Context, file uint64, st *format.Stream) error {
	path := s.path(file)
	f, direct, err := s.openFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return create(err, "make spill file")
	}
	err = reserve(f, st.Size())
	if err == nil {
		err = s.batches(ctx, f, direct, st)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
		return typed(err, fmt.Sprintf("write spill file %s of %d bytes", path, st.Size()))
	}
	return nil
}

// reserve allocates every block at once, if the file system can.
func reserve(f *os.File, size uint64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size))
	if err == nil || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
}

// batches writes the stream, a few batches at a time.
func (s *Store) batches(ctx context.Context, f *os.File, direct bool, st *format.Stream) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
		todo  = make(chan *format.Batch)
	)
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = err
		}
	}
	failed := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return first != nil
	}
	for range depth {
		wg.Go(func() {
			behind := dropper{fd: int(f.Fd()), off: direct}
			for b := range todo {
				if !failed() {
					if err := writev(int(f.Fd()), b); err != nil {
						fail(&os.PathError{Op: "write", Path: f.Name(), Err: err})
					}
					behind.wrote(b.Off, uint64(b.Len))
				}
				b.Free()
			}
			behind.flush()
		})
	}
	for !failed() {
		if err := ctx.Err(); err != nil {
			fail(err)
			break
		}
		b := st.Next()
		if b == nil {
			if err := st.Err(); err != nil {
				fail(err)
			}
			break
		}
		todo <- b
	}
	close(todo)
	wg.Wait()
	return first
}

// writev writes a whole batch.
func writev(fd int, b *format.Batch) error {
	off, pieces := int64(b.Off), b.Pieces
	for len(pieces) > 0 {
		n, err := unix.Pwritev(fd, pieces[:min(len(pieces), maxPieces)], off)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrShortWrite
		}
		off += int64(n)
		pieces = advance(pieces, n)
	}
	return nil
}

const maxPieces = 1024 // IOV_MAX

// dropper drops buffered writes from the page cache, one batch behind the writer.
type dropper struct {
	fd       int
	off      bool // direct I/O leaves nothing in the page cache
	from, at uint64
}

func (d *dropper) wrote(off, n uint64) {
	if d.off {
		return
	}
	_ = unix.SyncFileRange(d.fd, int64(off), int64(n), unix.SYNC_FILE_RANGE_WRITE)
	d.flush()
	d.from, d.at = off, off+n
}

func (d *dropper) flush() {
	if d.off || d.at == d.from {
		return
	}
	const wait = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	_ = unix.SyncFileRange(d.fd, int64(d.from), int64(d.at-d.from), wait)
	_ = unix.Fadvise(d.fd, int64(d.from), int64(d.at-d.from), unix.FADV_DONTNEED)
	d.from = d.at
}
