package route

import (
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/wire"
)

// Place is who takes a message.
type Place uint8

// The places.
const (
	Nobody  Place = iota // no client sends such a message
	Owner                // of a job
	Store                // of objects
	Request              // answered beside everything else
	Stats                // what a worker says of itself
	Goodbye              // the end of the client's session
)

// Asker is a client: it knows which job's owner its Holdings answer.
type Asker interface {
	AskedBy(m *wire.Holdings) ids.JobID
}

// Of says who takes a message of a client of job own; job is the one whose owner it is, where it is one.
func Of(own ids.JobID, from Asker, m wire.Msg) (to Place, job ids.JobID) {
	switch m := m.(type) {
	case *wire.Submit, *wire.Get, *wire.Unget, *wire.Release, *wire.AddRef, *wire.PutValue, *wire.StreamNext, *wire.Cancel,
		*wire.KillActor, *wire.ActorStopped, *wire.WatchActor:
		return Owner, own
	case *wire.Done:
		return Owner, m.Task.Job()
	case *wire.Encoded:
		return Owner, m.Job
	case *wire.StreamItem:
		return Owner, m.Task.Job()
	case *wire.Blocked:
		return Owner, blockedJob(own, m)
	case *wire.Unblocked:
		return Owner, m.Task.Job()
	case *wire.Seal:
		return Owner, m.ID.Job()
	case *wire.Holdings:
		if m.Component == wire.ComponentOwner {
			return Owner, from.AskedBy(m)
		}
		return Store, 0
	case *wire.Create, *wire.Abort, *wire.Unpin:
		return Store, 0
	case *wire.Request:
		return Request, 0
	case *wire.Stats:
		return Stats, 0
	case *wire.Bye:
		return Goodbye, 0
	case *wire.AskWay, *wire.AskWord, *wire.Linked, *wire.HangUp, *wire.Adopt, *wire.Lives, *wire.Told, *wire.Waits, *wire.WaitOver, *wire.Runs, *wire.Ran,
		*wire.CancelMade, *wire.EndedCalls:
		return Owner, own
	case *wire.Mark:
		return Owner, m.Job
	}
	return Nobody, 0
}

// OfStraightCalls tells whether a message is one of those by which processes and owners speak of calls that go straight (decision 0038).
func OfStraightCalls(m wire.Msg) bool {
	k := m.Kind()
	return k >= wire.KindAskWay && k <= wire.KindCannotBegin
}

// blockedJob is the job whose tasks a Blocked is about; it may be only about those given back.
func blockedJob(own ids.JobID, m *wire.Blocked) ids.JobID {
	switch {
	case !m.Task.IsZero():
		return m.Task.Job()
	case len(m.Returned) > 0:
		return m.Returned[0].Job()
	}
	return own
}

// Ended lists the attempts that messages end: these read their arguments no more.
func Ended(msgs []wire.Msg) (out []objectstore.UnpinArgs) {
	for _, m := range msgs {
		if d, ok := m.(*wire.Done); ok && !d.StillRuns {
			out = append(out, objectstore.UnpinArgs{Task: d.Task, Attempt: d.Attempt})
		}
	}
	return out
}
