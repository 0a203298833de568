package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
)

// Who is charged when a process with actors dies (decision 0014). An actor alone in it is. Of several, suspects are those that ran a
// call or their constructor: one suspect is the culprit, and restarts in a process of its own; of more nobody knows, and they restart
// apart from one another, uncharged, until one dies alone and so is found. All others are innocent: they restart, with
// their state lost, and it costs them nothing.

// deadActor is an actor of a process that died.
type deadActor struct {
	a     *actorRec
	lease ids.LeaseID
	calls []*taskRec // that were on it and had not ended
	ran   bool       // one of them, or one of another job, was not waiting for something
}

// ranCalls tells whether a call of an actor may have run code.
func (l *leaseRec) ranCalls() bool {
	return l.otherJobsCalls || l.lane.contains(func(t *taskRec) bool { return alive(t) && t.state != task.RunningInGet })
}

// alive tells whether a task on a lane has not ended.
func alive(t *taskRec) bool { return !t.state.Terminal() }

// maxApart bounds the processes that the suspects of one death restart in; where there are more suspects they share, and
// the next death tells which of the processes to look in.
const maxApart = 16

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

// askOtherJobs waits a moment for other jobs to tell which of the actors that died together had calls of theirs: no call of this job's
// ran, and of others' only they know.
func (ds *deaths) askOtherJobs(dead []deadActor) {
	var named []*actorRec
	for _, d := range dead {
		if d.a.claimed && !d.a.ended() {
			named = append(named, d.a)
		}
	}
	if len(named) == 0 {
		return
	}
	q := &culpritInquiry{of: named}
	for _, a := range named {
		a.inquiry = q
	}
	ds.timers.add(ds.now+int64(ds.cfg.InquiryTimeout), timer{kind: timerInquiry, inquiry: q})
}

// inquiry waits for the word of other jobs about a death for which nobody is known to be charged.
type culpritInquiry struct {
	of       []*actorRec
	suspects []*actorRec
}

// callsLost is another job's word that an actor which died had calls of its own.
func (ds *deaths) callsLost(m CallsLost) {
	a := ds.actors.byID[m.Actor]
	switch {
	case a == nil || a.rec == nil || a.ended():
	case a.lease != nil && a.lease.id == m.Lease:
		a.lease.otherJobsCalls = true // its end is told a moment later
	case a.inquiry != nil && a.lostLease == m.Lease:
		q := a.inquiry
		a.inquiry = nil // told by several jobs it is one suspect
		q.suspects = append(q.suspects, a)
	}
}

// inquiryOver decides with what other jobs have told.
func (ds *deaths) inquiryOver(q *culpritInquiry) {
	for _, a := range q.of {
		if a.inquiry == q {
			a.inquiry = nil
		}
	}
	switch len(q.suspects) {
	case 0:
	case 1:
		ds.chargeLate(q.suspects[0])
	default:
		ts := make([]*taskRec, 0, len(q.suspects))
		for _, a := range q.suspects {
			if !a.ended() {
				ts = append(ts, a.rec)
			}
		}
		ds.suspect(ts)
	}
}

// chargeLate charges the restart that an actor has begun.
func (ds *deaths) chargeLate(a *actorRec) {
	if a.ended() || !a.uncharged {
		return
	}
	if !ds.actors.chargeReset(a) {
		ds.actors.failForGood(a, ds.actors.actorDied(a, a.cause))
		return
	}
	ds.life.isolate(a.rec, 0)
	ds.journal.logActor(a)
}
