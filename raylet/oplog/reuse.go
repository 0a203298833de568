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

// What keeps fresh pages rare: most records die soon after they were written, so the same
// segments are written again and again.

// spareSuffix ends the name of a file that waits to be a segment again. What is in it counts
// for nothing.
const spareSuffix = ".spare"

func isSpare(name string) bool { return strings.HasSuffix(name, spareSuffix) }

// next makes the next segment, to be of size and to hold need bytes at least: out of the largest spare
// one, in plain memory, or a file. A log that grows so uses up what is there first, of whatever size.
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
		_ = l.discard(s) // a new one does as well
	}
	if l.opt.Unlink && l.plain+size <= l.opt.Memory {
		if s := inMemory(l.last+1, size); s != nil {
			l.plain += size
			return s, nil
		}
	}
	return create(l.dir, l.last+1, size, l.opt.Unlink)
}

// inMemory makes a segment that is no file; nil where there is no memory for it.
func inMemory(seq uint32, size int) *segment {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil
	}
	putHeader(mem, seq)
	return &segment{seq: seq, path: segmentName(seq), size: size, mem: mem, scanned: true, end: headerSize}
}

// keepMapped keeps the mapping of the segment written last, since it will mostly be a spare one
// soon; the oldest mappings are given back.
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

// dropIfDead takes a segment that holds nothing live out of the log, and keeps it as a spare one
// or deletes it.
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

// discard gives a segment's memory and file up.
func (l *Log) discard(s *segment) error {
	if s.file == nil {
		l.plain -= s.size
	}
	return s.remove()
}

// retire marks a dead segment's file as one that counts for nothing.
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

// reuse makes a segment of the log out of a retired one, of which nothing but the memory and the file
// are taken: lists may still name the old one. Its old records are of another number and so are not
// valid; a file gets its name once its header is written.
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
