package oplog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/safefs"
)

// Errors of this package; see also its documentation.
var (
	ErrCorrupt  = errors.New("owner log damaged")
	ErrClosed   = errors.New("owner log closed")
	ErrNoRecord = errors.New("no such record in the owner log")
)

// Sizes of segments: the first is small, since most jobs are small; a log with much live data has fewer, larger
// ones. A log may also have MinSegment bytes of dead records, whatever is live.
const (
	DefaultMinSegment = 4 << 20
	DefaultMaxSegment = 64 << 20
	DefaultReuse      = 32 << 20
	DefaultMemory     = 32 << 20
)

// Options configure a Log. Zero values mean the defaults.
type Options struct {
	MinSegment, MaxSegment int // bytes
	// Unlink removes each file's name at once, so that nothing can be left behind. The log then lives as long as
	// the Log value, which survives panics of its owner, and cannot be opened again.
	Unlink bool
	// Reuse bounds the bytes of dead segments that are kept to be written again, and of older live ones that stay
	// mapped until they are dead: a fresh page of a file costs more than all the records in it.
	Reuse int
	// Memory is how many bytes of segments are plain memory, only with Unlink: its pages cost a fifth of a file's.
	// Further segments are files, whose pages can be written out.
	Memory int
}

// Log is an open log. It is not safe for concurrent use.
type Log struct {
	dir    string
	opt    Options
	segs   []*segment // in order, the first is the tail; the last may be the one that is written to
	bySeq  map[uint32]*segment
	active *segment
	mem    []byte // of active
	off    int    // where the next record goes in active
	ready  int    // how far active was pre-faulted
	last   uint32 // highest number used
	closed bool

	live    int64 // bytes of records that were neither freed nor have lapsed
	dead    int64 // bytes of the other records in segs
	full    bool  // the last segment that was needed could not be made
	failed  int64 // dead bytes up to which Tend is not to be tried again; 0: it has not failed
	tending bool  // Tend is under way: it may write into the reserve
	sealed  int64 // bytes appended to segments before active, ever
	tended  int64 // bytes appended when Tend was called last

	mapped  []*segment // written before active and still mapped, oldest first
	spares  []*segment // dead segments, kept to be written again: their pages exist already
	unused  int        // the fewest spares that were left since begun was 0
	begun   int        // bytes of segments begun since then
	reserve *segment   // for Tend, when no other segment can be made; nil: there is none
	plain   int        // bytes of segments in plain memory, spares too
	stats   Stats

	allocate func(f *os.File, size int) error // gives a file its bytes; a test may have it fail
}

// Stats describe a log.
type Stats struct {
	Segments int
	Bytes    int64  // allocated to them
	Spare    int64  // allocated to spare segments, and to the reserve
	Live     int64  // bytes of records that are live, as far as known
	Dead     int64  // bytes of the others
	Records  int    // not freed, as far as known
	Deleted  uint64 // segments
}

// Open opens the log in dir, and makes dir if it is missing. Records of an earlier process are kept; Replay reads
// them.
func Open(dir string, opt Options) (*Log, error) {
	if opt.MinSegment <= 0 {
		opt.MinSegment = DefaultMinSegment
	}
	if opt.MaxSegment < opt.MinSegment {
		opt.MaxSegment = max(DefaultMaxSegment, opt.MinSegment)
	}
	if opt.Reuse <= 0 {
		opt.Reuse = DefaultReuse
	}
	if opt.Memory <= 0 {
		opt.Memory = DefaultMemory
	}
	if err := safefs.MakeDir(dir); err != nil {
		return nil, diskError(err, dir, 0)
	}
	l := &Log{dir: dir, opt: opt, bySeq: make(map[uint32]*segment), allocate: allocate}
	names, err := safefs.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("owner log: %w", err)
	}
	for _, n := range names {
		if isSpare(n.Name()) {
			if err := os.Remove(filepath.Join(dir, n.Name())); err != nil {
				return nil, fmt.Errorf("owner log: %w", err)
			}
			continue
		}
		hex, ok := strings.CutSuffix(n.Name(), ".oplog")
		seq, err := strconv.ParseUint(hex, 16, 32)
		if !ok || err != nil || n.Name() != segmentName(uint32(seq)) || seq == 0 {
			continue // not ours
		}
		s, err := open(filepath.Join(dir, n.Name()), uint32(seq))
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.add(s)
	}
	slices.SortFunc(l.segs, func(a, b *segment) int { return int(int64(a.seq) - int64(b.seq)) })
	return l, nil
}

