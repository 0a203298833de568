package world

import (
	"fmt"

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

// tend moves what is needed out of the log's oldest segment.
func (o *ownerShell) tend() {
	o.log.tend(upkeepBudget, func(cookie uint64, rec []byte) {
		if at := o.core.Relocate(cookie, rec); at != nil {
			*at = o.log.append(rec)
			o.n.w.model.moved++
		}
	})
	o.tending = false
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
