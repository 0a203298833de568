package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
)

// A worker's death is told twice: the end of its connection, after the last message it
// sent, and the revoked leases with the reason. What ran on it is settled when both are in,
// so that what it had done is not done again and the reason is the right one.

// revoked says that a lease is over because its worker is.
func (ds *deaths) revoked(m sched.Revoked) {
	l := ds.leases.byID[m.Lease]
	if l == nil {
		return
	}
	cl := l.worker
	if m.Err != nil {
		cl.lostErr = m.Err
	}
	cl.peak = max(cl.peak, m.Peak)
	ds.leases.moveLease(l, lease.Lose)
	if cl.gone {
		ds.settleWorker(cl)
		return
	}
	ds.awaitSettle(cl)
}

// workerLost notes the end of a worker's connection.
func (ds *deaths) workerLost(cl *clientRec) {
	revoked := false
	for _, l := range cl.leases {
		revoked = revoked || l.state == lease.Lost
	}
	if revoked {
		ds.settleWorker(cl)
		return
	}
	for _, l := range cl.leases {
		ds.leases.moveLease(l, lease.Lose)
	}
	ds.awaitSettle(cl)
}

func (ds *deaths) awaitSettle(cl *clientRec) {
	if cl.settle == nil {
		cl.settle = ds.timers.add(ds.now+int64(ds.cfg.SettleGrace), timer{kind: timerSettle, client: cl})
	}
}

// settleWorker deals with everything that was on a worker.
func (ds *deaths) settleWorker(cl *clientRec) {
	if cl.settle != nil {
		ds.timers.remove(cl.settle)
		cl.settle = nil
	}
	ds.stats.WorkersLost++
	err := cl.deathCause()
	var started []*taskRec
	var dead []deadActor
	for len(cl.leases) > 0 {
		l := cl.leases[0]
		if l.actor != nil && l.actor.rec == nil { // a worker of this job has said that it has a call of another job's actor
			ds.foreign.moved(l.actor, err)
			continue
		}
		ds.leases.unpushFetching(l)
		l.out = nil
		if l.actor != nil {
			d := deadActor{a: l.actor, lease: l.id, ran: l.ranCalls(), calls: l.lane.drain()}
			ds.leases.endLease(l)
			switch {
			case d.a.ended():
				ds.calls.returnCalls(d.a, d.calls, err)
			default:
				dead = append(dead, d)
			}
			continue
		}
		lane := l.lane.drain()
		for i := len(lane) - 1; i >= 0; i-- {
			switch t := lane[i]; {
			case t.state.Terminal():
				ds.memory.unpinArgs(t)
				t.lease = nil
				ds.tasks.stopTimer(t)
				ds.life.reap(t)
			case t.state == task.Submitted:
				ds.life.unpush(t)
			default:
				started = append(started, t)
			}
		}
		ds.leases.endLease(l)
	}
	ds.findCulprit(cl, dead, started, err)
	ds.clients.maybeForget(cl)
}

// settleStarted decides about the tasks that were running in a process when it died. One is
// the culprit and is charged. Of several suspects nobody knows: they run again uncharged, each in a
// process of its own, until one brings that down and so is found.
func (ds *deaths) settleStarted(cl *clientRec, started []*taskRec, several bool, err *errs.Error) {
	for _, t := range started {
		ds.memory.unpinArgs(t)
		t.lease = nil
	}
	for _, t := range started {
		t.ext().err = err
		if err.Code == errs.CodeOutOfMemory {
			ds.stats.OOMKills++
		}
		switch {
		case t.flags&taskCancelled != 0:
			ds.life.end(t, task.Cancel, t.cancelledError())
		case t.isCreation() && (several || cl.drainRequested):
			ds.actors.reset(t.actor)
			ds.actors.creationAgain(t, err)
		case err.Code == errs.CodeOutOfMemory && retriable(t):
			ds.life.outOfMemory(t, cl, len(started) == 1, err)
		case cl.drainRequested:
			ds.life.requeue(t, true) // the process was ended because of another task
		case several && retriable(t):
			ds.life.isolate(t, 0)
			ds.life.requeue(t, true)
		default:
			ds.culprit(t)
			ds.life.crashed(t, err)
		}
	}
}

// culprit clears the others that ran when the process died that this task is now known to
// have brought down.
func (ds *deaths) culprit(t *taskRec) {
	if t.x == nil || t.x.group == nil || t.x.group.found {
		return
	}
	g := t.x.group
	g.found = true
	for _, m := range g.members {
		if m.x == nil || m.x.group != g {
			continue
		}
		m.x.group = nil
		if m != t && m.x.ooms == 0 && m.flags&taskIsolated != 0 {
			m.flags &^= taskIsolated
			if m.state == task.PendingNode && m.in == &m.x.isolatedClass.ready {
				m.unlist()
				ds.leases.touch(m.x.isolatedClass)
				m.flags |= taskFront
				ds.life.enqueue(m)
			}
		}
	}
}

// Who is charged when a process with actors dies (decision 0014). An actor alone in it is. Of several, suspects are those that ran a
// call or their constructor: one suspect is the culprit, and restarts in a process of its own; of more nobody knows, and they restart
// apart from one another, uncharged, until one dies alone and so is found. All others are innocent: they restart, with
// their state lost, and it costs them nothing.

// findCulprit decides about the actors of a process that died, and the creations and tasks that ran in it.
func (ds *deaths) findCulprit(cl *clientRec, dead []deadActor, started []*taskRec, err *errs.Error) {
	suspects := slices.Clip(started)
	for _, d := range dead {
		if d.ran {
			suspects = append(suspects, d.a.rec)
		}
	}
	alone := len(dead)+len(started) == 1
	switch {
	case cl.drainRequested: // the process was ended because of a task that was given up
		suspects = nil
	case len(suspects) > 1:
		ds.suspect(suspects)
	case len(suspects) == 0 && alone:
		suspects = append(suspects, dead[0].a.rec)
	}
	for _, d := range dead {
		d.a.lostLease = d.lease
		charged := len(suspects) == 1 && suspects[0] == d.a.rec
		if charged {
			ds.culprit(d.a.rec)
			if !alone {
				ds.life.isolate(d.a.rec, 0)
			}
		}
		ds.actors.actorLost(d.a, d.calls, charged, err)
	}
	if len(suspects) == 0 {
		ds.askOtherJobs(dead)
	}
	ds.settleStarted(cl, started, len(suspects) > 1, err)
}

// maxApart bounds the processes that the suspects of one death restart in; where there are more suspects they share, and
// the next death tells which of the processes to look in.
const maxApart = 16

// suspect notes that one of these brought a process down; they run apart from one another until it is found.
func (ds *deaths) suspect(ts []*taskRec) {
	g := &group{members: ts}
	for i, t := range ts {
		t.ext().group = g
		if t.actor == nil {
			continue // a task: settleStarted sees to it
		}
		if len(ts) <= maxApart {
			ds.life.isolate(t, 0)
		} else {
			ds.life.inProcess(t, "suspects of death "+utoa(uint32(ds.stats.WorkersLost))+"/"+itoa(int32(i%maxApart)))
		}
	}
}

// alive tells whether a task on a lane has not ended.
func alive(t *taskRec) bool { return !t.state.Terminal() }
