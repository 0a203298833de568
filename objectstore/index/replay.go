package index

import "mobula/objectstore/record"

// Replay reads every intact record and makes the index ready for writes. If a half is damaged it takes the other,
// older one. It drops a record if both halves or its payload are damaged, and frees the slot. It may be called
// again at any time, for example after a panic of the writer.
func (x *Index) Replay() []record.Entry {
	n := len(x.records) * slotsPerWin
	x.slots = make([]slotState, n)
	x.pages = x.pages[:0]
	x.torn = 0
	used := make([]bool, len(x.over)*pagesPerWin)
	var out []record.Entry
	last := -1
	for slot := range uint32(n) {
		r, ok := x.replaySlot(slot, used)
		if ok {
			out = append(out, record.Entry{Slot: slot, Record: r})
			last = int(slot)
		}
	}
	x.slots = x.slots[:last+1]
	for slot := last + 1; slot < n; slot++ { // generations of new slots start over
		clear(x.half(uint32(slot), 0))
		clear(x.half(uint32(slot), 1))
	}
	for i := len(used) - 1; i >= 0; i-- {
		if !used[i] {
			x.pages = append(x.pages, uint32(i))
		}
	}
	return out
}

func (x *Index) replaySlot(slot uint32, used []bool) (record.Record, bool) {
	s := &x.slots[slot]
	a, okA := decode(x.half(slot, 0))
	b, okB := decode(x.half(slot, 1))
	cur, ok, other, okOther := a, okA, b, okB
	if !okA || (okB && int32(b.gen-a.gen) > 0) {
		cur, ok, other, okOther = b, okB, a, okA
		s.half = 1
	}
	for _, good := range []bool{okA, okB} {
		if !good {
			x.torn++
		}
	}
	if !ok {
		clear(x.half(slot, 0))
		clear(x.half(slot, 1))
		return record.Record{}, false
	}
	s.gen = cur.gen
	if okOther && int32(other.gen-s.gen) > 0 {
		s.gen = other.gen
	}
	if cur.rec.State == record.StateFree {
		return record.Record{}, false
	}
	pay, good := x.getPayload(&cur, used)
	if !good {
		x.torn++
		return record.Record{}, false
	}
	r := cur.rec
	r.Path, r.Payload = string(pay[:cur.pathLen]), pay[cur.pathLen:]
	cur.rec = record.Record{}
	if cur.inline != nil {
		cur.inline = pay
	}
	s.last = cur
	return r, true
}
