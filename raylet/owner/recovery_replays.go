package owner

import (
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/record"
	"mobula/wire"
)

// A driver that finds its node again submits and puts once more what it sent last, since nobody has told it what arrived. What the owner has
// a record of it knows by the id. What had ended and was released before, the log alone knows, as forgotten: to take it once more would run
// a task twice, or an actor's call. Only drivers repeat themselves: the task of a worker that runs again wants what was forgotten to run again too.

// forgottenReplays gives what clients have submitted or put while the core waited, and the log says was forgotten.
func (rc *recovery) forgottenReplays() map[ids.ObjectID]bool {
	if len(rc.pause.forgotten) == 0 {
		return nil
	}
	sent := make(map[ids.ObjectID]bool)
	for _, ev := range rc.pause.held {
		if ev, ok := ev.(FromClient); ok {
			for _, m := range ev.Msgs {
				if id, ok := madeBy(m); ok && !rc.isKnown(id) {
					sent[id] = false
				}
			}
		}
	}
	if len(sent) == 0 {
		return nil
	}
	for _, list := range rc.pause.forgotten {
		for _, id := range list {
			if _, ok := sent[id]; ok {
				sent[id] = true
			}
		}
	}
	return sent
}

// madeBy names what a message makes, as a Forget record does; false: nothing that a driver makes.
func madeBy(m wire.Msg) (id ids.ObjectID, ok bool) {
	switch m := m.(type) {
	case *wire.Submit:
		return ids.ObjectID{Task: m.Spec.ID, Index: record.WholeTask}, true
	case *wire.PutValue:
		return m.ID, true
	case *wire.Seal:
		return m.ID, m.ID.IsPut()
	}
	return id, false
}

// isKnown tells whether there is a record of what a Forget record may name.
func (rc *recovery) isKnown(id ids.ObjectID) bool {
	if id.Index == record.WholeTask {
		return rc.tasks.task(id.Task) != nil
	}
	return rc.objects.puts.find(&id) != nil
}

// passOver takes a message of a client that makes what was forgotten for done. What was written for it goes.
func (rc *recovery) passOver(cl *clientRec, m wire.Msg) {
	if rc.cfg.CreditWindow > 0 {
		rc.clients.spend(cl, wire.Cost(m))
	}
	switch m := m.(type) {
	case *wire.Submit:
		rc.calls.passed(m.Spec)
	case *wire.Seal:
		rc.toStoreAt(rc.nodeOf(cl), objectstore.DropAttempt{ID: m.ID, Attempt: m.Attempt})
	}
}
