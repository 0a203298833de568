package owner

import (
	"mobula/internal/errs"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// An item of a stream may be lost while the attempt that has passed it goes on. As a rule the task runs once more when that one has
// ended. One that is held up by backpressure does not end: it waits for its readers, who may wait for the item. It is told to end then,
// and the next attempt makes the item. What is there already holds no attempt up, whoever has taken it.

// passed gives how many items the running attempt has announced. Of one that a rebuilt core took over it is what was made at all.
func (t *taskRec) passed() uint32 {
	s := t.x.stream
	switch {
	case s.attempt == t.start:
		return s.sent
	case t.flags&taskAdopted != 0:
		return s.produced
	}
	return 0
}

// told is how far a producer is told its readers are: as far as they are, and so far that it can make again what had been made.
func (t *taskRec) told() uint32 {
	s, n := t.x.stream, t.x.stream.consumed
	if ahead := backpressure(t); s.produced > ahead {
		n = max(n, s.produced-ahead)
	}
	return n
}

// backpressure is how many items a producer may be ahead of its readers; 0: any number.
func backpressure(t *taskRec) uint32 { return uint32(max(t.options().Backpressure, 0)) }

// heldUp tells whether the running attempt waits for its readers.
func (t *taskRec) heldUp() bool {
	ahead := backpressure(t)
	return ahead > 0 && !t.x.stream.closed && t.state.OnWorker() && t.lease != nil && t.passed() >= t.told()+ahead
}

// lostItem notes that an item is to be made again, and ends an attempt that would never come to it; false: no retry is left for that.
func (ss *streams) lostItem(t *taskRec, o *objRec) bool {
	s := t.x.stream
	s.holes = true
	if o.state == object.Stored && o.attempt < t.start {
		s.owed = true // lost with what the last attempt was for, before anybody looked
	}
	if o.id.Index < t.passed() {
		return ss.startOver(t)
	}
	return true
}

// startOver tells an attempt that is held up to end: another one is to begin; false: no retry is left.
func (ss *streams) startOver(t *taskRec) bool {
	if t.x.anew || !t.heldUp() {
		return true // it ends, and is looked at then
	}
	if !ss.up.chargeLoss(t) {
		return false
	}
	ss.stats.Reconstructed++
	t.x.anew = true
	ss.leases.toLease(t.lease, &wire.CancelTask{Task: t.id()})
	return true
}

// lookForHoles looks, when an attempt is held up, whether an item is missing that it has passed.
func (ss *streams) lookForHoles(t *taskRec) {
	s := t.x.stream
	if !s.holes || t.x.anew || !t.heldUp() {
		return
	}
	i := s.missing()
	if s.holes = i >= 0; s.holes && uint32(i) < t.passed() && !ss.startOver(t) {
		ss.up.tellToEnd(t)
		ss.up.fail(t, errs.New(errs.CodeObjectLost, "item %d of %s was lost by the store, and no retry is left", i, t.name()))
	}
}
