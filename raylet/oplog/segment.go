package oplog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/safefs"
)

// segment is one file of the log, or a block of memory in its place.
type segment struct {
	seq    uint32
	file   *os.File // nil: plain memory
	path   string
	linked bool // the file still has its name
	size   int
	mem    []byte // the mapping, or plain memory; nil if not mapped
	ready  int    // up to where mem was pre-faulted
	views  int    // views of mem under way; it stays mapped until the last has ended
	unused bool   // unmap then

	scanned bool
	bad     error // its damage, once scanned: what follows is unknown, so it stays
	end     int   // where its records end, once scanned
	sealed  bool
	live    int    // records that were not freed, and the unknown ones
	lapsing int    // of these, that have lapsed
	starts  bitmap // where records begin, once scanned
	freed   bitmap // of them; nil: none
	lapsed  bitmap // of them, whether they were freed since or not; nil: none
	cursor  int    // where Tend goes on
}

func segmentName(seq uint32) string { return fmt.Sprintf("%08x.oplog", seq) }

// bytes is how many bytes its records take, once scanned.
func (s *segment) bytes() int64 { return int64(max(s.end-headerSize, 0)) }

// create makes a segment with every byte allocated: a store to it cannot fail for lack of space (SIGBUS), whatever
// happens to the disk.
func (l *Log) create(name string, seq uint32, size int) (*segment, error) {
	path := filepath.Join(l.dir, name)
	f, err := safefs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, diskError(err, path, size)
	}
	s := &segment{seq: seq, file: f, path: path, linked: true, size: size, scanned: true, end: headerSize, starts: newBitmap(size)}
	fail := func(err error) (*segment, error) {
		return nil, errors.Join(diskError(err, path, size), f.Close(), os.Remove(path))
	}
	if err := l.allocate(f, size); err != nil {
		return fail(err)
	}
	if s.mem, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fail(fmt.Errorf("mmap: %w", err))
	}
	putHeader(s.mem, seq)
	if l.opt.Unlink {
		if err := os.Remove(path); err != nil {
			return fail(errors.Join(err, unix.Munmap(s.mem)))
		}
		s.linked = false
	}
	return s, nil
}

func allocate(f *os.File, size int) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size))
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP): // the file system does not support it: write zeros
			_, err = io.CopyN(f, zeros{}, int64(size))
			return err
		default:
			return err
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// diskError gives a full or failed disk its error code.
func diskError(err error, path string, size int) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return &errs.Error{Code: errs.CodeOutOfDisk, Msg: fmt.Sprintf("owner log %s: no room for %d bytes; free some there or set another directory", path, size)}
	}
	return fmt.Errorf("owner log %s: %w", path, err)
}

// prefaultStep is how many bytes of a segment are pre-faulted at once: few enough that an idle job costs little,
// enough that one system call per step does not matter.
const prefaultStep = 256 << 10

// prefault pre-faults the pages before upTo, in one call instead of a fault for each.
func (s *segment) prefault(upTo int) {
	for s.ready < upTo {
		to := min(s.ready+prefaultStep, s.size)
		if err := unix.Madvise(s.mem[s.ready:to], unix.MADV_POPULATE_WRITE); err != nil {
			to = s.size // not on this kernel: each page faults then
		}
		s.ready = to
	}
}

// seal ends the writing of a segment.
func (s *segment) seal() {
	putSeal(s.mem, s.seq, s.end)
	s.sealed = true
}

func (s *segment) unmap() error {
	if s.mem == nil {
		return nil
	}
	if s.views > 0 { // a view's callback may append, and so want the mapping gone
		s.unused = true
		return nil
	}
	mem := s.mem
	s.mem, s.unused = nil, false
	return unix.Munmap(mem)
}

// open takes over a segment of an earlier process.
func open(path string, seq uint32) (*segment, error) {
	f, err := safefs.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("owner log: %w", err)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("owner log: %w", errors.Join(err, f.Close()))
	}
	return &segment{seq: seq, file: f, path: path, linked: true, size: int(st.Size())}, nil
}

// view maps a segment for reading and gives its bytes to f.
func (s *segment) view(f func(b []byte) error) error {
	if s.mem != nil {
		s.views++
		err := f(s.mem[:s.end])
		if s.views--; s.views == 0 && s.unused {
			err = errors.Join(err, s.unmap())
		}
		return err
	}
	if s.size < headerSize {
		return f(nil)
	}
	n := s.size
	if s.scanned {
		n = s.end
	}
	if n == 0 {
		return f(nil)
	}
	b, err := unix.Mmap(int(s.file.Fd()), 0, n, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("owner log %s: mmap: %w", s.path, err)
	}
	_ = unix.Madvise(b, unix.MADV_SEQUENTIAL) // advice only
	return errors.Join(f(b), unix.Munmap(b))
}

// check scans a segment of an earlier process once, to know its records. It gives the damage that it finds.
func (l *Log) check(s *segment) error {
	if s.scanned {
		return nil
	}
	if err := s.view(s.scan); err != nil {
		return err
	}
	s.scanned = true
	l.live += s.bytes()
	return s.bad
}

func (s *segment) scan(b []byte) error {
	end, ok := getHeader(b, s.seq)
	if !ok {
		if len(b) >= headerSize+prefix && binary.LittleEndian.Uint64(b[headerSize:]) != 0 {
			s.bad = fmt.Errorf("owner log %s: its header is damaged: %w", s.path, ErrCorrupt)
			s.live++
		}
		return nil // else its creation was interrupted
	}
	s.starts = newBitmap(len(b))
	s.end = scan(b, s.seq, func(off int, _ []byte) bool {
		s.starts.set(off / align)
		s.live++
		return true
	})
	if s.sealed = end != 0; s.sealed && s.end != end {
		s.bad = fmt.Errorf("owner log %s: the record at %d is damaged, records end at %d: %w", s.path, s.end, end, ErrCorrupt)
	} else if at := validAfter(b, s.seq, s.end); !s.sealed && at > 0 {
		s.bad = fmt.Errorf("owner log %s: the record at %d is damaged, one that is whole follows at %d: %w", s.path, s.end, at, ErrCorrupt)
	}
	if s.bad != nil {
		s.live++
	}
	return nil
}

// damaged says that a record is not as it was appended.
func (s *segment) damaged(off int) error {
	return fmt.Errorf("owner log %s: the record at %d is damaged: %w", s.path, off, ErrCorrupt)
}

// remove closes the file and deletes it.
func (s *segment) remove() error {
	err := s.close()
	if s.linked {
		s.linked = false
		err = errors.Join(err, os.Remove(s.path))
	}
	return err
}

func (s *segment) close() error {
	if s.mem != nil && !s.sealed {
		s.seal()
	}
	err := s.unmap()
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return err
}
