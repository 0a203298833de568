package node

import (
	"testing"

	"mobula/internal/home"
	"mobula/internal/ids"
	"mobula/remote"
	"mobula/wire"
)

// Another node that has closed a job says nothing more of the job's workers there: they are gone, and those of other jobs and nodes are not.
func TestTheWorkersOfAClosedJobAreGone(t *testing.T) {
	const here, there, elsewhere ids.Home = 1, 2, 3
	mine, other := ids.JobID(here.ID(1)), ids.JobID(here.ID(2))
	l := &links{base: &base{}, sessions: &sessions{}, owners: &owners{}, chooser: &chooser{}, numbers: &numbers{Home: &home.Home{}}}
	l.owners.links = l
	add := func(node ids.Home, n uint64, job ids.JobID) *session {
		s := makeSession(ids.ClientID(node.ID(n)), wire.RoleWorker, job, 0)
		l.sessions.add(s)
		return s
	}
	gone := add(there, 1, mine)
	kept := []*session{add(there, 2, other), add(elsewhere, 1, mine), add(here, 1, mine)}
	l.closed(there, mine)
	if gone.why() == nil || l.sessions.get(gone.id) != nil || gone.done.Err() == nil {
		t.Errorf("the worker there is taken for one that lives: %v", gone.why())
	}
	for _, s := range kept {
		if s.why() != nil || l.sessions.get(s.id) != s {
			t.Errorf("worker %v of job %v is taken for gone", s.id, s.job)
		}
	}
}

// A job that is over is closed wherever it is open, and opened nowhere any more.
func TestAJobThatHasEndedIsOpenNowhere(t *testing.T) {
	const there ids.Home = 2
	lives, over := ids.JobID(1), ids.JobID(2)
	l := &links{base: &base{}, owners: &owners{}, programs: &programs{}, chooser: &chooser{}, opened: map[ids.JobID][]ids.Home{}, lives: newLives()}
	l.lives.end(remote.Life{Home: there, Epoch: 1}) // nothing is sent
	for _, job := range []ids.JobID{lives, over} {
		l.owners.put(&ownerActor{job: job})
		l.openAt(there, job)
	}
	l.owners.remove(over)
	l.ended(over)
	l.openAt(there, over) // who chooses nodes has not heard yet
	if len(l.openOn(lives)) != 1 || len(l.openOn(over)) != 0 {
		t.Errorf("open elsewhere: %v", l.opened)
	}
}
