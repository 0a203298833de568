package oplog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Read returns a copy of a record.
func (l *Log) Read(cookie uint64) ([]byte, error) {
	s, off, err := l.find(cookie)
	if err != nil {
		return nil, err
	}
	if s.mem != nil {
		l.sync()
		rec, _, ok := getRecord(s.mem[:s.end], s.seq, off)
		if !ok {
			return nil, noRecord(cookie)
		}
		return slices.Clone(rec), nil
	}
	return s.read(off, cookie)
}

// read reads one record from the file; most need one system call.
func (s *segment) read(off int, cookie uint64) ([]byte, error) {
	buf := make([]byte, min(512, s.size-off))
	if _, err := s.file.ReadAt(buf, int64(off)); err != nil {
		return nil, fmt.Errorf("owner log %s: %w", s.path, err)
	}
	n := int(binary.LittleEndian.Uint32(buf)) - 1
	if n < 0 || n > MaxRecord || n > s.size-off-prefix {
		return nil, noRecord(cookie)
	}
	if all := prefix + n; all > len(buf) {
		head := len(buf)
		buf = append(buf, make([]byte, all-head)...)
		if _, err := s.file.ReadAt(buf[head:], int64(off+head)); err != nil {
			return nil, fmt.Errorf("owner log %s: %w", s.path, err)
		}
	}
	rec := buf[prefix : prefix+n : prefix+n]
	if checksum(rec, s.seq, off) != binary.LittleEndian.Uint32(buf[4:]) {
		return nil, noRecord(cookie)
	}
	return rec, nil
}

func noRecord(cookie uint64) error {
	return fmt.Errorf("cookie %#x: %w", cookie, ErrNoRecord)
}

// find gives the place of a cookie's record.
func (l *Log) find(cookie uint64) (*segment, int, error) {
	if l.closed {
		return nil, 0, ErrClosed
	}
	s := l.bySeq[uint32(cookie>>32)]
	off := int(uint32(cookie))
	if s == nil || off < headerSize || off%align != 0 || off > s.size-prefix {
		return nil, 0, noRecord(cookie)
	}
	return s, off, nil
}

// Replay calls yield for every record that was not freed, in the order of their appends, until it
// returns false. The bytes are valid during the call. A torn tail ends its segment; damage
// elsewhere ends the replay with ErrCorrupt after the records before it.
func (l *Log) Replay(yield func(cookie uint64, rec []byte) bool) error {
	if l.closed {
		return ErrClosed
	}
	l.sync()
	for _, s := range slices.Clone(l.segs) {
		if l.bySeq[s.seq] != s {
			continue // yield has freed its last record
		}
		seen := s.scanned
		bad := l.check(s)
		if bad != nil && !errors.Is(bad, ErrCorrupt) {
			return bad
		}
		more := true
		err := s.view(func(b []byte) error {
			end := places(s.end)
			for at := s.starts.next(headerSize/align, end); more && at < end; at = s.starts.next(at+1, end) {
				if s.freed.has(at) {
					continue
				}
				rec, ok := recordAt(b, s.seq, at*align, seen)
				if !ok {
					return s.damaged(at * align)
				}
				more = yield(uint64(s.seq)<<32|uint64(at*align), rec)
			}
			return nil
		})
		if err = errors.Join(err, bad); err != nil || !more {
			return err
		}
		if l.bySeq[s.seq] == s {
			if err := l.settle(s); err != nil {
				return err
			}
		}
	}
	return nil
}
