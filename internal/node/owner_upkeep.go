package node

import (
	"time"

	"mobula/actors"
	"mobula/raylet/owner"
)

// upkeepBudget is about how many bytes of an owner's log one upkeep reads, unless more was appended since the last: a fraction of a millisecond, which
// the events behind it wait.
const upkeepBudget = 512 << 10

// upkeep is an event of the node's own to an owner: it is to tend its log, between two steps.
type upkeep struct {
	owner.Event
	self *actors.Ref[owner.Event]
}

// append puts a record on the log. Where it cannot (disk full), memory keeps it until the log can: it is lost only if the process is killed before.
func (o *ownerActor) append(r *owner.LogRecord) {
	if o.rest.Len() > 0 {
		o.moveRest()
	}
	cookie, err := o.log.Append(r.Bytes)
	if err != nil {
		o.owners.limited.warn("owner log cannot be written; a kill of the node would lose the job's state", "job", o.job, "err", err)
		cookie = o.rest.Add(r.Bytes, logOptions(o.owners.cfg.StoreBytes, true).Memory)
		o.tryLater()
	}
	if old := r.Appended(cookie); old != 0 {
		o.free(old)
	}
}

// restAgain is after how long what the log could not take is tried again, if nothing else is logged.
const restAgain = time.Second

// tryLater has the log take what it could not take, should nothing be logged for a while, whichever core there is by then.
func (o *ownerActor) tryLater() {
	if !o.later {
		o.later = true
		o.ref.After(restAgain, upkeep{self: o.ref})
	}
}

// moveRest has the log take what it can of what it could not.
func (o *ownerActor) moveRest() { o.rest.Moves(o.core.Relocate, o.log.Append, o.lapse) }

// free gives a record of the log up. What cannot be freed is kept: space, not meaning.
func (o *ownerActor) free(cookie uint64) {
	if !o.rest.Free(cookie) {
		_ = o.log.Free(cookie)
	}
}

func (o *ownerActor) lapse(cookie uint64) {
	if !o.rest.Lapse(cookie) {
		_ = o.log.Lapse(cookie)
	}
}

func (o *ownerActor) read(cookie uint64) ([]byte, error) {
	if rec, known := o.rest.Read(cookie); known {
		return rec, nil
	}
	return o.log.Read(cookie)
}

// keepUp asks for an upkeep when the log is due for one.
func (o *ownerActor) keepUp(self *actors.Ref[owner.Event]) {
	if o.log.Due() && !o.tending {
		o.tending = true
		self.Deliver(upkeep{self: self})
	}
}

// tend moves what is in the way of the end of the log's oldest segment, a part at a time: the rest comes behind what waits for the owner.
func (o *ownerActor) tend(u upkeep) {
	o.tending, o.later = false, false
	if o.rest.Len() > 0 {
		if o.moveRest(); o.rest.Len() > 0 {
			o.tryLater()
		}
	}
	more, err := o.log.Tend(upkeepBudget, func(cookie uint64, rec []byte) error {
		at := o.core.Relocate(cookie, rec)
		if at == nil {
			return nil
		}
		moved, err := o.log.Append(rec)
		if err == nil {
			*at = moved
		}
		return err
	})
	switch {
	case err != nil:
		o.owners.limited.warn("owner log cannot be compacted; it takes more space than it needs", "job", o.job, "err", err)
	case more:
		o.tending = true
		u.self.Deliver(u)
	}
}
