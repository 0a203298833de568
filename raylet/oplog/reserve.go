package oplog

import (
	"fmt"
	"path/filepath"
)

// A log with files keeps one segment in reserve, which is allocated and not written to. Only Tend may take it, when no other segment can be made: so
// the tail moves on when the disk is full, and the segment that this empties is the next reserve. A job whose log has one segment has none: it
// would take twice the disk.

// wantsReserve tells whether the log keeps a reserve.
func (l *Log) wantsReserve() bool { return !l.opt.Unlink && l.last > 1 }

// keepReserve sees to it that there is a reserve into which the segments of today can be emptied, and not a much larger one.
func (l *Log) keepReserve() {
	want := l.active.size
	if r := l.reserve; l.tending || !l.wantsReserve() || r != nil && r.size >= want && r.size <= 4*want {
		return
	}
	best := -1
	for i, s := range l.spares {
		if s.size >= want && s.size <= 4*want && (best < 0 || s.size < l.spares[best].size) {
			best = i
		}
	}
	var fresh *segment
	if best >= 0 {
		fresh = l.takeSpare(best)
	} else {
		var err error
		name := fmt.Sprintf("reserve-%08x%s", l.last, spareSuffix) // no segment has that name, nor another reserve
		if fresh, err = l.create(name, 0, want); err != nil {
			return // the one there is stays
		}
		if fresh.unmap() != nil {
			_ = l.discard(fresh) // a file that cannot be deleted now goes with the log
			return
		}
	}
	if l.reserve != nil {
		_ = l.discard(l.reserve)
	}
	l.reserve = fresh
}

// lastResort makes the next segment for Tend where there is no room for one: of the reserve; of a log whose files have no name, of memory, whatever
// its bound. It is nil if that cannot be.
func (l *Log) lastResort(size, need int) *segment {
	if l.opt.Unlink {
		return l.inMemory(size)
	}
	r := l.reserve
	if r == nil || r.size < need {
		return nil
	}
	l.reserve = nil
	s, err := r.reuse(filepath.Join(l.dir, segmentName(l.last+1)), l.last+1)
	if err != nil {
		_ = l.discard(r)
		return nil
	}
	return s
}