func (l *Log) add(s *segment) {
	l.segs = append(l.segs, s)
	l.bySeq[s.seq] = s
	l.last = max(l.last, s.seq)
}

// Append adds a record and returns the cookie by which it is read and freed, never zero. The bytes are copied.
// When it returns, the record survives the process.
func (l *Log) Append(rec []byte) (cookie uint64, err error) {
	n := span(len(rec))
	if l.off+n > l.ready {
		if err := l.room(len(rec)); err != nil {
			return 0, err
		}
	}
	off, s := l.off, l.active
	putRecord(l.mem, s.seq, off, rec)
	l.off = off + n
	l.live += int64(n)
	s.starts.set(off / align)
	s.live++
	return uint64(s.seq)<<32 | uint64(off), nil
}

// room makes the next n bytes writable: more pages of the segment, or a new segment.
func (l *Log) room(n int) error {
	switch {
	case l.closed:
		return ErrClosed
	case n > MaxRecord:
		return errs.New(errs.CodeInvalid, "owner log: a record of %d bytes; at most %d", n, MaxRecord)
	}
	if l.active == nil || l.off+span(n) > l.active.size {
		if err := l.rotate(n); err != nil {
			return err
		}
	}
	s := l.active
	s.prefault(l.off + span(n))
	l.ready = s.ready
	return nil
}

// rotate goes on in a new segment with room for a record of n bytes. If there is no room for one, the old one is left as it is.
func (l *Log) rotate(n int) error {
	need := headerSize + span(n)
	size := l.segmentSize()
	page := os.Getpagesize()
	size = (max(size, need) + page - 1) / page * page
	if l.last == ^uint32(0) {
		return errs.New(errs.CodeInvalid, "owner log %s: segment numbers are used up", l.dir)
	}
	s, err := l.next(size, need)
	if err == nil {
		l.full, l.failed = false, 0
	} else {
		l.full = true
		if l.tending {
			s = l.lastResort(size, need)
		}
		if s == nil {
			return err
		}
	}
	old := l.active
	l.sync()
	l.sealed += int64(l.off)
	l.add(s)
	l.active, l.mem, l.off, l.ready = s, s.mem, headerSize, s.ready
	if old == nil {
		return nil
	}
	old.seal()
	err = l.keepMapped(old)
	l.keepReserve()
	return err
}

// segmentSize is the size of the next segment, but for a larger record.
func (l *Log) segmentSize() int {
	size := l.opt.MinSegment
	for all := int(l.allocated() / 4); size < all && size < l.opt.MaxSegment; {
		size *= 2
	}
	return min(size, l.opt.MaxSegment)
}

// sync copies what the fast path keeps in the Log into the segment.
func (l *Log) sync() {
	if l.active != nil {
		l.active.end = l.off
	}
}

func (l *Log) allocated() (n int64) {
	for _, s := range l.segs {
		n += int64(s.size)
	}
	return n
}

// Stats gives the present figures.
func (l *Log) Stats() Stats {
	st := l.stats
	st.Segments, st.Bytes, st.Live, st.Dead = len(l.segs), l.allocated(), l.live, l.dead
	st.Spare = int64(l.spareBytes())
	if l.reserve != nil {
		st.Spare += int64(l.reserve.size)
	}
	for _, s := range l.segs {
		st.Records += s.live
	}
	return st
}

// Close closes the log and keeps its files. It may be called more than once.
func (l *Log) Close() error {
	if l.closed {
		return nil
	}
	l.sync()
	l.closed = true
	var err error
	for _, s := range l.segs {
		err = errors.Join(err, s.close())
	}
	for _, s := range l.spares {
		err = errors.Join(err, s.remove())
	}
	if l.reserve != nil {
		err = errors.Join(err, l.reserve.remove())
	}
	l.spares, l.reserve, l.plain = nil, nil, 0
	l.active, l.mapped, l.mem, l.off, l.ready = nil, nil, nil, 0, 0
	return err
}

// Remove closes the log and deletes its files, and its directory if that is then empty.
func (l *Log) Remove() error {
	err := l.Close()
	for _, s := range l.segs {
		if s.linked {
			s.linked = false
			err = errors.Join(err, os.Remove(s.path))
		}
	}
	l.segs = nil
	clear(l.bySeq)
	if rm := os.Remove(l.dir); rm != nil && !errors.Is(rm, os.ErrNotExist) {
		if names, e := os.ReadDir(l.dir); e != nil || len(names) == 0 {
			err = errors.Join(err, rm)
		}
	}
	return err
}
