package nodeport

import (
	"net"
	"sync"
)

// aheadSize is how much is read from a connection at once while many bytes come. TLS asks for one record at a time: the goroutine that reads is woken for
// each record, and the one that writes to cold memory beside it waits. With this size an object into cold memory takes a fifth less time.
const aheadSize = 256 << 10

var aheads = sync.Pool{New: func() any { return new([aheadSize]byte) }}

// ahead is a TCP connection below TLS that reads more than is asked for while more has come. It holds a buffer while bytes of it are left, and while it
// waits after a read that brought much. One goroutine reads.
type ahead struct {
	net.Conn
	buf  *[aheadSize]byte // nil: no bytes are left of it
	rest []byte           // of buf, not given out yet
	more bool             // the last read brought as much as was asked for, or more
}

// Read implements net.Conn.
func (c *ahead) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		if !c.more {
			n, err := c.Conn.Read(b)
			c.more = n > 0 && n == len(b)
			return n, err
		}
		c.buf = aheads.Get().(*[aheadSize]byte)
		n, err := c.Conn.Read(c.buf[:])
		if c.rest, c.more = c.buf[:n], n > len(b); err != nil && n == 0 {
			c.free()
			return 0, err
		}
	}
	n := copy(b, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.free()
	}
	return n, nil
}

func (c *ahead) free() {
	aheads.Put(c.buf)
	c.buf, c.rest = nil, nil
}
