package node

import (
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

// keepUp asks for an upkeep when the log is due for one.
func (o *ownerActor) keepUp(self *actors.Ref[owner.Event]) {
	if o.log.Due() && !o.tending {
		o.tending = true
		self.Deliver(upkeep{self: self})
	}
}

// tend moves what is in the way of the end of the log's oldest segment, a part at a time: the rest comes behind what waits for the owner.
func (o *ownerActor) tend(u upkeep) {
	o.tending = false
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
