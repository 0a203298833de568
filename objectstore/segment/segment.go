package segment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/safefs"
)

// Range is Size bytes of the segment from Off.
type Range struct{ Off, Size uint64 }

// Config says where the segment lies and what may be taken for it.
type Config struct {
	// Path of a file on a tmpfs, which a restarted node finds again; empty: a file without a name, which ends with
	// the process.
	Path string
	// Size in bytes: the store's limit. A file has memory only where some is reserved.
	Size uint64
	// Memory tells how much may be reserved; nil: the machine's, Available.
	Memory Memory
	// Margin is what Reserve leaves available to others. Default 64 MiB.
	Margin uint64
}

// Segment is the owner's side of one file: the file and its backing.
type Segment struct {
	file   *os.File
	size   uint64
	path   string
	memory Memory
	margin uint64
	found  bool
}

// DefaultMargin is what a reservation leaves available: room for the heap of a small process.
const DefaultMargin = 64 << 20

// Open makes the segment, or opens the one at the path. It refuses a file of another size or owner: its index
// would not fit.
func Open(cfg Config) (*Segment, error) {
	s := &Segment{size: cfg.Size, path: cfg.Path, memory: cfg.Memory, margin: cfg.Margin}
	if s.memory == nil {
		s.memory = Available
	}
	if s.margin == 0 {
		s.margin = DefaultMargin
	}
	if s.size == 0 || s.size > 1<<46 {
		return nil, errs.New(errs.CodeInvalid, "segment of %d bytes: give the store a limit between 1 and 2^46 bytes", s.size)
	}
	var err error
	switch {
	case cfg.Path != "":
		err = s.openNamed()
	case s.size < hugeFrom:
		err = s.openMemfd()
	default:
		if s.file, err = openHuge(s.size); err != nil {
			err = s.openMemfd()
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Segment) openMemfd() error {
	fd, err := unix.MemfdCreate(memfdName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return unavailable("memfd_create: %v", err)
	}
	s.file = os.NewFile(uintptr(fd), shownName)
	if err := s.file.Truncate(int64(s.size)); err != nil {
		return errors.Join(unavailable("size a memfd to %d bytes: %v", s.size, err), s.file.Close())
	}
	// The seals keep clients from shrinking the file under another's mapping.
	if _, err := unix.FcntlInt(s.file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return errors.Join(unavailable("seal the memfd's size: %v", err), s.file.Close())
	}
	return nil
}

func (s *Segment) openNamed() error {
	if err := safefs.CheckRoot(filepath.Dir(s.path)); err != nil {
		return unopened(s.path, err)
	}
	f, err := safefs.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return unopened(s.path, err)
	}
	s.file = f
	st, err := f.Stat()
	if err != nil {
		return errors.Join(unavailable("stat %s: %v", s.path, err), f.Close())
	}
	switch {
	case st.Size() == 0:
		if err := f.Truncate(int64(s.size)); err != nil {
			return errors.Join(unavailable("size %s to %d bytes: %v", s.path, s.size, err), f.Close())
		}
	case uint64(st.Size()) != s.size:
		return errors.Join(errs.New(errs.CodeInvalid, "segment %s has %d bytes, the store's limit is %d: remove the file or start with the old limit", s.path, st.Size(), s.size), f.Close())
	default:
		s.found = true
	}
	if err := f.Chmod(0o600); err != nil {
		return errors.Join(unavailable("chmod %s: %v", s.path, err), f.Close())
	}
	return nil
}

// unopened is the error of a segment whose file cannot be opened. An error about something in its place keeps its
// code.
func unopened(path string, err error) error {
	if errors.Is(err, errs.ErrPermission) {
		return errs.New(errs.CodePermission, "segment: %v", err)
	}
	return unavailable("segment %s: %v", path, err)
}

// File is the descriptor to send to clients. It stays the segment's.
func (s *Segment) File() *os.File { return s.file }

// Size is the segment's length in bytes.
func (s *Segment) Size() uint64 { return s.size }

// Found tells whether the file existed: a node of this name was killed.
func (s *Segment) Found() bool { return s.found }

// Resize changes the length of a named segment, which no other process may have mapped.
func (s *Segment) Resize(size uint64) error {
	if err := s.file.Truncate(int64(size)); err != nil {
		return unavailable("size %s to %d bytes: %v", s.path, size, err)
	}
	s.size = size
	return nil
}

// Reserve brings memory for all the ranges, or gives an error of CodeSegmentUnavailable that names what was short.
// Ranges that have memory keep it and their content.
func (s *Segment) Reserve(rs []Range) error {
	if err := s.CanReserve(rs); err != nil {
		return err
	}
	for _, r := range rs {
		if err := fallocate(s.file, 0, r); err != nil {
			// The kernel takes back what it had brought for this range. Nothing is punched: a part of a range that
			// was reserved ahead may be granted and written by now.
			return unavailable("fallocate of %d bytes: %v: enlarge %s or give the store a smaller limit", r.Size, err, s.where())
		}
	}
	return nil
}

// Punch gives the memory of the ranges back. A reader then sees zeros.
func (s *Segment) Punch(rs []Range) error {
	var first error
	for _, r := range rs {
		if err := fallocate(s.file, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, r); err != nil && first == nil {
			first = fmt.Errorf("punch [%d, +%d): %w", r.Off, r.Size, err)
		}
	}
	return first
}

// Blocks is the memory the file takes now, in bytes.
func (s *Segment) Blocks() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(s.file.Fd()), &st); err != nil {
		return 0, fmt.Errorf("fstat segment: %w", err)
	}
	return uint64(st.Blocks) * 512, nil
}

