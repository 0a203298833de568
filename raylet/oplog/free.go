package oplog

import (
	"errors"
	"fmt"
	"slices"
)

// Free says that a record is no longer needed. A segment without live records is deleted or reused, unless it is
// the active one. Freeing twice is harmless.
func (l *Log) Free(cookie uint64) error {
	s, at, err := l.record(cookie)
	if err != nil || s.freed.has(at) {
		return err
	}
	if s.freed == nil {
		s.freed = newBitmap(s.size)
	}
	s.freed.set(at)
	s.live--
	if s.lapsed.has(at) {
		s.lapsing--
	} else {
		l.die(s, at)
	}
	return l.settle(s)
}

// Lapse says that a record is needed only as long as there are records before it: a record that says what has become of others. It does not count as
// live from then on, and goes with its segment when that is the oldest, without being moved. Until then its segment stays.
func (l *Log) Lapse(cookie uint64) error {
	s, at, err := l.record(cookie)
	if err != nil || s.freed.has(at) || s.lapsed.has(at) {
		return err
	}
	if s.lapsed == nil {
		s.lapsed = newBitmap(s.size)
	}
	s.lapsed.set(at)
	s.lapsing++
	l.die(s, at)
	return l.settle(s)
}

// record finds a cookie's record: its segment and its place there, in units of align.
func (l *Log) record(cookie uint64) (*segment, int, error) {
	s, off, err := l.find(cookie)
	if err != nil {
		return nil, 0, err
	}
	if err := l.check(s); err != nil && !errors.Is(err, ErrCorrupt) {
		return nil, 0, err
	}
	if !s.starts.has(off / align) {
		return nil, 0, noRecord(cookie)
	}
	return s, off / align, nil
}

// die counts a record that was live as dead. It takes the bytes up to the next one.
func (l *Log) die(s *segment, at int) {
	end := s.end
	if s == l.active {
		end = l.off
	}
	n := int64(s.starts.next(at+1, places(end))-at) * align
	l.live -= n
	l.dead += n
}

// settle drops a segment if nothing in it is needed.
func (l *Log) settle(s *segment) error {
	if s == l.active || s.live > s.lapsing {
		return nil
	}
	var err error
	if s.live == 0 && s.scanned {
		err = l.drop(s)
	}
	for len(l.segs) > 0 { // what has lapsed in the oldest segment has nothing before it
		s := l.segs[0]
		if s == l.active || !s.scanned || s.live > s.lapsing {
			break
		}
		err = errors.Join(err, l.drop(s))
	}
	return err
}

// drop takes a segment out of the log, and keeps it to be written again or deletes it.
func (l *Log) drop(s *segment) error {
	l.segs = slices.DeleteFunc(l.segs, func(o *segment) bool { return o == s })
	delete(l.bySeq, s.seq)
	l.stats.Deleted++
	l.dead -= s.bytes()
	if s.views == 0 && l.wantsSpare(s) && s.retire() == nil {
		l.keepSpare(s)
		return nil
	}
	if err := l.discard(s); err != nil {
		return fmt.Errorf("owner log %s: %w", s.path, err)
	}
	return nil
}
