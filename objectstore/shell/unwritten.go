package shell

import (
	"cmp"
	"slices"

	"mobula/objectstore/index"
	"mobula/objectstore/record"
)

// unwritten are records that the index had no room for: its file system is full. A new core takes
// them with the index's, so that what is granted or read is not handed out again; a killed node's
// next life lacks them.
type unwritten map[uint32]record.Record

// write makes r the content of a slot, here where the index cannot take it.
func (u unwritten) write(x *index.Index, slot uint32, r *record.Record) error {
	old, here := u[slot]
	rec := *r
	if here && rec.Payload == nil { // "as it was": the index does not have that
		rec.Payload = old.Payload
	}
	err := x.Write(slot, &rec)
	if err == nil {
		delete(u, slot)
	} else {
		u[slot] = rec
	}
	return err
}

// clear frees a slot.
func (u unwritten) clear(x *index.Index, slot uint32) error {
	delete(u, slot)
	return x.Clear(slot)
}

// over gives the index's entries with the records that it lacks.
func (u unwritten) over(entries []record.Entry) []record.Entry {
	if len(u) == 0 {
		return entries
	}
	found := make(map[uint32]bool, len(entries))
	for i := range entries {
		e := &entries[i]
		found[e.Slot] = true
		if r, here := u[e.Slot]; here {
			if r.Payload == nil {
				r.Payload = e.Payload
			}
			e.Record = r
		}
	}
	for slot, r := range u {
		if !found[slot] {
			entries = append(entries, record.Entry{Slot: slot, Record: r})
		}
	}
	slices.SortFunc(entries, func(a, b record.Entry) int { return cmp.Compare(a.Slot, b.Slot) })
	return entries
}
