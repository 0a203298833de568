package world

import (
	"fmt"
	"time"

	"mobula/internal/errs"
	"mobula/raylet/owner"
)

// upkeep is an event of the shell's own to an owner: it is to tend its log, between two steps, as in internal/node.
type upkeep struct{ owner.Event }

// upkeepBudget is how many records of the log one upkeep moves: a segment takes several, and what moved them may be lost in between.
const upkeepBudget = 4

// keepUp asks for an upkeep when the log is due for one.
func (o *ownerShell) keepUp() {
	if o.log.due() && !o.tending {
		o.tending = true
		o.box.put(upkeep{})
	}
}

// maxRest bounds the bytes that memory keeps of what the log could not take.
const maxRest = 1 << 20

// append puts a record on the log, or where its disk is full into memory, until the log takes it: the process may be killed before.
func (o *ownerShell) append(rec []byte) uint64 {
	if o.rest.Len() > 0 {
		o.moveRest()
	}
	if at := o.log.append(rec, o.n.disk.full); at != 0 {
		return at
	}
	o.tryLater()
	return o.rest.Add(rec, maxRest)
}

// tryLater has the log take it after a while.
func (o *ownerShell) tryLater() {
	if !o.later {
		o.later = true
		o.n.w.after(int64(time.Second), func() { o.box.put(upkeep{}) })
	}
}

func (o *ownerShell) moveRest() {
	o.rest.Moves(o.core.Relocate, func(rec []byte) (uint64, error) {
		if at := o.log.append(rec, o.n.disk.full); at != 0 {
			return at, nil
		}
		return 0, errs.New(errs.CodeOutOfDisk, "no room for a segment of the log")
	}, o.log.lapse)
}

// free gives a record up; false: it was not there.
func (o *ownerShell) free(cookie uint64) bool { return o.rest.Free(cookie) || o.log.free(cookie) }

func (o *ownerShell) lapse(cookie uint64) {
	if !o.rest.Lapse(cookie) {
		o.log.lapse(cookie)
	}
}

func (o *ownerShell) read(cookie uint64) []byte {
	if rec, known := o.rest.Read(cookie); known {
		return rec
	}
	return o.log.read(cookie)
}

// tend moves what is needed out of the log's oldest segment.
func (o *ownerShell) tend() {
	if o.later = false; o.rest.Len() > 0 {
		if o.moveRest(); o.rest.Len() > 0 {
			o.tryLater()
		}
	}
	if o.tending = false; !o.log.due() {
		return
	}
	o.log.tending = true
	o.log.tend(upkeepBudget, func(cookie uint64, rec []byte) {
		if at := o.core.Relocate(cookie, rec); at != nil {
			*at = o.log.append(rec, o.n.disk.full)
			o.n.w.model.moved++
		}
	})
	o.log.tending = false
	o.keepUp()
}

// due tells whether more of the log is dead than is needed, and a segment besides.
func (l *opLog) due() bool {
	live, dead := 0, 0
	for _, s := range l.segments {
		live += s.live - len(s.lapsed)
		dead += len(s.records) - s.live
	}
	return len(l.segments) > 1 && dead > live+recordsOfSegment
}

// tend moves live records out of the oldest segment, which goes with the last of them.
func (l *opLog) tend(budget int, move func(cookie uint64, rec []byte)) {
	s := l.segments[0]
	for i, rec := range s.records {
		if budget == 0 {
			return
		}
		if s.freed[i] || s.lapsed[i] {
			continue
		}
		budget--
		cookie := uint64(s.number)<<32 | uint64(i+1)
		if move(cookie, rec); !l.free(cookie) {
			panic(broken(fmt.Sprintf("record %#x was freed while it was moved", cookie)))
		}
	}
	l.dropIfDead(s)
}
