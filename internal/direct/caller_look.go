package direct

import "mobula/internal/ids"

// Place is where a call is that has not ended, as far as the process knows that makes it.
type Place uint8

// The places.
const (
	OnItsWay     Place = iota // it was sent: it is in the mailbox or runs, or its answer comes
	NeedsArg                  // an argument is not there
	BehindOthers              // of the same caller, that wait in its line
	BehindWay                 // of the same caller: calls that went the other way, by the owner or straight, have not ended
	NeedsWay                  // the node has not said how calls get to the actor
	NeedsWord                 // its instance, or the channel, has ended, and the node has not said what follows
	NeedsCredit               // too much is on its way to the actor
)

// Underway is a call that has not ended, and where it is.
type Underway struct {
	ID    ids.TaskID
	Own   any // of who makes it
	Place Place
	Ahead int    // calls before it, where it waits for its turn: in its line, or where it was sent in the mailbox, with those that run
	Runs  bool   // it was sent, and runs
	Aside bool   // it waits in the mailbox until its process takes answers
	Order uint64 // among those that its process has made of the actor
	Tries int32  // retries that it has used
	To    Instance
}

// Sent is a call that is under way on a channel; nil: it has ended, or its channel has.
func (c *Caller) Sent(id Channel, no uint64) *Call {
	if ch := c.channel(id); ch != nil {
		if k := ch.call(no); k != nil && k.stage == onChannel {
			return k
		}
	}
	return nil
}

// Runs tells whether a call has begun that is under way on a channel to another process, by the counts of that.
func (c *Call) Runs(counts []uint64) bool { return c.stage == onChannel && c.begun(counts) }

// Look visits the calls that have not ended, in the order of each caller; but none that the owner has, or that have ended for their caller. ahead is how many of the
// caller's are before one in its line.
func (c *Caller) Look(visit func(k *Call, at Place, ahead int)) {
	sent := OnItsWay
	if c.way == doubtful {
		sent = NeedsWord
	}
	if c.ch != nil {
		for _, k := range c.ch.flight.All() {
			if k != nil && k.stage == onChannel {
				visit(k, sent, 0)
			}
		}
	}
	for _, l := range c.list {
		for i, k := range l.calls.All() {
			if i > 0 {
				visit(k, BehindOthers, i)
			} else {
				visit(k, c.lacks(l, k), 0)
			}
		}
	}
}

// lacks is why the first call of a line is there: what next has found.
func (c *Caller) lacks(l *line, k *Call) Place {
	owner := k.ByOwner || c.way == byOwner
	switch {
	case owner || l.owned > 0:
		return BehindWay
	case k.missing > 0:
		return NeedsArg
	case c.way == doubtful:
		return NeedsWord
	case c.way == straight:
		return NeedsCredit
	}
	return NeedsWay
}

// Look visits the calls that are pending, in the order in which those of a concurrency group begin; those that stand aside come last. ahead is how many calls are before
// one, those that run among them.
func (h *Host) Look(visit func(in *Incoming, runs, aside bool, ahead int)) {
	for g := range h.boxes {
		b := &h.boxes[g]
		for _, in := range b.running {
			visit(in, true, false, 0)
		}
		ahead := len(b.running)
		for _, in := range b.waiting.All() {
			visit(in, false, false, ahead)
			ahead++
		}
		for _, s := range h.list {
			for _, in := range s.aside[g].All() {
				visit(in, false, true, ahead)
				ahead++
			}
		}
	}
}
