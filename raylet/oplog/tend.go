package oplog

import "errors"

// The log is a ring by bytes. Records are appended at its head. At its tail, the oldest segment, what is live is appended once more, and the segment
// goes. That is done only while more than half of the log is dead, but for a constant: so a byte is moved for each that is given up, at most.
// Segments end in the order of their age, unless all of their records were freed: so a record that has lapsed has nothing before it when the tail
// reaches it.

// Due tells whether there is something for Tend to do.
func (l *Log) Due() bool { return (l.dead > l.live+int64(l.opt.MinSegment) || l.full) && l.overdue() }

// overdue is apart, so that the usual question is one comparison. When the disk is full, less is enough: what fills half a segment.
func (l *Log) overdue() bool {
	return !l.closed && l.dead > l.failed && (l.dead > l.live+int64(l.opt.MinSegment) || l.dead > int64(l.segmentSize()/2))
}

// Tend moves the tail on while that is due, and stops after about budget bytes of it, or as many as were appended since it was called last. For each live record there it calls move, which appends what
// should be kept of it (usually rec itself), notes the new cookie, and returns nil; Tend then frees the old record. An error of move ends it; moved
// records stay moved. After an error it is due again when more is dead, or a segment could be made. It tells whether there is more to do.
func (l *Log) Tend(budget int, move func(cookie uint64, rec []byte) error) (more bool, err error) {
	if l.closed {
		return false, ErrClosed
	}
	budget = max(budget, int(l.sealed+int64(l.off)-l.tended))
	l.tending = true
	defer func() { l.tending, l.tended = false, l.sealed+int64(l.off) }()
	for budget > 0 && l.Due() {
		if l.segs[0] == l.active { // a large one of a log that has become small
			err = l.rotate(0)
		} else {
			var n int
			n, err = l.empty(l.segs[0], budget, move)
			budget -= max(n, align)
		}
		if err != nil {
			l.failed = l.dead + int64(l.opt.MinSegment)/8
			return false, err
		}
	}
	return l.Due(), nil
}

// empty moves live records out of a segment, from where it last stopped. It tells how many bytes it has read.
func (l *Log) empty(s *segment, budget int, move func(uint64, []byte) error) (read int, err error) {
	if err := errors.Join(l.check(s), s.bad); err != nil {
		return 0, err // it stays as it is
	}
	var failed error
	var moved []uint64
	end := places(s.end)
	err = s.view(func(b []byte) error {
		at := s.starts.next(max(s.cursor, headerSize)/align, end)
		for ; at < end && read < budget; at = s.starts.next(at+1, end) {
			read += align // what is dead is passed over
			if s.freed.has(at) || s.lapsed.has(at) {
				continue
			}
			off := at * align
			rec, ok := recordAt(b, s.seq, off, true)
			if !ok {
				failed = s.damaged(off)
				break
			}
			cookie := uint64(s.seq)<<32 | uint64(off)
			if failed = move(cookie, rec); failed != nil {
				break
			}
			moved = append(moved, cookie)
			read += len(rec)
		}
		s.cursor = at * align
		return nil
	})
	for _, cookie := range moved {
		err = errors.Join(err, l.Free(cookie))
	}
	return read, errors.Join(failed, err)
}
