package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/wire"
)

// When two cores in a row panic on a message, the third is rebuilt without it. Clients say again what they hold and wait for, but not
// what they submitted and put. So a task or an object of such a message fails with the panic as its error. Where the message said
// anything else, its client has to go: the owner cannot know what the client relies on.

// poisoned takes note of a message that was dropped.
func (rc *recovery) poisoned(ev Poisoned) {
	all := true
	for _, m := range ev.Msgs {
		all = (rc.objects.noteDropped(m, ev.Err) || rc.straight.answerDropped(ev.Client, m, ev.Err)) && all
		if m, ok := m.(*wire.Seal); ok { // it is not sealed any more
			rc.toStoreAt(ev.Client.Home(), objectstore.DropAttempt{ID: m.ID, Attempt: m.Attempt, Client: ev.Client})
		}
	}
	cl := rc.clients.client(ev.Client)
	if all || cl == nil || !rc.recovering {
		return // or it is gone, and what it ran has been retried
	}
	rc.dismiss(cl, ev.Err, ev.Err)
	rc.maybeResume()
}

// noteDropped notes the error of the task or object that a dropped message was to make. It is false if the message did something
// that neither this error nor a client's Holdings make good.
func (os *objects) noteDropped(m wire.Msg, err *errs.Error) bool {
	switch m := m.(type) {
	case *wire.Submit:
		os.dropped[ids.ObjectID{Task: m.Spec.ID}] = err
	case *wire.PutValue:
		os.dropped[m.ID] = err
	case *wire.Seal:
		if !m.ID.IsPut() {
			return false
		}
		os.dropped[m.ID] = err
	case *wire.Get, *wire.Unget, *wire.Release, *wire.AddRef, *wire.StreamNext, *wire.Blocked, *wire.Unblocked, *wire.Holdings:
	default:
		return false
	}
	return true
}

// whyDropped is the error of an object whose message was dropped, or nil.
func (os *objects) whyDropped(id ids.ObjectID) *errs.Error {
	if !id.IsPut() {
		id.Index = 0
	}
	return os.dropped[id]
}
