package objectstore

import (
	"slices"

	"mobula/internal/ids"
)

// pin takes n pins for a client on an object or value that is in memory.
func (os *objects) pin(client ids.ClientID, id ids.ObjectID, r ref, n uint32) {
	for _, x := range os.orphansOf(client, id) {
		for i := range x.o.pins {
			if p := &x.o.pins[i]; p.client == client && p.sub == x.sub && !p.merged {
				n += p.n // an Unpin cannot tell them apart: both stay until all are dropped
				p.merged = true
			}
		}
	}
	r.o.addPin(client, id, r.sub, n)
	os.viewed(r.o)
	os.relist(r.o)
}

func (os *objects) viewed(o *object) {
	if _, ok := os.pinned[o]; !ok {
		os.pinned[o] = struct{}{}
		os.viewedBytes += o.size
	}
}

func (os *objects) unviewed(o *object) {
	if _, ok := os.pinned[o]; ok {
		delete(os.pinned, o)
		os.viewedBytes -= o.size
	}
}

// declarePins takes over the n pins on an id that a client has had since before a restart. Which of what has been the id they are on, the client cannot
// say: all of it stays until they are dropped. current tells whether r, what the id is now, can be one of them.
func (os *objects) declarePins(client ids.ClientID, id ids.ObjectID, r ref, current bool, n uint32) {
	for _, x := range os.orphansOf(client, id) {
		x.o.pins = append(x.o.pins, pin{client: client, id: id, sub: x.sub, n: n, merged: current})
		os.viewed(x.o)
		os.relist(x.o)
	}
	if current {
		os.pin(client, id, r, n)
	}
}

func (os *objects) unpin(client ids.ClientID, id ids.ObjectID, n uint32) {
	r, ok := os.objs[id]
	if ok {
		r, ok = os.readAt(client, r)
	}
	if ok {
		n -= r.o.dropPins(client, r.sub, n)
		if r.o.pinsOf(client, r.sub) == 0 {
			os.dropMerged(client, id)
		}
		os.unpinned(id, r)
	}
	for _, x := range os.orphansOf(client, id) {
		n -= x.o.dropPins(client, x.sub, n)
		os.unpinned(id, x)
	}
}

// dropMerged drops the pins on orphans that were counted with those of their successor.
func (os *objects) dropMerged(client ids.ClientID, id ids.ObjectID) {
	for _, x := range os.orphansOf(client, id) {
		x.o.pins = slices.DeleteFunc(x.o.pins, func(p pin) bool { return p.client == client && p.sub == x.sub && p.merged })
		os.unpinned(id, x)
	}
}

// unpinned follows up on pins that fell.
func (os *objects) unpinned(id ids.ObjectID, r ref) {
	if len(r.o.pins) == 0 {
		os.unviewed(r.o)
	}
	if r.o.values != nil {
		os.dropFreedValue(id, r)
	}
	os.relist(r.o)
}

// dropFreedValue lets a freed value go once no view pins it; with its last one goes the block.
func (os *objects) dropFreedValue(id ids.ObjectID, r ref) {
	if !r.o.values[r.sub].gone || os.objs[id] != r {
		return
	}
	for _, p := range r.o.pins {
		if p.sub == r.sub {
			return
		}
	}
	if r.o.busy() {
		r.o.parked = append(r.o.parked, id)
		return
	}
	delete(os.objs, id)
	if r.o.live--; r.o.live == 0 {
		r.o.gone = true
	}
}
