package client

import (
	"mobula/internal/errs"
	"mobula/wire"
)

// Session is a connection that was opened again.
type Session struct {
	Port    Port
	Welcome *wire.Welcome
	Memory  Memory
	// Serve reads the connection to its end. The client starts it once the session is in use: what
	// the node asks first, a Resync, is answered on the same connection.
	Serve func()
}

// Disconnected tells the client that a connection is gone and why. The transport calls
// it when its reader ends; nil stands for the connection in use, and one that has been
// replaced already is no news. Without Config.Reconnect every pending and later operation
// fails with ErrOwnerDied (or with the node's own reason, where it gave one); with it,
// they wait for the next connection.
func (c *Client) Disconnected(from Port, cause error) {
	c.out.mu.Lock()
	port := c.out.port
	if port != nil && from != nil && port != from {
		c.out.mu.Unlock()
		return
	}
	c.out.port = nil
	c.out.mu.Unlock()
	if port != nil {
		_ = port.Close() // it is dead; its reader ends
	}
	if c.cfg.Reconnect == nil {
		c.kill(asGone(cause))
		return
	}
	if c.joining.Swap(true) {
		return
	}
	c.credit.refill()
	if !c.start(func() { c.rejoin(cause) }) {
		c.joining.Store(false)
	}
}

func asGone(cause error) error {
	if e, ok := cause.(*errs.Error); ok && e.Code != errs.CodeUnknown {
		return e
	}
	if cause == nil {
		cause = errs.ErrShutdown
	}
	return gone(cause)
}

func (c *Client) rejoin(cause error) {
	s, err := c.cfg.Reconnect(c.life, cause)
	if err != nil {
		c.kill(asGone(err))
		c.joining.Store(false)
		return
	}
	if s.Memory != nil {
		c.memory.Store(&s.Memory)
	}
	if s.Welcome != nil {
		c.setClock(s.Welcome)
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.sessions.Add(1)
	c.joining.Store(false)
	if c.Err() != nil {
		_ = s.Port.Close() // closed meanwhile
		return
	}
	c.out.port = s.Port
	if s.Serve != nil {
		go s.Serve()
	}
	c.replayLocked()
}

// replayLocked says everything again that the node may not know: holdings first, then
// what was sent last and may not have arrived, then what was never sent.
func (c *Client) replayLocked() {
	for _, m := range c.out.hold.msgs {
		c.out.unacked.add(m)
	}
	c.out.hold.msgs = nil
	c.declareLocked(wire.ComponentOwner, 0)
	c.declareLocked(wire.ComponentStore, 0)
	if c.out.port == nil { // it is gone again: the next one is told all of it
		return
	}
	again := c.out.unacked.list()
	later := c.out.later
	c.out.later = nil
	for _, batch := range [][]wire.Msg{again, later, c.getsLocked()} {
		if len(batch) == 0 {
			continue
		}
		if err := c.out.port.Send(batch...); err != nil {
			go c.Disconnected(c.out.port, err)
			c.out.port = nil
			c.out.later = later
			return
		}
	}
	c.stopAgainLocked()
	c.requests.again(func(m *wire.Request) { _ = c.writeLocked([]wire.Msg{m}) })
}

// getsLocked asks again for what somebody waits for, behind the submits: an owner that has lost those could not take
// the question before.
func (c *Client) getsLocked() []wire.Msg {
	var out []wire.Msg
	c.table.each(func(_ *shard, h *Handle) {
		if h.flags&asked != 0 {
			out = append(out, &wire.Get{ID: h.id})
		}
		if h.flags&fetching != 0 {
			out = append(out, &wire.Get{ID: h.id, Fetch: true})
		}
	})
	return out
}

// The replay queue: the submits, inline puts and seals that were sent last. The protocol
// has no acknowledgement for them, so the queue keeps what could still be on its way: more
// than what a socket and the node's mailbox hold together.
const (
	replayMessages = 64 << 10
	replayBytes    = 64 << 20
)

type unacked struct {
	ring  []wire.Msg // from head on, wrapping
	head  int
	n     int
	bytes int64
}

func (u *unacked) add(m wire.Msg) {
	switch m.Kind() {
	case wire.KindSubmit, wire.KindPutValue, wire.KindSeal:
	default:
		return
	}
	u.bytes += wire.Cost(m)
	for u.n > 0 && (u.n >= replayMessages || u.bytes > replayBytes) {
		u.bytes -= wire.Cost(u.ring[u.head])
		u.ring[u.head] = nil
		u.head = (u.head + 1) % len(u.ring)
		u.n--
	}
	if u.n == len(u.ring) {
		grown := make([]wire.Msg, max(64, 2*u.n))
		copy(grown, u.list())
		u.ring, u.head = grown, 0
	}
	u.ring[(u.head+u.n)%len(u.ring)] = m
	u.n++
}

func (u *unacked) list() []wire.Msg {
	out := make([]wire.Msg, 0, u.n)
	for i := range u.n {
		out = append(out, u.ring[(u.head+i)%len(u.ring)])
	}
	return out
}
