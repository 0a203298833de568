package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
)

// Streams that are elsewhere. The process of the actor sends the items to the owner, as it does for any stream, and the process that called says at last how many
// there were. What it has told of before it sent the call the log has from then on, with that it is elsewhere: a rebuilt owner keeps the items, and waits to hear of the call again.

// logElsewhere writes down a call that is elsewhere.
func (st *straight) logElsewhere(t *taskRec) {
	t.x.adopted.logged = true
	st.journal.logSubmit(t, ids.ActorID{})
}

// makesAgain has the owner make a stream again that has ended elsewhere, where that was asked for, or the store has lost an item of it and a retry is left.
func (st *straight) makesAgain(t *taskRec, err *errs.Error) bool {
	switch {
	case t.x.restartRequested:
		t.x.restartRequested = false
	case err == nil && t.x.stream.missing() >= 0 && st.life.chargeLoss(t):
		st.stats.Lost++
	default:
		return false
	}
	st.makeHere(t, t.tries)
	return true
}

// endStream ends a stream whose process has sent so many items; with an error, if it has not those.
func (st *straight) endStream(t *taskRec, items uint32) *errs.Error {
	if err := st.streams.endStream(t, items); err != nil {
		return err
	}
	if i := t.x.stream.missing(); i >= 0 {
		return errs.New(errs.CodeObjectLost, "item %d of %s was lost by the store as it was made, and no retry is left", i, t.name())
	}
	return nil
}

// built takes up a call that the log says is elsewhere.
func (st *straight) built(t, parent *taskRec) {
	st.stats.Submitted++
	st.enterElsewhere(t, parent)
}

// unheardOf deals with calls that the log says are elsewhere, and no process has spoken of: who has called is gone, and the actor has been asked nothing.
func (st *straight) unheardOf() {
	var lost []*taskRec
	for id, t := range st.tasks.all() {
		if t.isElsewhere() && (st.ways == nil || !st.ways.Knows(id)) {
			lost = append(lost, t)
		}
	}
	for _, t := range lost {
		switch {
		case t.flags&taskCancelled != 0:
			st.life.end(t, task.Cancel, t.cancelledError())
		case st.life.charge(t):
			st.makeHere(t, t.tries)
		default:
			st.life.fail(t, errs.New(errs.CodeActorUnavailable, "actor %v: the call may have run; who knows is gone", t.actor.id))
		}
	}
}
