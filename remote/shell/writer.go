package shell

import (
	"slices"
	"sync"
	"time"
)

// writeBuffer is how much is written at once, but for a large payload, which is written from where it is.
const writeBuffer = 64 << 10

// spliceFrom is the size from which a payload is written from where it is: it would fill the buffer.
const spliceFrom = 32 << 10

// buffers are shared by all links: one that writes nothing holds none.
var buffers = sync.Pool{New: func() any { return new([writeBuffer]byte) }}

// burst: what is pushed so soon after a write is left to the writer's goroutine, which writes it together with what follows. After a pause it is written by
// who has pushed it, without a switch.
const burst = 5 * time.Microsecond

// flushMost is how many frames are written by who has pushed them.
const flushMost = 8

// call has the writer's goroutine write what was pushed.
func (l *link) call() {
	select {
	case l.wake <- struct{}{}:
	default: // it is told already
	}
}

// flush writes what was pushed, as far as that does not wait, and leaves the rest to the writer's goroutine.
func (l *link) flush() {
	if !l.direct() {
		l.call()
	}
}

// direct writes as who has pushed, if nobody else does. False: there is something left to write.
func (l *link) direct() bool {
	l.mu.Lock()
	if len(l.out) == 0 && !l.acks {
		l.mu.Unlock()
		return true
	}
	if l.now == nil || l.writer || l.half || l.ending != nil || len(l.out) > flushMost || time.Since(l.last) < burst {
		l.mu.Unlock()
		return false
	}
	for i := range l.out {
		if l.out[i].size() > writeBuffer/2/flushMost {
			l.mu.Unlock()
			return false
		}
	}
	w, frames := l.take()
	l.mu.Unlock()
	box := buffers.Get().(*[writeBuffer]byte)
	w.buf = box[:0]
	_ = w.put(frames) // fits: nothing is written yet
	done, err := l.now.WriteNow(w.buf)
	l.half = !done
	buffers.Put(box)
	if err != nil {
		l.fail(broken("write", err))
	}
	return l.written(frames) && done
}

// write writes what is pushed, until the link ends.
func (l *link) write() {
	for {
		select {
		case <-l.wake:
		case <-l.over:
			return
		}
		box := buffers.Get().(*[writeBuffer]byte)
		for l.drain(box[:0]) {
		}
		buffers.Put(box)
	}
}

// drain writes what there is. False: there is nothing left, or somebody else writes and calls when that is done.
func (l *link) drain(buf []byte) bool {
	l.mu.Lock()
	if l.writer || len(l.out) == 0 && !l.acks && !l.half && l.ending == nil {
		l.mu.Unlock()
		return false
	}
	ending := l.ending
	w, frames := l.take()
	l.mu.Unlock()
	if ending != nil {
		frames = slices.DeleteFunc(frames, func(f frame) bool { return f.kind == kindMessage })
	}
	var err error
	if l.half {
		l.half, err = false, l.now.Finish()
	}
	if w.buf = buf; err == nil {
		err = w.batch(frames)
	}
	more := !l.written(frames)
	switch {
	case ending != nil:
		l.fail(ending)
		return false
	case err != nil:
		l.fail(broken("write", err))
		return false
	}
	return more
}

// take takes the writer's role, and what is to be written. mu is held.
func (l *link) take() (w batchWriter, frames []frame) {
	frames, l.out, l.spare = l.out, l.spare, nil
	w = batchWriter{link: l, ack: l.ack, acks: l.acks}
	l.writer, l.acks = true, false
	return w, frames
}

// written gives the writer's role back. False: there is something to write.
func (l *link) written(frames []frame) bool {
	clear(frames)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writer, l.spare, l.last = false, frames[:0], time.Now()
	return len(l.out) == 0 && !l.acks && !l.half && l.ending == nil
}

// newer takes the number to acknowledge, if there is one.
func (l *link) newer() (ack uint64, acks bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	acks, l.acks = l.acks, false
	return l.ack, acks
}

// batchWriter writes frames together.
type batchWriter struct {
	link *link
	buf  []byte
	ack  uint64
	acks bool // ack is to be written: before the next message, so that it does not wait for many
}

// batch writes frames.
func (w *batchWriter) batch(frames []frame) error {
	if err := w.put(frames); err != nil {
		return err
	}
	return w.flush()
}

// put puts frames into the buffer, and writes that when it is full.
func (w *batchWriter) put(frames []frame) error {
	for i := range frames {
		f := &frames[i]
		if f.kind == kindMessage {
			w.acknowledge()
		}
		need, splice := f.size(), len(f.body) >= spliceFrom
		if splice {
			need -= len(f.body)
		}
		if len(w.buf)+need > cap(w.buf) {
			if err := w.flush(); err != nil {
				return err
			}
			w.ack, w.acks = w.link.newer()
			w.acknowledge()
		}
		w.buf = f.appendHead(w.buf)
		if !splice {
			w.buf = append(w.buf, f.body...)
			continue
		}
		if err := w.flush(); err != nil {
			return err
		}
		if _, err := w.link.conn.Write(f.body); err != nil {
			return err
		}
	}
	w.acknowledge()
	return nil
}

func (w *batchWriter) acknowledge() {
	if w.acks {
		f := frame{kind: kindAck, number: w.ack}
		w.buf, w.acks = f.appendHead(w.buf), false
	}
}

// flush writes the buffer.
func (w *batchWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.link.conn.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}
