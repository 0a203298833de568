package proc

import (
	"bytes"
	"io"
	"sync"
)

// maxLine is how much of an incomplete line is held back.
const maxLine = 64 << 10

// mirror copies the workers' output line by line, each line after its worker's name. All workers share it, and
// lines are never interleaved.
type mirror struct {
	mu  sync.Mutex
	out io.Writer // guarded by mu
	buf []byte    // guarded by mu
}

// lines splits one stream into lines for a mirror; it belongs to the goroutine that copies the stream.
type lines struct {
	to     *mirror
	prefix string // "(worker/3) "
	part   []byte // start of a line that has not ended
}

// write copies the lines that end in b. It ignores errors: a worker must not stop because nobody reads its output.
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

// end copies a last line without a newline.
func (l *lines) end() {
	if l != nil && len(l.part) > 0 {
		l.write([]byte{'\n'})
	}
}
