package world

import (
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore/record"
)

// disk is what a node keeps outside its processes, but for spilled objects. A process may be killed at any time: what it has written is there. Of
// what is lost with the machine nothing was synced.
type disk struct {
	jobs  map[ids.JobID]*jobFile
	index index
	full  bool // a fault: logs get no more room
}

// jobFile is what is kept of a job: its driver, and its owner's log.
type jobFile struct {
	driver *process // nil: not noted yet, or not coming back
	log    opLog
}

// logged are the jobs that a next life finds.
func (d *disk) logged() []ids.JobID { return slices.Sorted(maps.Keys(d.jobs)) }

// lose is the loss of the machine: of a log a prefix is left, of the index, which lies in memory, nothing.
func (d *disk) lose(w *World) {
	d.index = index{}
	for _, id := range d.logged() {
		d.jobs[id].log.cutOff(w)
	}
}

// opLog is an owner's log as package raylet/oplog keeps it: segments of records. Which records were freed is known to the process alone, and so
// a record comes back with the next one, unless all of its segment were freed. What has lapsed goes when it is the oldest there is.
type opLog struct {
	segments []*logSegment
	last     uint32
	tending  bool
}

const recordsOfSegment = 4

type logSegment struct {
	number  uint32
	records [][]byte
	freed   []bool
	lapsed  map[int]bool // of those that were not freed
	live    int
}

// append adds a record. On a full disk no segment can be made, but of the reserve, which is there for the tending: then it gives 0.
func (l *opLog) append(rec []byte, full bool) uint64 {
	n := len(l.segments)
	if full && !l.tending && (n == 0 || len(l.segments[n-1].records) == recordsOfSegment) {
		return 0
	}
	if n == 0 || len(l.segments[n-1].records) == recordsOfSegment {
		if n > 0 {
			l.dropIfDead(l.segments[n-1])
		}
		l.last++
		l.segments = append(l.segments, &logSegment{number: l.last, lapsed: make(map[int]bool)})
		n = len(l.segments)
	}
	s := l.segments[n-1]
	s.records, s.freed = append(s.records, slices.Clone(rec)), append(s.freed, false)
	s.live++
	return uint64(s.number)<<32 | uint64(len(s.records))
}

// find gives the place of a record; nil: it is not there any more.
func (l *opLog) find(cookie uint64) (s *logSegment, i int) {
	for _, s := range l.segments {
		if s.number == uint32(cookie>>32) {
			return s, int(uint32(cookie)) - 1
		}
	}
	return nil, 0
}

// free gives a record up; false: it was not there.
func (l *opLog) free(cookie uint64) bool {
	s, i := l.find(cookie)
	if s == nil || s.freed[i] {
		return false
	}
	s.freed[i] = true
	s.live--
	if s != l.segments[len(l.segments)-1] {
		l.dropIfDead(s)
	}
	return true
}

func (l *opLog) lapse(cookie uint64) {
	s, i := l.find(cookie)
	s.lapsed[i] = true
	if s != l.segments[len(l.segments)-1] {
		l.dropIfDead(s)
	}
}

func (l *opLog) dropIfDead(s *logSegment) {
	if s.live == 0 {
		l.segments = slices.DeleteFunc(l.segments, func(o *logSegment) bool { return o == s })
	}
	for len(l.segments) > 1 && l.segments[0].live == len(l.segments[0].lapsed) {
		l.segments = l.segments[1:]
	}
}

// read gives a record; nil: there is none that was not freed.
func (l *opLog) read(cookie uint64) []byte {
	s, i := l.find(cookie)
	if s == nil || s.freed[i] {
		return nil
	}
	return s.records[i]
}

// replay gives every record that was not freed.
func (l *opLog) replay(yield func(uint64, []byte) bool) {
	for _, s := range slices.Clone(l.segments) {
		for i, r := range s.records {
			if !s.freed[i] && !yield(uint64(s.number)<<32|uint64(i+1), r) {
				return
			}
		}
	}
}

// reopen is for a next process.
func (l *opLog) reopen() {
	for _, s := range l.segments {
		clear(s.freed)
		clear(s.lapsed)
		s.live = len(s.records)
	}
}

// cutOff loses the end of the log.
func (l *opLog) cutOff(w *World) {
	all := 0
	for _, s := range l.segments {
		all += len(s.records)
	}
	keep := w.rng.IntN(all + 1)
	for i, s := range l.segments {
		if keep < len(s.records) {
			s.records, s.freed = s.records[:keep], s.freed[:keep]
			l.segments = l.segments[:i+1]
			return
		}
		keep -= len(s.records)
	}
}

// index is the store's index. A slot has its content at once, or what it had.
type index struct{ slots map[uint32]record.Record }

func (x *index) write(slot uint32, r record.Record) {
	if x.slots == nil {
		x.slots = make(map[uint32]record.Record)
	}
	if r.Payload == nil {
		r.Payload = x.slots[slot].Payload
	}
	x.slots[slot] = r
}

// entries are the records in order of their slots.
func (x *index) entries() []record.Entry {
	out := make([]record.Entry, 0, len(x.slots))
	for _, slot := range slices.Sorted(maps.Keys(x.slots)) {
		out = append(out, record.Entry{Slot: slot, Record: x.slots[slot]})
	}
	return out
}
