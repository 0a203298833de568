package owner

import (
	"mobula/internal/ids"
	"mobula/wire"
)

// A table of many tasks is in no near cache, and a lookup waits for memory twice: for the slot
// and for the record. Those of the next few messages do not depend on each other, so they are
// read together first, and the waits overlap.

const (
	prefetchBatch      = 16      // lookups at once: about as many reads as a core has under way
	prefetchMinRecords = 1 << 13 // records; fewer are in a near cache anyway
)

// prefetch reads what the lookups of these names will, and changes nothing.
func (t *table) prefetch(names []ids.ObjectID) {
	if t.n < prefetchMinRecords {
		return
	}
	var hs [prefetchBatch]uint64
	names = names[:min(len(names), prefetchBatch)]
	for i := range names {
		name := names[i]
		if !name.IsPut() {
			name.Index = 0
		}
		hs[i] = hashOf(&name)
	}
	var os [prefetchBatch]*objRec
	for i := range names {
		if s := &t.slots[t.bucket(hs[i])]; s.hash == hs[i] {
			os[i] = s.o
		}
	}
	for _, o := range os[:len(names)] {
		if o != nil {
			t.prefetched += uint64(o.flags)
		}
	}
}

// prefetchMessages warms the lookups of a client's next messages.
func (c *Core) prefetchMessages(ms []wire.Msg) {
	if c.tasks.n < prefetchMinRecords {
		return
	}
	var names [prefetchBatch]ids.ObjectID
	n := 0
	for _, m := range ms[:min(len(ms), prefetchBatch)] {
		switch m := m.(type) {
		case *wire.Submit:
			names[n].Task = m.Spec.ID
			n++
		case *wire.Get:
			names[n] = m.ID
			n++
		}
	}
	c.tasks.prefetch(names[:n])
}
