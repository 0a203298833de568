package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/lend"
	"mobula/remote"
)

// read reads frames and has them stepped, until the link ends. What one read brings is one event.
func (l *link) read() {
	lender := l.peer.hub.cfg.Lender
	place := lender.Place(l)
	l.cut()
	for {
		waits := lender.Waits()
		messages, answer := l.messages(), waits > 0 && l.brief()
		if !l.handle() {
			l.fail(errStopped) // unless it has ended by itself
			return
		}
		if l.err != nil {
			l.fail(l.err)
			return
		}
		if messages > 0 && place.Counts(answer && messages == 1, waits) {
			place.Lend()
			_ = l.conn.SetReadDeadline(time.Time{}) // see Interrupt; an error comes again with the read
			if len(l.frames) > 0 || l.err != nil {
				continue
			}
		}
		l.next()
	}
}

// Borrow implements lend.Borrower: who waits handles brief messages only.
func (l *link) Borrow(ctx context.Context, w lend.Waiter) bool {
	for !w.Woken() {
		if ctx.Err() != nil {
			return false
		}
		if l.next(); errors.Is(l.err, os.ErrDeadlineExceeded) {
			l.err = nil
			return false
		}
		if l.err != nil || !l.brief() {
			return false
		}
		if !l.handle() {
			l.err = errStopped
			return false
		}
	}
	return true
}

// Interrupt implements lend.Borrower.
func (l *link) Interrupt() {
	_ = l.conn.SetReadDeadline(time.Unix(1, 0)) // a connection that has ended wakes who reads
}

// next reads once.
func (l *link) next() {
	if l.err = l.fill(); l.err == nil {
		l.cut()
	}
}

// cut takes the frames that are whole.
func (l *link) cut() {
	l.frames, l.err = l.dec.frames(l.frames[:0])
	l.inside.Store(l.dec.inside())
}

// messages is how many of the frames are messages.
func (l *link) messages() (n int) {
	for i := range l.frames {
		if l.frames[i].kind == kindMessage {
			n++
		}
	}
	return n
}

// brief tells whether who waits may handle the frames.
func (l *link) brief() bool {
	for i := range l.frames {
		switch f := &l.frames[i]; f.kind {
		case kindAck:
		case kindMessage:
			if !l.peer.hub.cfg.Brief(f.body) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// handle has the frames stepped, and calls the handlers for what that delivers. False: the link has ended.
func (l *link) handle() bool {
	if len(l.frames) == 0 {
		return true
	}
	l.handling.Store(true)
	on := l.step(l.frames)
	l.handling.Store(false)
	l.frames = l.frames[:0]
	return on
}

// step is handle of some frames. While another connection's messages are handled, what comes before the first message does not wait for the turn: this
// one can be greeted.
func (l *link) step(frames []frame) bool {
	first := slices.IndexFunc(frames, func(f frame) bool { return f.kind == kindMessage })
	if first < 0 {
		return l.await(&batch{link: l.id, frames: frames, stepped: l.stepped})
	}
	p := l.peer
	select {
	case p.in.turn <- struct{}{}:
	default:
		if first > 0 && !l.await(&batch{link: l.id, frames: frames[:first], stepped: l.stepped}) {
			return false
		}
		frames = frames[first:]
		select {
		case p.in.turn <- struct{}{}:
		case <-l.over:
			return false
		}
	}
	defer func() { <-p.in.turn }()
	if !l.await(&batch{link: l.id, frames: frames, stepped: l.stepped, turn: true}) {
		return false
	}
	p.handle()
	return true
}

// await has a batch stepped. False: the peer has stopped.
func (l *link) await(b *batch) bool {
	if l.peer.ref.SendRun(context.Background(), b) != nil {
		return false
	}
	select {
	case <-b.stepped:
		return true
	case <-l.peer.ref.Done():
		return false
	}
}

// fill reads once.
func (l *link) fill() error {
	n, err := l.conn.Read(l.dec.room())
	l.dec.put(n)
	l.came.Add(uint64(n))
	switch {
	case n > 0, err == nil:
		return nil // an error comes again
	case errors.Is(err, io.EOF):
		if err = l.dec.ended(); err == io.EOF {
			return broken("read", err)
		}
		return err
	}
	return broken("read", err)
}

// frames appends all frames that have come. With an error come those before the fault.
func (d *decoder) frames(out []frame) ([]frame, error) {
	for {
		f, ok, err := d.next()
		switch {
		case !ok:
			return out, err
		case f.kind <= kindRefusal:
			return out, errs.New(errs.CodeProtocol, "a second hello on one connection")
		}
		out = append(out, f)
	}
}

// readHello reads what the other end of a connection says first, and looks at whether it can be talked with. The deadline is the connection's.
func (h *Hub) readHello(conn Conn, d *decoder) (g hello, err error) {
	for {
		f, ok, err := d.next()
		switch {
		case err != nil:
			return g, err
		case ok && f.kind == kindRefusal:
			return g, fmt.Errorf("%w: %q", ErrRefused, f.body)
		case ok && f.kind != kindHello:
			return g, errs.New(errs.CodeProtocol, "a connection begins with a frame of kind %d, not with a hello", f.kind)
		case ok:
			if g, err = decodeHello(f.body); err == nil {
				err = g.mismatch(h.cfg.Cluster, h.cfg.Versions)
			}
			d.limit = h.cfg.MaxMessage + numberSize
			return g, err
		}
		n, err := conn.Read(d.room())
		d.put(n)
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) && d.ended() != io.EOF {
				return g, d.ended()
			}
			return g, broken("read", err)
		}
	}
}

// deadline is for how long a connection may be without a hello.
func (h *Hub) deadline() time.Time { return time.Now().Add(h.cfg.Core.Handshake) }

// greeting is the hello of the other end of a link.
func greeting(l *link, g hello) *coreEvent {
	l.peer.agreed.Store(g.versions.agreed(l.peer.hub.cfg.Versions))
	return &coreEvent{ev: remote.HelloReceived{Conn: l.id, Hello: g.Hello}}
}
