package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	relayBytes = 1 << 20     // bytes that may wait for the reader
	relayGrace = time.Second // how long the reader has at the end
)

// relay passes on the workers' output, in whole lines. Nobody waits for its reader: lines for which there is no room
// are dropped, and a line in their place says so.
type relay struct {
	mu    sync.Mutex
	buf   []byte // guarded by mu
	lost  int    // guarded by mu: lines left out after those in buf
	ended bool   // guarded by mu
	more  chan struct{}
	done  chan struct{} // closed when everything was passed on, or nothing more can be
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

// close makes run end, and waits for that for a short time.
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
	default: // it was woken already
	}
}

// run passes lines on to out until close.
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
				return // nobody reads any more: further lines fill the buffer and are then dropped
			}
		}
		if ended {
			return
		}
	}
}
