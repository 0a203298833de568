package objectstore

import (
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// object is a sealed object, or a block of packed values. Its bytes are in memory
// (resident: in the segment or in a fallback file), in spill storage, or both.
type object struct {
	id      ids.ObjectID
	attempt uint32
	slot    uint32 // in the index
	size    uint64 // of the data
	meta    []byte
	job     ids.JobID             // in whose file it lies, or would: whose process made it, or, of a copy, whose processes read it
	of      *object               // of a copy: what it is one of
	copies  map[ids.JobID]*object // for the processes of other jobs

	block   alloc.Block // resident and file 0
	file    uint32
	exports uint32 // pins of other nodes
	path    string

	loc spill.Location // spilled

	elsewhere []ids.Home // other nodes that have it, the best first

	pins       []pin // of clients, by get
	argPins    int   // of admitted argument sets
	argActive  int   // of those, the ones whose task is not idle
	argCharged uint64
	copying    int // copies that are being made of it
	resident   bool
	spilled    bool
	quarantine bool // from before a restart; some client may still read it
	draining   bool // an earlier core's read may still be filling a block for it
	gone       bool // no reference is left; goes when pins, spill and restore let it
	spilling   bool
	dead       bool // destroyed
	counted    bool // in Core.pinnedBytes
	restore    *demand
	filling    *demand // a restore that was cancelled while it was read: its block is written to still
	mark       uint64  // Core.mark of the last count that met it

	list       *lru // that it is on, if any
	prev, next *object

	values []value        // of a block
	live   int            // values that are not freed or still pinned
	parked []ids.ObjectID // values freed while the block as a whole was needed

	orphaned []ids.ObjectID // ids that were its own, or its values', and are not any more: it is in Core.orphans
}

// pin is one client's pins on an object or on one value of a block.
type pin struct {
	client ids.ClientID
	id     ids.ObjectID // of the object, or of the value
	sub    uint32
	n      uint32
	merged bool // of an orphan: falls with the pins of the object that took its id
}

// value is one packed value within a block.
type value struct {
	off, size     uint32
	metaOff, mLen uint32 // within the block's meta
	gone          bool
}

// ref finds an object by id: the object itself, or one value of a block.
type ref struct {
	o   *object
	sub uint32
}

func (o *object) pinned() bool {
	return len(o.pins) > 0 || o.argPins > 0 || o.quarantine || o.copying > 0 || o.exports > 0
}

// footprint is what the object takes, or would take, in the segment.
func (o *object) footprint() uint64 {
	if o.resident && o.file == 0 {
		return o.block.Size
	}
	return alloc.Rounded(o.size)
}

// extent is where the bytes of r lie; r.o is resident.
func (r ref) extent() wire.Extent {
	o, e := r.o, r.whole()
	if o.values != nil {
		v := o.values[r.sub]
		e.Off, e.Size = e.Off+uint64(v.off), uint64(v.size)
	}
	return e
}

// whole is where the object, or all of the block, lies.
func (r ref) whole() wire.Extent {
	e := wire.Extent{File: r.o.file, Off: r.o.block.Off, Size: r.o.size}
	if r.o.file != 0 {
		e.Off = 0
	}
	return e
}

func (r ref) size() uint64 {
	if r.o.values != nil {
		return uint64(r.o.values[r.sub].size)
	}
	return r.o.size
}

func (r ref) meta() []byte {
	if r.o.values != nil {
		v := r.o.values[r.sub]
		return r.o.meta[v.metaOff : v.metaOff+v.mLen : v.metaOff+v.mLen]
	}
	return r.o.meta
}

// addPin takes n pins for a client.
func (o *object) addPin(c ids.ClientID, id ids.ObjectID, sub, n uint32) {
	for i := range o.pins {
		if p := &o.pins[i]; p.client == c && p.sub == sub {
			p.n += n
			return
		}
	}
	o.pins = append(o.pins, pin{client: c, id: id, sub: sub, n: n})
}

// dropPins takes n pins of a client away, at most those there are, and says how many.
func (o *object) dropPins(c ids.ClientID, sub, n uint32) uint32 {
	for i := range o.pins {
		p := &o.pins[i]
		if p.client != c || p.sub != sub || p.merged {
			continue
		}
		n = min(n, p.n)
		if p.n -= n; p.n == 0 {
			o.pins[i] = o.pins[len(o.pins)-1]
			o.pins = o.pins[:len(o.pins)-1]
		}
		return n
	}
	return 0
}

// pinsOf counts a client's pins.
func (o *object) pinsOf(c ids.ClientID, sub uint32) uint32 {
	for _, p := range o.pins {
		if p.client == c && p.sub == sub {
			return p.n
		}
	}
	return 0
}
