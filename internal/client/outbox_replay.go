package client

import "mobula/wire"

// The replay queue has the submits, inline puts and seals that were sent last. Nothing acknowledges each of them. The queue keeps some for a while, and the
// others for as long as the node may not have handled them, which the credit tells: it is given back as they are handled, in order.
const (
	replayMessages = wire.Replayed
	replayBytes    = 64 << 20
)

type unacked struct {
	ring  []wire.Msg // from head on, wrapping
	head  int
	n     int
	bytes int64
}

func (u *unacked) add(m wire.Msg, c *credit) {
	switch m.Kind() {
	case wire.KindSubmit, wire.KindPutValue, wire.KindSeal:
	default:
		return
	}
	cost := wire.Cost(m)
	u.bytes += cost
	c.sent.Add(cost)
	for u.n > 0 && (u.n >= replayMessages || u.bytes > replayBytes) {
		oldest := wire.Cost(u.ring[u.head])
		if n := c.unhandled(); n > 0 && u.bytes-max(oldest, 1) < n {
			break
		}
		u.bytes -= oldest
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
