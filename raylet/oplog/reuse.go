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

// next makes the next segment, of the given size and for at least need bytes: from the largest spare one, in plain
// memory, or as a new file. So a growing log first uses up its spares, whatever their size.
func (l *Log) next(size, need int) (*segment, error) {
	best := -1
	for i, s := range l.spares {
		if s.size >= need && (best < 0 || s.size > l.spares[best].size) {
			best = i
		}
	}
	if best >= 0 {
		s := l.spares[best]
		l.spares = slices.Delete(l.spares, best, best+1)
		if again, err := s.reuse(filepath.Join(l.dir, segmentName(l.last+1)), l.last+1); err == nil {
			return again, nil
		}
		_ = l.discard(s) // use a new one
	}
	if l.opt.Unlink && l.plain+size <= l.opt.Memory {
		if s := inMemory(l.last+1, size); s != nil {
			l.plain += size
			return s, nil
		}
	}
	return create(l.dir, l.last+1, size, l.opt.Unlink)
}

// inMemory makes a segment of plain memory; nil if there is no memory for it.
func inMemory(seq uint32, size int) *segment {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil
	}
	putHeader(mem, seq)
	return &segment{seq: seq, path: segmentName(seq), size: size, mem: mem, scanned: true, end: headerSize}
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
	return l.dropIfDead(s)
}

// dropIfDead removes a segment without live records from the log, and keeps it as a spare or deletes it.
func (l *Log) dropIfDead(s *segment) error {
	if s.live > 0 || !s.scanned {
		return nil
	}
	l.segs = slices.DeleteFunc(l.segs, func(o *segment) bool { return o == s })
	delete(l.bySeq, s.seq)
	l.stats.Deleted++
	if s.views == 0 && s.size <= l.opt.MaxSegment && l.spareBytes()+s.size <= l.opt.Reuse && s.retire() == nil {
		l.spares = append(l.spares, s)
		return nil
	}
	if err := l.discard(s); err != nil {
		return fmt.Errorf("owner log %s: %w", s.path, err)
	}
	return nil
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
	return &segment{seq: seq, file: s.file, path: path, linked: s.linked, size: s.size, mem: mem, ready: ready, scanned: true, end: headerSize}, nil
}
