package client

import (
	"sync/atomic"

	"mobula/internal/ids"
	"mobula/wire"
)

// pin is this process' pin of one stored object, which all its readers share.
type pin struct {
	id     ids.ObjectID
	data   []byte // the whole extent, read-only; nil if it could not be mapped
	users  int32  // readers; guarded by the shard's mu
	n      uint32 // pins that the store counts for this client; guarded by the shard's mu
	queued bool   // in the release queue; guarded by the shard's mu
}

// Data is the value of a Get. If it is pinned, Value.Data lies in the node's segment: read-only, valid until
// Release.
type Data struct {
	Value wire.Value
	lease *reading
	got   bool
}

// reading is one reader's share of a pin; copies of a Data share it.
type reading struct {
	of   *handles
	p    *pin
	done atomic.Bool
}

// Pinned tells whether the value lies in the segment, so that Release matters.
func (d Data) Pinned() bool { return d.lease != nil }

// Release gives the pin back. Only the first call, on whichever copy, does anything.
func (d Data) Release() {
	if d.lease == nil || d.lease.done.Swap(true) {
		return
	}
	d.lease.of.unread(d.lease.p)
}

// Released tells whether Release was called: the slice must not be used any more.
func (d Data) Released() bool { return d.lease != nil && d.lease.done.Load() }

// dropPin removes a queued pin from the table, unless it has readers again, and returns how many pins to give back
// to the store.
func (t *table) dropPin(p *pin) uint32 {
	s := t.shard(&p.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.queued = false
	if p.users > 0 {
		return 0
	}
	n := p.n
	p.n, p.data = 0, nil
	if s.pins[p.id] == p {
		delete(s.pins, p.id)
	}
	return n
}

// readable gives the pin of an object that can be read; nil if it must be asked for. The shard's mu is held.
func (s *shard) readable(id ids.ObjectID) *pin {
	if p := s.pins[id]; p != nil && p.n > 0 && p.data != nil {
		return p
	}
	return nil
}

// pinned records one more pin of the store and gives it the users. The shard's mu is held.
func (s *shard) pinned(id ids.ObjectID, data []byte, users int32) *pin {
	p := s.pins[id]
	if p == nil || p.n == 0 {
		p = &pin{id: id, data: data}
		if s.pins == nil {
			s.pins = make(map[ids.ObjectID]*pin)
		}
		s.pins[id] = p
	}
	if p.data == nil {
		p.data = data // it could not be mapped before
	}
	p.n++
	p.users += users
	return p
}
