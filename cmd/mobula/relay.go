package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	relayBytes = 1 << 20     // that wait for the reader
	relayGrace = time.Second // that the reader has at the end
)

// relay passes on what workers write, whole lines in each write. Nobody waits for its reader: what the reader leaves no
// room for is left out, and that is said in its place.
type relay struct {
	mu    sync.Mutex
	buf   []byte // guarded by mu
	lost  int    // guarded by mu: lines left out after those in buf
	ended bool   // guarded by mu
	more  chan struct{}
	done  chan struct{} // closed when everything was passed on, or cannot be
}

func newRelay() *relay { return &relay{more: make(chan struct{}, 1), done: make(chan struct{})} }

// Write never waits and never fails.
func (r *relay) Write(lines []byte) (int, error) {
	r.mu.Lock()
	if r.lost > 0 || len(r.buf)+len(lines) > relayBytes {
		r.lost += bytes.Count(lines, []byte{'\n'})
	} else {
		r.buf = append(r.buf, lines...)
	}
	r.mu.Unlock()
	r.wake()
	return len(lines), nil
}

// close has run end, and waits for that, for a moment.
func (r *relay) close() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.wake()
	select {
	case <-r.done:
	case <-time.After(relayGrace):
	}
}

func (r *relay) wake() {
	select {
	case r.more <- struct{}{}:
	default: // it is told already
	}
}

// run passes on to out what was written and will be, until close.
func (r *relay) run(out io.Writer) {
	defer close(r.done)
	var buf []byte
	for range r.more {
		var lost int
		var ended bool
		r.mu.Lock()
		buf, r.buf = r.buf, buf[:0]
		lost, r.lost = r.lost, 0
		ended = r.ended
		r.mu.Unlock()
		if lost > 0 {
			buf = fmt.Appendf(buf, "(mobula) %d lines that workers wrote are left out here; mobula logs has them\n", lost)
		}
		if len(buf) > 0 {
			if _, err := out.Write(buf); err != nil {
				return // nobody reads any more: what comes fills the buffer and is then left out
			}
		}
		if ended {
			return
		}
	}
}
