package shell

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"mobula/remote"
)

// accept accepts connections until the transport is closed.
func (h *Hub) accept() {
	for {
		conn, err := h.cfg.Transport.Accept()
		switch {
		case err == nil:
			if !h.start(func() { h.accepted(conn) }) {
				_ = conn.Close() // nothing was said on it
			}
		case errors.Is(err, net.ErrClosed):
			return
		default:
			h.log.Warn("remote: a connection cannot be accepted", "err", err)
			select {
			case <-time.After(100 * time.Millisecond): // out of descriptors, most likely
			case <-h.ctx.Done():
				return
			}
		}
	}
}

// accepted finds out who has made a connection, and reads from it until it ends.
func (h *Hub) accepted(conn Conn) {
	d := newDecoder(maxHello)
	unwatch := context.AfterFunc(h.ctx, func() { _ = conn.Close() })
	defer unwatch()
	_ = conn.SetDeadline(h.deadline()) // an error comes again with the read
	g, err := h.readHello(conn, d)
	if err == nil {
		err = h.verify(conn, g.From.Home)
	}
	if err == nil && g.To != h.cfg.Self.Home {
		err = fmt.Errorf("%w: node %v looks for node %v, this is node %v", remote.ErrOtherNode, g.From.Home, g.To, h.cfg.Self.Home)
	}
	if err != nil {
		h.refuse(conn, g, err)
		return
	}
	p, err := h.peer(g.From.Home)
	if err != nil {
		h.refuse(conn, g, err)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	l := newLink(p, conn, d)
	if p.open(l, false) {
		p.ref.Deliver(greeting(l, g))
		l.read()
	}
}

// refuse ends a connection, and tells the other side why.
func (h *Hub) refuse(conn Conn, g hello, err error) {
	h.log.Warn("remote: a connection is refused", "from", conn.RemoteAddr(), "node", g.From.Home, "err", err)
	why := []byte(err.Error())
	f := frame{kind: kindRefusal, body: why[:min(len(why), maxHello-frameHeader)]}
	_, _ = conn.Write(append(f.appendHead(nil), f.body...)) // it is refused, told or not
	_ = conn.Close()
}
