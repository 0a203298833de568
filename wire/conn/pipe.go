package conn

import (
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mobula/wire"
)

// Pair makes both ends of a connection inside this process, its own peer: a twin of the Unix socket for tests and for
// what needs no process. Messages are encoded and decoded as between processes, descriptors go along, and a side
// that reads nothing is waited for in the same way. It waits on channels alone, so that it works in a synctest bubble.
func Pair(cfg Config) (a, b *Conn) {
	to, from := newStream(), newStream()
	me := Peer{PID: int32(os.Getpid()), UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	return newConn(&pipe{in: from, out: to}, me, cfg), newConn(&pipe{in: to, out: from}, me, cfg)
}

// pipe is one end of a pair.
type pipe struct {
	in, out *stream
	hot     hot // stays cold
}

// pipeRoom is how many bytes a stream takes before who writes has to wait: about what a socket takes.
const pipeRoom = 208 << 10

// A stream is one direction of a pair.
type stream struct {
	mu       sync.Mutex // guards what follows
	data     []byte     // written and not yet read
	files    []fileAt
	ended    bool          // nothing is written any more
	closed   bool          // nobody reads any more: data is gone
	deadline time.Time     // of reads; zero: none
	changed  chan struct{} // closed, and made anew, at every change
}

// fileAt is a descriptor that goes with the byte at data[at].
type fileAt struct {
	at   int
	file *os.File
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

// change runs f and wakes who waits.
func (s *stream) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (p *pipe) write(parts []wire.Part) (n int, err error) {
	p.out.change(func() { n, err = p.out.append(parts) })
	return n, err
}

// append is called with mu held.
func (s *stream) append(parts []wire.Part) (int, error) {
	if s.ended || s.closed {
		return 0, os.NewSyscallError("write", unix.EPIPE)
	}
	before := len(s.data)
	for i, p := range parts {
		room := pipeRoom - len(s.data)
		if room <= 0 || i > 0 && p.File != nil {
			break
		}
		if p.File != nil {
			f, err := dup(p.File)
			if err != nil {
				return 0, err
			}
			s.files = append(s.files, fileAt{len(s.data), f})
		}
		s.data = append(s.data, p.Data[:min(room, len(p.Data))]...)
	}
	return len(s.data) - before, nil
}

func (p *pipe) awaitRoom(d time.Duration) {
	s := p.out
	until := time.Now().Add(d)
	for {
		s.mu.Lock()
		full, changed := len(s.data) >= pipeRoom && !s.ended && !s.closed, s.changed
		s.mu.Unlock()
		if !full || !await(changed, until) {
			return
		}
	}
}

// await waits for a change until then; false: there was none. The zero time is never.
func await(changed <-chan struct{}, until time.Time) bool {
	if until.IsZero() {
		<-changed
		return true
	}
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-changed:
		return true
	case <-t.C:
		return false
	}
}

func (p *pipe) read(r *wire.FrameReader, soon bool) (int, error) {
	for {
		n, changed, until, err := p.in.take(r)
		switch {
		case err != nil || n > 0 || changed == nil:
			return n, err
		case soon:
			return 0, errNothing
		}
		r.Shed()
		if !await(changed, until) {
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// take moves bytes into r, up to the next one with a descriptor. If there are none to come changed is nil, else it tells
// when to look again.
func (s *stream) take(r *wire.FrameReader) (n int, changed <-chan struct{}, until time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, nil, until, net.ErrClosed
	case !s.deadline.IsZero() && !time.Now().Before(s.deadline):
		return 0, nil, until, os.ErrDeadlineExceeded
	case len(s.data) == 0 && s.ended:
		return 0, nil, until, nil
	case len(s.data) == 0:
		return 0, s.changed, s.deadline, nil
	}
	upTo := len(s.data)
	if len(s.files) > 0 && s.files[0].at == 0 {
		err = r.PutFiles([]*os.File{s.files[0].file})
		s.files = s.files[1:]
	}
	if len(s.files) > 0 {
		upTo = s.files[0].at
	}
	n = copy(r.Room(), s.data[:upTo])
	r.Put(n)
	s.data = append(s.data[:0], s.data[n:]...)
	for i := range s.files {
		s.files[i].at -= n
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return n, nil, until, err
}

func (p *pipe) setReadDeadline(t time.Time) error {
	p.in.change(func() { p.in.deadline = t })
	return nil
}

func (p *pipe) endReading() { p.in.change(func() { p.in.ended = true }) }

func (p *pipe) heat() *hot { return &p.hot }

func (p *pipe) Close() error {
	p.out.change(func() { p.out.ended = true })
	p.in.change(func() {
		for _, f := range p.in.files {
			_ = f.file.Close() // nobody took it
		}
		p.in.data, p.in.files, p.in.closed = nil, nil, true
	})
	return nil
}
