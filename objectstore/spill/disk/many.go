package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
)

// ReadMany implements storage.Storage with one system call.
func (s *Store) ReadMany(_ context.Context, file uint64, parts []storage.Part) error {
	err := s.readMany(file, parts)
	if errors.Is(err, unix.EINVAL) && s.direct.CompareAndSwap(true, false) {
		err = s.readMany(file, parts)
	}
	return err
}

func (s *Store) readMany(file uint64, parts []storage.Part) error {
	path := s.path(file)
	f, direct, err := s.openFile(path, os.O_RDONLY)
	if err != nil {
		return typed(err, "open spill file")
	}
	defer func() { _ = f.Close() }() // only read
	v := vector{bounce: s.bufs.Get()}
	defer s.bufs.Put(v.bounce)
	for i := range parts {
		v.add(parts[i], direct)
	}
	err = v.read(int(f.Fd()))
	if !direct {
		_ = unix.Fadvise(int(f.Fd()), int64(v.from), int64(v.at-v.from), unix.FADV_DONTNEED)
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read %d objects up to %d of %s: the file ends before them: %w", len(parts), v.at, path, spill.ErrCorrupt)
	case err != nil:
		return typed(&os.PathError{Op: "read", Path: path, Err: err}, fmt.Sprintf("read %d objects", len(parts)))
	}
	for _, c := range v.copies {
		copy(c.to, c.from)
	}
	for i := range parts {
		parts[i].CRC = format.Checksum(parts[i].Dst)
	}
	return nil
}

// vector collects one read of consecutive whole pages. Pages of aligned parts are read directly to their place, all
// others into the bounce buffer, from which their bytes are copied.
type vector struct {
	bounce []byte
	used   int // of bounce
	from   uint64
	at     uint64 // end of the collected range in the file; a multiple of a page
	pieces [][]byte
	last   bool // the last piece is part of bounce
	copies []move
}

type move struct{ to, from []byte }

// add appends a part that starts at or after the one before it ends.
func (v *vector) add(p storage.Part, direct bool) {
	if len(p.Dst) == 0 {
		return
	}
	if len(v.pieces) == 0 {
		v.from = p.Off &^ (format.Page - 1)
		v.at = v.from
	}
	if gap := p.Off &^ (format.Page - 1); gap > v.at {
		v.extend(int(gap - v.at))
	}
	rest, off := p.Dst, p.Off
	if off == v.at && len(rest) >= format.Page && (!direct || aligned(rest)) {
		whole := len(rest) &^ (format.Page - 1)
		v.pieces = append(v.pieces, rest[:whole])
		v.last = false
		v.at += uint64(whole)
		rest, off = rest[whole:], off+uint64(whole)
	}
	if len(rest) == 0 {
		return
	}
	if end := format.Align(off+uint64(len(rest)), format.Page); end > v.at {
		v.extend(int(end - v.at))
	}
	// The collected range ends in bounce, where its last bytes are consecutive.
	start := v.used - int(v.at-off)
	v.copies = append(v.copies, move{rest, v.bounce[start : start+len(rest)]})
}

// extend adds n more bytes that are read into bounce.
func (v *vector) extend(n int) {
	if v.last {
		p := &v.pieces[len(v.pieces)-1]
		*p = v.bounce[v.used-len(*p) : v.used+n]
	} else {
		v.pieces = append(v.pieces, v.bounce[v.used:v.used+n])
		v.last = true
	}
	v.used += n
	v.at += uint64(n)
}

func (v *vector) read(fd int) error {
	pieces, off := v.pieces, int64(v.from)
	for len(pieces) > 0 {
		n, err := unix.Preadv(fd, pieces[:min(len(pieces), maxPieces)], off)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 || n%format.Page != 0 { // spill files end at a page
			return io.ErrUnexpectedEOF
		}
		off += int64(n)
		pieces = advance(pieces, n)
	}
	return nil
}

// advance drops the first n bytes.
func advance(pieces [][]byte, n int) [][]byte {
	for n > 0 && n >= len(pieces[0]) {
		n -= len(pieces[0])
		pieces = pieces[1:]
	}
	if n > 0 {
		pieces[0] = pieces[0][n:]
	}
	return pieces
}
