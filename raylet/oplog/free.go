package oplog

import (
	"errors"
	"slices"
)

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

// Compact empties segments of which most records were freed. For each live record it calls move, which appends
// what should be kept of it (usually rec itself), notes the new cookie, and returns nil; Compact then frees the
// old record. It stops after about budget bytes and tells whether there is more to do. An error of move ends it;
// moved records stay moved.
func (l *Log) Compact(budget int, move func(cookie uint64, rec []byte) error) (more bool, err error) {
	if l.closed {
		return false, ErrClosed
	}
	for _, s := range slices.Clone(l.segs) {
		if s == l.active || l.bySeq[s.seq] != s || s.check() != nil || s.live*compactBelow > s.records {
			continue
		}
		if budget <= 0 {
			return true, nil
		}
		if err := l.empty(s, &budget, move); err != nil {
			return true, err
		}
	}
	return false, nil
}

// empty moves live records out of a segment, from where it last stopped.
func (l *Log) empty(s *segment, budget *int, move func(uint64, []byte) error) error {
	if s.cursor == 0 {
		s.cursor = headerSize
	}
	var failed error
	var dead []uint64
	err := s.view(func(b []byte) error {
		for *budget > 0 {
			rec, next, ok := getRecord(b, s.seq, s.cursor)
			if !ok {
				break
			}
			cookie := uint64(s.seq)<<32 | uint64(s.cursor)
			if !s.isFreed(s.cursor) {
				if failed = move(cookie, rec); failed != nil {
					return nil
				}
				dead = append(dead, cookie)
				*budget -= span(len(rec))
			}
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
