package owner

import (
	"cmp"
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/owner/record"
	"mobula/wire"
)

// What the log's upkeep needs to know. Both are called between two steps.

// Relocate says what becomes of a live record that is in the way of a compaction: where the
// new position goes if it is to be appended again as it is, or nil if it is not needed.
func (c *Core) Relocate(cookie uint64, rec []byte) *uint64 {
	r, seq, err := record.Parse(rec)
	if err != nil {
		return nil
	}
	var places []*uint64
	switch r := r.(type) {
	case *record.Options:
		places = append(places, c.optCookies[r.No])
	case *record.Submit:
		places = c.placesOf(r.Spec.ID)
	case *record.Done:
		places = c.placesOf(r.Done.Task)
	case *record.Retry:
		places = c.placesOf(r.Task)
	case *record.Closed:
		places = c.placesOf(r.Task)
	case *record.Actor:
		places = c.placesOf(ids.TaskID(r.Actor))
	case *record.Object:
		places = c.placesOfObject(r.ID)
	case *record.Packed:
		places = c.placesOfObject(r.ID)
	case *record.Forget:
		if i, ok := slices.BinarySearchFunc(c.tombs, seq, func(t tomb, seq uint64) int { return cmp.Compare(t.seq, seq) }); ok {
			places = append(places, c.tombs[i].at)
		}
	}
	for _, p := range places {
		if p != nil && *p == cookie {
			return p
		}
	}
	return nil
}

func (c *Core) placesOf(id ids.TaskID) []*uint64 {
	t := c.tasks.task(id)
	if t == nil {
		return nil
	}
	out := []*uint64{&t.cookie, &t.doneAt}
	if t.x != nil {
		out = append(out, t.x.cookies...)
	}
	return out
}

func (c *Core) placesOfObject(id ids.ObjectID) []*uint64 {
	o := c.object(id)
	if o == nil {
		return nil
	}
	out := append([]*uint64{&o.cookie}, c.putCookies[id]...)
	if o.rec != nil && o.rec.x != nil {
		out = append(out, o.rec.x.cookies...)
	}
	return out
}

// tomb is a forget record.
type tomb struct {
	at       *uint64 // its position; zero where its append failed
	seq      uint64  // its number
	sent     uint64  // how much the driver had sent that it may send again
	ofDriver bool    // it names something that a driver made
}

// FreeTombs gives the positions of the forget records that are not needed any more, among those that go with the records before them: below
// is where the second of the log's segments begins. One is needed while a record from before it may be left, and while a driver may send again
// what it names. later counts those that would go too, if the first segment were theirs.
func (c *Core) FreeTombs(below uint64) (free []uint64, later int) {
	if c.recovering {
		return nil, 0
	}
	keep := c.tombs[:0]
	for _, t := range c.tombs {
		switch {
		case t.ofDriver && c.clients.drivers > 0 && c.sent-t.sent < wire.Replayed:
			keep = append(keep, t)
		case *t.at >= below:
			keep = append(keep, t)
			later++
		case *t.at != 0:
			free = append(free, *t.at)
		}
	}
	clear(c.tombs[len(keep):])
	c.tombs = keep
	return free, later
}

// noteSent counts what a driver sends and may send again to the node's next life.
func (j *journal) noteSent(cl *clientRec) {
	if cl.role == wire.RoleDriver {
		j.sent++
	}
}

// noteMaker marks the record of a put, or of a task's first return, that a driver made.
func (o *objRec) noteMaker(cl *clientRec) {
	if cl.role == wire.RoleDriver {
		o.flags |= objOfDriver
	}
}

// forget takes note that a put, or the task of a first return, is forgotten in this step.
func (j *journal) forget(id ids.ObjectID, o *objRec) {
	j.forgot = append(j.forgot, id)
	j.forgotOfDriver = j.forgotOfDriver || o.flags&objOfDriver != 0
}

// logForget records what the step forgot.
func (j *journal) logForget() {
	ofDriver := j.forgotOfDriver
	j.forgotOfDriver = false
	if j.cfg.VolatileLog || j.ended {
		return
	}
	at := len(j.logbuf)
	seq := j.nextRecord()
	j.logbuf = record.AppendForget(j.logbuf, seq, j.forgot)
	ck := new(uint64)
	j.tombs = append(j.tombs, tomb{at: ck, seq: seq, sent: j.sent, ofDriver: ofDriver})
	j.logged(at, ck)
}
