package proc

import (
	"bytes"
	"io"
	"sync"
)

// maxLine is how much of a line is kept back until it is whole.
const maxLine = 64 << 10

// mirror passes on what workers write, line by line, each with its worker's name before it. The
// streams of all workers share it; a line is never cut by another's.
type mirror struct {
	mu  sync.Mutex
	out io.Writer // guarded by mu
	buf []byte    // guarded by mu
}

// lines is one stream's way into a mirror; it belongs to the goroutine that copies the stream.
type lines struct {
	to     *mirror
	prefix string // "(worker/3) "
	part   []byte // of a line that has not ended
}

// write passes on the lines that b ends. Errors are the reader's own: a worker must not stop
// because nobody reads what it says.
func (l *lines) write(b []byte) {
	if l == nil {
		return
	}
	l.to.mu.Lock()
	defer l.to.mu.Unlock()
	l.to.buf = l.to.buf[:0]
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 && len(l.part)+len(b) <= maxLine {
			l.part = append(l.part, b...)
			break
		}
		n := i + 1
		if i < 0 {
			n = len(b)
		}
		l.to.buf = append(append(append(l.to.buf, l.prefix...), l.part...), b[:n]...)
		if i < 0 {
			l.to.buf = append(l.to.buf, '\n')
		}
		l.part, b = l.part[:0], b[n:]
	}
	if len(l.to.buf) > 0 {
		_, _ = l.to.out.Write(l.to.buf)
	}
}

// end passes on a last line that did not end.
func (l *lines) end() {
	if l != nil && len(l.part) > 0 {
		l.write([]byte{'\n'})
	}
}