// PunchAllBut gives back everything outside the ranges, which must be in order: memory that a dead node had
// reserved but its index does not name.
func (s *Segment) PunchAllBut(keep []Range) error {
	var gaps []Range
	var at uint64
	for _, r := range keep {
		lo := r.Off &^ (pageSize - 1)
		if lo > at {
			gaps = append(gaps, Range{at, lo - at})
		}
		at = max(at, (r.Off+r.Size+pageSize-1)&^(pageSize-1))
	}
	if at < s.size {
		gaps = append(gaps, Range{at, s.size - at})
	}
	return s.Punch(gaps)
}

const pageSize = 4096

// Close closes the file; with remove a named one is unlinked. Mappings stay valid.
func (s *Segment) Close(remove bool) error {
	var err error
	if remove && s.path != "" {
		if err = os.Remove(s.path); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	return errors.Join(err, s.file.Close())
}

func (s *Segment) where() string {
	if s.path == "" {
		return "the machine's or cgroup's memory"
	}
	return filepath.Dir(s.path)
}

func fallocate(f *os.File, mode uint32, r Range) error {
	for r.Size > 0 {
		err := unix.Fallocate(int(f.Fd()), mode, int64(r.Off), int64(r.Size))
		if err != unix.EINTR {
			return err
		}
	}
	return nil
}

func unavailable(format string, args ...any) error {
	return errs.New(errs.CodeSegmentUnavailable, format, args...)
}

// CanReserve gives an error if the ranges could not be reserved now. It reserves nothing.
func (s *Segment) CanReserve(rs []Range) error {
	var n uint64
	for _, r := range rs {
		if r.Off+r.Size < r.Off || r.Off+r.Size > s.size {
			return errs.New(errs.CodeInvalid, "reserve [%d, +%d) of a segment of %d bytes", r.Off, r.Size, s.size)
		}
		n += r.Size
	}
	if free, what := s.memory(s.file); n+s.margin > free {
		return unavailable("%d bytes asked, %d available in %s, %d of them left to others: free memory or give the store a smaller limit", n, free, what, s.margin)
	}
	return nil
}
