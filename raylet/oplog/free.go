package oplog

import "errors"

// Free says that a record is no longer needed. A segment without live records is deleted or reused, unless it is
// the active one. Freeing twice is harmless.
func (l *Log) Free(cookie uint64) error {
	s, off, err := l.find(cookie)
	if err != nil {
		return err
	}
	if err := s.check(); err != nil && !errors.Is(err, ErrCorrupt) {
		return err
	}
	end := s.end
	if s == l.active {
		end = l.off
	}
	if off >= end || s.live == 0 {
		return noRecord(cookie)
	}
	if s.isFreed(off) {
		return nil
	}
	s.setFreed(off)
	s.live--
	if s == l.active {
		return nil
	}
	return l.dropIfDead(s)
}

// a segment with fewer live records than one in compactBelow is worth emptying.
const compactBelow = 4

// staleAbove: where one in staleAbove of all records is of no use, the oldest segment is worth emptying however many of its own are live.
const staleAbove = 3

// Rotations tells how often the log has begun a segment: as long as it is the same there is nothing new for Compact.
func (l *Log) Rotations() uint32 { return l.last }

// Second is the lowest cookie that a record of the second oldest segment may have; zero if there is at most one segment.
func (l *Log) Second() uint64 {
	if len(l.segs) < 2 {
		return 0
	}
	return uint64(l.segs[1].seq) << 32
}

// Compact empties segments: first those of which most records were freed, and the oldest one if a third of all records of the log
// were freed, or are stale: live only until the segments before theirs are gone. It goes on with one segment, and stops after about
// budget bytes of it. For each live record it calls move, which appends what should be kept of it (usually rec itself), notes the new
// cookie, and returns nil; Compact then frees the old record. An error of move ends it; moved records stay moved. It tells
// whether there is more to do.
func (l *Log) Compact(budget, stale int, move func(cookie uint64, rec []byte) error) (more bool, err error) {
	if l.closed {
		return false, ErrClosed
	}
	s := l.toEmpty(stale)
	if s == nil {
		return false, nil
	}
	if err := l.empty(s, budget, move); err != nil {
		return true, err
	}
	return l.toEmpty(stale) != nil, nil
}

// toEmpty is the segment that is to be emptied next; nil: none is worth it.
func (l *Log) toEmpty(stale int) *segment {
	var oldest *segment
	records, live := 0, 0
	for _, s := range l.segs {
		if s.check() != nil {
			continue // it stays as it is
		}
		records += s.records
		live += s.live
		switch {
		case s == l.active || s.emptied:
		case s.live*compactBelow <= s.records:
			return s
		case oldest == nil:
			oldest = s
		}
	}
	if (records-live+stale)*staleAbove < records {
		return nil
	}
	return oldest
}

// empty moves live records out of a segment, from where it last stopped.
func (l *Log) empty(s *segment, budget int, move func(uint64, []byte) error) error {
	if s.cursor == 0 {
		s.cursor = headerSize
	}
	var failed error
	var dead []uint64
	err := s.view(func(b []byte) error {
		for budget > 0 {
			rec, next, ok := getRecord(b, s.seq, s.cursor)
			if !ok {
				s.emptied = true
				break
			}
			cookie := uint64(s.seq)<<32 | uint64(s.cursor)
			if !s.isFreed(s.cursor) {
				if failed = move(cookie, rec); failed != nil {
					return nil
				}
				dead = append(dead, cookie)
			}
			budget -= span(len(rec))
			s.cursor = next
		}
		return nil
	})
	for _, cookie := range dead {
		if l.bySeq[s.seq] == s {
			err = errors.Join(err, l.Free(cookie))
		}
	}
	return errors.Join(failed, err)
}
