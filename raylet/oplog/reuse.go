package oplog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Reuse of segments avoids fresh pages: most records are freed soon after they were written, so the same segments
// can be written again and again.

// spareSuffix ends the name of a file that waits to be a segment again. Its content has no meaning.
const spareSuffix = ".spare"

func isSpare(name string) bool { return strings.HasSuffix(name, spareSuffix) }

// next makes the next segment, of the given size and for at least need bytes: from the largest spare one that is not far too large, in plain
// memory, or as a new file. So a growing log first uses up its spares, and one that has become small does not go on in large ones.
func (l *Log) next(size, need int) (*segment, error) {
	best := -1
	for i, s := range l.spares {
		if s.size >= need && s.size <= 2*size && (best < 0 || s.size > l.spares[best].size) {
			best = i
		}
	}
	if best >= 0 {
		s := l.takeSpare(best)
		if again, err := s.reuse(filepath.Join(l.dir, segmentName(l.last+1)), l.last+1); err == nil {
			l.trimSpares(s.size)
			return again, nil
		}
		_ = l.discard(s) // use a new one
	}
	l.trimSpares(size)
	if l.opt.Unlink && l.plain+size <= l.opt.Memory {
		if s := l.inMemory(size); s != nil {
			return s, nil
		}
	}
	return l.create(segmentName(l.last+1), l.last+1, size)
}

// trimSpares deletes spares, the largest ones, of which none was needed while segments were begun that are twice what may be spare.
func (l *Log) trimSpares(size int) {
	l.unused = min(l.unused, len(l.spares))
	if l.begun += size; l.begun < 2*l.opt.Reuse {
		return
	}
	for range l.unused {
		best := 0
		for i, s := range l.spares {
			if s.size > l.spares[best].size {
				best = i
			}
		}
		_ = l.discard(l.takeSpare(best)) // a file that cannot be deleted goes with the log
	}
	l.unused, l.begun = len(l.spares), 0
}

func (l *Log) takeSpare(i int) *segment {
	s := l.spares[i]
	l.spares = slices.Delete(l.spares, i, i+1)
	return s
}

// wantsSpare tells whether a segment of which nothing is needed is kept. On a full disk one is in any case: others would take its room.
func (l *Log) wantsSpare(s *segment) bool {
	return s.size <= l.opt.MaxSegment &&
		(l.wantsReserve() && l.reserve == nil || l.full && len(l.spares) == 0 || l.spareBytes()+s.size <= l.opt.Reuse)
}

// keepSpare keeps a segment to be written again.
func (l *Log) keepSpare(s *segment) {
	s.starts, s.freed, s.lapsed = nil, nil, nil
	if l.wantsReserve() && l.reserve == nil {
		l.reserve = s
		return
	}
	l.spares = append(l.spares, s)
}

// inMemory makes the next segment of plain memory; nil if there is no memory for it.
func (l *Log) inMemory(size int) *segment {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil
	}
	l.plain += size
	putHeader(mem, l.last+1)
	return &segment{seq: l.last + 1, path: segmentName(l.last + 1), size: size, mem: mem, scanned: true, end: headerSize, starts: newBitmap(size)}
}

// keepMapped keeps the mapping of the segment written last, since it will usually be a spare soon; the oldest
// mappings are unmapped.
func (l *Log) keepMapped(s *segment) error {
	if s.file != nil {
		l.mapped = append(l.mapped, s)
	}
	var err error
	bytes := 0
	keep := make([]*segment, 0, len(l.mapped))
	for _, o := range slices.Backward(l.mapped) {
		if l.bySeq[o.seq] != o || o.mem == nil {
			continue
		}
		if bytes += o.size; bytes <= l.opt.Reuse {
			keep = append(keep, o)
		} else {
			err = errors.Join(err, o.unmap())
		}
	}
	slices.Reverse(keep)
	l.mapped = keep
	if err != nil {
		return fmt.Errorf("owner log %s: %w", s.path, err)
	}
	return l.settle(s)
}

func (l *Log) spareBytes() (n int) {
	for _, s := range l.spares {
		n += s.size
	}
	return n
}

// discard frees a segment's memory and file.
func (l *Log) discard(s *segment) error {
	if s.file == nil {
		l.plain -= s.size
	}
	return s.remove()
}

// retire renames a dead segment's file to a spare.
func (s *segment) retire() error {
	if s.linked {
		path := s.path + spareSuffix
		if err := os.Rename(s.path, path); err != nil {
			return err
		}
		s.path = path
	}
	return nil
}

// reuse makes a new segment from the memory and the file of a retired one; lists may still refer to the old one.
// Old records in it have another number and so are not valid. A file gets its name once its header is written.
func (s *segment) reuse(path string, seq uint32) (*segment, error) {
	mem, ready := s.mem, s.ready
	if mem == nil {
		var err error
		if mem, err = unix.Mmap(int(s.file.Fd()), 0, s.size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return nil, err
		}
		s.mem, ready = mem, 0
	}
	clear(mem[:headerSize])
	putHeader(mem, seq)
	if s.linked {
		if err := os.Rename(s.path, path); err != nil {
			return nil, err
		}
	}
	return &segment{seq: seq, file: s.file, path: path, linked: s.linked, size: s.size, mem: mem, ready: ready, scanned: true, end: headerSize, starts: newBitmap(s.size)}, nil
}
