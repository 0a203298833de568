package owner

import (
	"encoding/binary"

	"mobula/internal/ids"
)

// table finds the record of a task or a put by its name: open addressing and linear probing, the
// slots in the order of their hashes. A task is entered under its first return, which is
// part of its record. Nothing is left of what is removed, and since the order does not depend
// on what else is there, a scan goes on after any change at the hash it has come to.
type table struct {
	slots []slot // 1<<bits homes, and room behind the last: runs do not wrap around
	bits  uint8
	n     int
	gone  int // removed since the last resize

	prefetched uint64 // of no meaning: what warm reads goes somewhere
}

// slot has the hash beside the record, so that a probe reads no record but the one it is for.
type slot struct {
	hash uint64
	o    *objRec // nil: free
}

const (
	minTableBits = 10
	tailSlots    = 64 // behind the last home
)

// hashOf spreads what ids.Derive has spread already, and the counters of puts.
func hashOf(id *ids.ObjectID) uint64 {
	h := binary.LittleEndian.Uint64(id.Task[12:]) ^ binary.LittleEndian.Uint64(id.Task[4:])*0x9e3779b97f4a7c15 ^ uint64(id.Index)<<17
	return (h ^ h>>32) * 0xd6e8feb86659fd93
}

func (t *table) bucket(hash uint64) int { return int(hash >> (64 - t.bits)) }

// find gives the record of exactly this name, or nil.
func (t *table) find(id *ids.ObjectID) *objRec {
	if t.n == 0 {
		return nil
	}
	o, _ := t.at(id, hashOf(id))
	return o
}

// at finds a name's record, or where it belongs. Not in an empty table.
func (t *table) at(id *ids.ObjectID, h uint64) (*objRec, int) {
	for i := t.bucket(h); ; i++ {
		s := &t.slots[i]
		if s.o == nil || s.hash > h {
			return nil, i
		}
		if s.hash == h && s.o.id == *id {
			return s.o, i
		}
	}
}

// task gives the record of a task, or nil.
func (t *table) task(id ids.TaskID) *taskRec {
	name := ids.ObjectID{Task: id}
	if o := t.find(&name); o != nil {
		return o.rec
	}
	return nil
}

// place is where a name that is not there belongs, until the table is changed.
type place struct {
	at   int
	hash uint64
}

// findOrPlace finds a record, or where it belongs, in one probe.
func (t *table) findOrPlace(id *ids.ObjectID) (*objRec, place) {
	if t.n >= len(t.slots)*5/8 {
		t.resize(t.bits + 1)
	}
	h := hashOf(id)
	o, i := t.at(id, h)
	return o, place{i, h}
}

// enter fills a place. What lies there, and behind it up to the next free slot, moves on by one.
func (t *table) enter(o *objRec, p place) {
	end := p.at
	for t.slots[end].o != nil {
		end++
	}
	if end == len(t.slots)-1 {
		t.lengthen()
	}
	copy(t.slots[p.at+1:end+1], t.slots[p.at:end])
	t.slots[p.at] = slot{p.hash, o}
	t.n++
}

// lengthen makes room behind the last home: the last slot is always free, and so ends every run.
// Only names that were made to collide need more than there is.
func (t *table) lengthen() {
	t.slots = append(t.slots, make([]slot, len(t.slots)-1<<t.bits)...)
}

// add enters a record, in the place of the one of its name if there is one.
func (t *table) add(o *objRec) {
	old, p := t.findOrPlace(&o.id)
	if old != nil {
		t.slots[p.at].o = o
		return
	}
	t.enter(o, p)
}

// remove takes a name out; those pushed on by it move back, so that no probe ends too early.
func (t *table) remove(id *ids.ObjectID) {
	if t.n == 0 {
		return
	}
	o, i := t.at(id, hashOf(id))
	if o == nil {
		return
	}
	end := i + 1
	for t.slots[end].o != nil && t.bucket(t.slots[end].hash) < end {
		end++
	}
	copy(t.slots[i:end-1], t.slots[i+1:end])
	t.slots[end-1] = slot{}
	t.n--
	t.gone++
	// A table that bursts fill and empty in turn is not made anew each time.
	if t.bits > minTableBits && t.n < len(t.slots)/16 && t.gone > len(t.slots) {
		t.resize(t.bits - 2)
	}
}

// resize makes the table anew, in one pass: the order stays.
func (t *table) resize(to uint8) {
	old := t.slots
	t.bits = max(to, minTableBits)
	t.slots = make([]slot, 1<<t.bits+tailSlots)
	t.gone = 0
	next := 0
	for k := range old {
		if old[k].o == nil {
			continue
		}
		i := max(t.bucket(old[k].hash), next)
		if i == len(t.slots)-1 {
			t.lengthen()
		}
		t.slots[i] = old[k]
		next = i + 1
	}
}

// cursor is how far a scan has come: what hashes to less was visited.
type cursor struct {
	from uint64
	done bool
}

// scan appends the next records, as many as are wanted, and more where names collide. What is in
// the table from the begin to the end of a scan is given once, whatever is changed between two
// calls; what comes or goes meanwhile once or not at all.
func (t *table) scan(c *cursor, want int, buf []*objRec) []*objRec {
	if c.done || t.n == 0 {
		c.done = true
		return buf
	}
	for i := t.bucket(c.from); i < len(t.slots); i++ {
		s := &t.slots[i]
		if s.o == nil || s.hash < c.from {
			continue
		}
		if want <= 0 && s.hash != c.from {
			c.from = s.hash
			return buf
		}
		buf = append(buf, s.o)
		c.from = s.hash
		want--
	}
	c.done = true
	return buf
}

const scanPart = 1024

// each calls f for every record; f may change the table.
func (t *table) each(f func(*objRec)) {
	var c cursor
	var buf []*objRec
	for !c.done {
		buf = t.scan(&c, scanPart, buf[:0])
		for _, o := range buf {
			f(o)
		}
	}
}

// eachTask is each of a table of tasks, without those that f has had reaped.
func (t *table) eachTask(f func(*taskRec)) {
	t.each(func(o *objRec) {
		if o.rec.flags&taskReaped == 0 {
			f(o.rec)
		}
	})
}
