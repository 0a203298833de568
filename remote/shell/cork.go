package shell

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// corkSize is how many bytes of records wait at most to be written together.
const corkSize = 256 << 10

// records are buffers of corks: a connection that writes nothing holds none.
var records = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

// cork is a TCP connection below TLS, which writes each record by itself. While it is shut, records are put together, to be written in one system call.
type cork struct {
	net.Conn
	raw syscall.RawConn // nil: it has none

	// Of who reads.
	in    []byte
	got   int
	inErr error
	recv  func(fd uintptr) bool

	mu   sync.Mutex // held while it writes: an answer to the other end's records comes from who reads
	buf  *[]byte    // guarded by mu; nil while it is open
	sent int        // guarded by mu: what the last call of send has written
	err  error      // guarded by mu: of that
	send func(fd uintptr) bool
}

func newCork(tcp net.Conn) *cork {
	c := &cork{Conn: tcp}
	if t, ok := tcp.(*net.TCPConn); ok {
		c.raw, _ = t.SyscallConn() // one that is closed says so when it is written to
	}
	c.send, c.recv = c.sendOnce, c.recvOnce
	return c
}

// Read implements net.Conn.
func (c *cork) Read(b []byte) (int, error) {
	if c.raw == nil || len(b) == 0 {
		return c.Conn.Read(b)
	}
	c.in, c.got, c.inErr = b, 0, nil
	err := c.raw.Read(c.recv)
	c.in = nil
	switch {
	case err != nil:
		return 0, err
	case c.inErr != nil:
		return 0, c.inErr
	case c.got == 0:
		return 0, io.EOF
	}
	return c.got, nil
}

// recvOnce reads what has come. It is false where nothing has: the poller waits.
func (c *cork) recvOnce(fd uintptr) bool {
	for {
		n, err := callNow(syscall.SYS_READ, fd, c.in)
		switch err {
		case 0:
			c.got = n
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		default:
			c.inErr = os.NewSyscallError("read", err)
		}
		return true
	}
}

// callNow reads or writes a socket that does not wait, without a word to the runtime: in a process that was idle the word wakes the runtime's monitor
// before the call is made, and the monitor then looks around every 20 us.
func callNow(call, fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return int(n), errno
}

func (c *cork) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buf == nil {
		return c.Conn.Write(b)
	}
	*c.buf = append(*c.buf, b...)
	if len(*c.buf) < corkSize {
		return len(b), nil
	}
	return len(b), c.flush()
}

// close has records put together from now on.
func (c *cork) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buf == nil {
		c.buf = records.Get().(*[]byte)
	}
}

// open writes what was put together.
func (c *cork) open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.flush()
	c.empty()
	return err
}

// openNow is open that does not wait: done is false if a part is left, and the cork is shut still.
func (c *cork) openNow() (done bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.raw == nil {
		return false, nil
	}
	if err := c.raw.Write(c.send); err != nil {
		return false, err
	}
	b := *c.buf
	if *c.buf = b[:copy(b, b[c.sent:])]; c.err != nil || len(*c.buf) > 0 {
		return false, c.err
	}
	c.empty()
	return true, nil
}

// sendOnce writes what the socket takes at once. mu is held.
func (c *cork) sendOnce(fd uintptr) bool {
	for c.sent, c.err = 0, nil; ; {
		n, err := callNow(syscall.SYS_WRITE, fd, *c.buf)
		switch err {
		case 0:
			c.sent = n
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
		default:
			c.err = os.NewSyscallError("write", err)
		}
		return true
	}
}

// flush writes the buffer. mu is held.
func (c *cork) flush() error {
	if len(*c.buf) == 0 {
		return nil
	}
	_, err := c.Conn.Write(*c.buf)
	*c.buf = (*c.buf)[:0]
	return err
}

// empty gives the buffer back. mu is held.
func (c *cork) empty() {
	records.Put(c.buf)
	c.buf = nil
}
