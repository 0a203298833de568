package owner

import (
	"mobula/internal/ids"
	"mobula/raylet/owner/record"
)

// What the log's upkeep needs to know. Both are called between two steps.

// Relocate says what becomes of a live record that is in the way of a compaction: where the
// new position goes if it is to be appended again as it is, or nil if it is not needed.
func (c *Core) Relocate(cookie uint64, rec []byte) *uint64 {
	r, _, err := record.Parse(rec)
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
		places = c.tombs
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

// FreeTombs gives the positions of the forget records that are not needed any more because
// every record that is left of before them lies below the given position, among those that
// go with them: below is where the second of the log's segments begins.
func (j *journal) FreeTombs(below uint64) []uint64 {
	var out []uint64
	keep := j.tombs[:0]
	for _, p := range j.tombs {
		switch {
		case *p >= below:
			keep = append(keep, p)
		case *p != 0: // else its append failed
			out = append(out, *p)
		}
	}
	clear(j.tombs[len(keep):])
	j.tombs = keep
	return out
}

// logForget records what the step forgot.
func (j *journal) logForget() {
	if j.cfg.VolatileLog || j.ended {
		return
	}
	at := len(j.logbuf)
	j.logbuf = record.AppendForget(j.logbuf, j.nextRecord(), j.forgot)
	ck := new(uint64)
	j.tombs = append(j.tombs, ck)
	j.logged(at, ck)
}
