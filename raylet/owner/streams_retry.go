package owner

import (
	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// An item of a stream may be lost while the attempt that has passed it goes on. As a rule the task runs once more when that one has
// ended. One that is held up by backpressure does not end: it waits for its readers, who may wait for the item. It is told to end then,
// and the next attempt makes the item. What is there already holds no attempt up, whoever has taken it.

// announcedItems gives how many items the running attempt has announced. Of one that a rebuilt core took over it is what was made at all.
func (t *taskRec) announcedItems() uint32 {
	s := t.x.stream
	switch {
	case s.attempt == t.start:
		return s.sent
	case t.flags&taskAdopted != 0:
		return s.produced
	}
	return 0
}

// ackedIndex is how far a producer is told its readers are: as far as they are, and so far that it can make again what had been made.
func (t *taskRec) ackedIndex() uint32 {
	s, n := t.x.stream, t.x.stream.consumed
	if ahead := backpressure(t); s.produced > ahead {
		n = max(n, s.produced-ahead)
	}
	return n
}

// backpressure is how many items a producer may be ahead of its readers; 0: any number.
func backpressure(t *taskRec) uint32 { return uint32(max(t.options().Backpressure, 0)) }

// backpressured tells whether the running attempt waits for its readers.
func (t *taskRec) backpressured() bool {
	ahead := backpressure(t)
	return ahead > 0 && !t.x.stream.closed && t.producer() != nil && t.announcedItems() >= t.ackedIndex()+ahead
}

// producer is the process that makes a stream's items now, as far as is known; nil: none does.
func (t *taskRec) producer() *clientRec {
	switch {
	case t.isElsewhere() && t.actor.lease != nil:
		return t.actor.lease.worker
	case t.state.OnWorker() && t.lease != nil:
		return t.lease.worker
	}
	return nil
}

// lostItem notes that an item is to be made again, and ends an attempt that would never come to it; false: no retry is left for that.
func (ss *streams) lostItem(t *taskRec, o *objRec) bool {
	s := t.x.stream
	s.holes = true
	if o.state == object.Stored && o.attempt < t.start {
		s.owed = true // lost with what the last attempt was for, before anybody looked
	}
	if o.id.Index < t.announcedItems() {
		return ss.restartStream(t)
	}
	return true
}

// restartStream tells an attempt that is held up to end: another one is to begin; false: no retry is left.
func (ss *streams) restartStream(t *taskRec) bool {
	if t.x.restartRequested || !t.backpressured() {
		return true // it ends, and is looked at then
	}
	if !ss.up.chargeLoss(t) {
		return false
	}
	ss.stats.Reconstructed++
	t.x.restartRequested = true
	ss.tellProducer(t)
	return true
}

// tellProducer tells an attempt to end.
func (ss *streams) tellProducer(t *taskRec) {
	if t.isElsewhere() {
		ss.tasks.unwanted = append(ss.tasks.unwanted, unwanted{call: t.id()})
		return
	}
	ss.leases.toLease(t.lease, &wire.CancelTask{Task: t.id()})
}

// stopProducer ends the attempt of a stream that fails: at last by force.
func (ss *streams) stopProducer(t *taskRec) {
	if t.isElsewhere() {
		ss.tasks.unwanted = append(ss.tasks.unwanted, unwanted{t.id(), direct.Wish{Insist: true}})
		return
	}
	ss.up.requestEnd(t)
}

// findMissingItem looks, when an attempt is held up, whether an item is missing that it has passed.
func (ss *streams) findMissingItem(t *taskRec) {
	s := t.x.stream
	if !s.holes || t.x.restartRequested || !t.backpressured() {
		return
	}
	i := s.missing()
	if s.holes = i >= 0; s.holes && uint32(i) < t.announcedItems() && !ss.restartStream(t) {
		ss.stopProducer(t)
		ss.up.fail(t, errs.New(errs.CodeObjectLost, "item %d of %s was lost by the store, and no retry is left", i, t.name()))
	}
}
