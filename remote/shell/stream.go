package shell

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// streamRoom is how many bytes of a stream wait at most to be read.
const streamRoom = 64 << 10

// stream is one way of a connection in memory.
type stream struct {
	other *stream // the other way: both are cut at once

	mu      sync.Mutex
	changed sync.Cond
	buf     []byte // guarded by mu, as all below
	after   int64  // bytes until the cut; -1: never
	ended   bool   // nothing more is written
	left    bool   // nothing more is read
	broken  bool   // it was cut
	stalled bool   // nothing moves
	reading deadline
	writing deadline
}

func newStream(f *linkFaults) *stream {
	s := &stream{after: f.after, stalled: f.stall}
	s.changed.L = &s.mu
	return s
}

// deadline is when a side's calls fail.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

// set has waiters look again at t. mu is held.
func (d *deadline) set(s *stream, t time.Time) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.at = t; !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changed.Broadcast()
		})
	}
	s.changed.Broadcast()
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (s *stream) readBy(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading.set(s, t)
}

func (s *stream) writeBy(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing.set(s, t)
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.left:
			return 0, net.ErrClosed
		case s.reading.passed():
			return 0, os.ErrDeadlineExceeded
		case s.stalled && !s.broken:
		case len(s.buf) > 0:
			n := copy(b, s.buf)
			s.buf = s.buf[:copy(s.buf, s.buf[n:])]
			s.changed.Broadcast()
			return n, nil
		case s.broken:
			return 0, ErrCut
		case s.ended:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(b []byte) (int, error) {
	n, cut, err := s.put(b)
	if cut {
		s.cut(false)
	}
	return n, err
}

// put is write, but for the cut that is due.
func (s *stream) put(b []byte) (done int, cut bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.ended:
			return done, false, net.ErrClosed
		case s.broken:
			return done, false, ErrCut
		case s.left:
			return done, false, syscall.EPIPE
		case s.writing.passed():
			return done, false, os.ErrDeadlineExceeded
		case done == len(b):
			return done, false, nil
		}
		if n := min(streamRoom-len(s.buf), len(b)-done); n > 0 {
			if s.after >= 0 {
				n = int(min(int64(n), s.after))
				s.after -= int64(n)
			}
			s.buf = append(s.buf, b[done:done+n]...)
			done += n
			s.changed.Broadcast()
			if s.after == 0 {
				return done, true, ErrCut
			}
			continue
		}
		s.changed.Wait()
	}
}

// end is the end behind what was written.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.writing.set(s, time.Time{})
}

// abandon is the end of reading.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	s.reading.set(s, time.Time{})
}

// stall stops the stream, or lets it go on.
func (s *stream) stall(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = yes
	s.changed.Broadcast()
}

// cut ends both ways at once. What was not read is lost, or can still be read.
func (s *stream) cut(lost bool) {
	for _, s := range []*stream{s, s.other} {
		s.mu.Lock()
		s.broken = true
		if lost {
			s.buf = nil
		}
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}
