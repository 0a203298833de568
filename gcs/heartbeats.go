package gcs

import (
	"maps"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/remote"
)

// Heartbeat says that a life goes on: the node's home and epoch, and the number of the heartbeat. A node's row has some 30 times as many bytes, and each node is
// told of each other's heartbeats.
type Heartbeat [3]uint64

// Home is that of the node.
func (h Heartbeat) Home() ids.Home { return ids.Home(h[0]) }

// Life is the one that goes on.
func (h Heartbeat) Life() remote.Life { return remote.Life{Home: h.Home(), Epoch: h[1]} }

// Number is the life's number of heartbeats.
func (h Heartbeat) Number() uint64 { return h[2] }

// Heartbeat is the row's last one.
func (r NodeRecord) Heartbeat() Heartbeat { return Heartbeat{uint64(r.Home), r.Epoch, r.Beats} }

// Beat gives the row after a heartbeat, if that is a later one of the row's life.
func (r NodeRecord) Beat(h Heartbeat) (NodeRecord, bool) {
	if r.Life() != h.Life() || h.Number() <= r.Beats {
		return r, false
	}
	r.Beats = h.Number()
	return r, true
}

// Heartbeats are those that wait for others, the last one of each node.
type Heartbeats struct{ last map[ids.Home]Heartbeat }

// NewHeartbeats has none.
func NewHeartbeats() *Heartbeats { return &Heartbeats{last: make(map[ids.Home]Heartbeat)} }

// Add takes a heartbeat. One that comes late takes the place of no later one.
func (h *Heartbeats) Add(b Heartbeat) {
	was, waits := h.last[b.Home()]
	if !waits || slices.Compare(was[:], b[:]) < 0 {
		h.last[b.Home()] = b
	}
}

// Take gives what waits, in the order of the homes.
func (h *Heartbeats) Take() []Heartbeat {
	all := make([]Heartbeat, 0, len(h.last))
	for _, home := range slices.Sorted(maps.Keys(h.last)) {
		all = append(all, h.last[home])
	}
	clear(h.last)
	return all
}

const (
	// GatherEvery is how often a server writes the heartbeats that it has heard.
	GatherEvery = time.Second
	// HeartbeatsEvery is how often nodes are told of heartbeats, in a small cluster.
	HeartbeatsEvery = time.Second

	heartbeatSize  = 24       // of one in a message, in bytes
	heartbeatsRate = 16 << 10 // how many bytes of heartbeats a node is told a second, at most
)

// heartbeatsPause is between two times at which heartbeats are told to a cluster of so many nodes. What a server tells grows with the square of that number, so
// the nodes of a large cluster hear of each other's heartbeats less often. The judges do not hear of them so.
func heartbeatsPause(nodes int) time.Duration {
	return max(HeartbeatsEvery, time.Duration(nodes)*heartbeatSize*time.Second/heartbeatsRate)
}

// Told are heartbeats on their way to nodes.
type Told struct {
	Heartbeats
	told int64
}

// NewTold has none.
func NewTold() *Told { return &Told{Heartbeats: *NewHeartbeats()} }

// Due gives what waits, if it is time in a cluster of so many nodes.
func (t *Told) Due(now int64, nodes int) []Heartbeat {
	if len(t.last) == 0 || t.told != 0 && now-t.told < int64(heartbeatsPause(nodes)-HeartbeatsEvery/8) { // servers write each GatherEvery, and not to the moment
		return nil
	}
	t.told = now
	return t.Take()
}
