package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
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
	return l.toldBusy || l.lane.contains(func(t *taskRec) bool { return alive(t) && t.state != task.RunningInGet })
}

// alive tells whether a task on a lane has not ended.
func alive(t *taskRec) bool { return !t.state.Terminal() }

// maxApart bounds the processes that the suspects of one death restart in; where there are more suspects they share, and
// the next death tells which of the processes to look in.
const maxApart = 16

// blame decides about the actors of a process that died, and the creations and tasks that ran in it.
func (c *Core) blame(cl *clientRec, dead []deadActor, started []*taskRec, err *errs.Error) {
	suspects := slices.Clip(started)
	for _, d := range dead {
		if d.ran {
			suspects = append(suspects, d.a.rec)
		}
	}
	alone := len(dead)+len(started) == 1
	switch {
	case cl.drained: // the process was ended because of a task that was given up
		suspects = nil
	case len(suspects) > 1:
		c.suspect(suspects)
	case len(suspects) == 0 && alone:
		suspects = append(suspects, dead[0].a.rec)
	}
	for _, d := range dead {
		d.a.lostLease = d.lease
		charged := len(suspects) == 1 && suspects[0] == d.a.rec
		if charged {
			c.culprit(d.a.rec)
			if !alone {
				c.isolate(d.a.rec, 0)
			}
		}
		c.actorLost(d.a, d.calls, charged, err)
	}
	if len(suspects) == 0 {
		c.askOthers(dead)
	}
	c.settleStarted(cl, started, len(suspects) > 1, err)
}

// suspect notes that one of these brought a process down; they run apart from one another until it is found.
func (c *Core) suspect(ts []*taskRec) {
	g := &group{members: ts}
	for i, t := range ts {
		t.ext().group = g
		if t.actor == nil {
			continue // a task: settleStarted sees to it
		}
		if len(ts) <= maxApart {
			c.isolate(t, 0)
		} else {
			c.inProcess(t, "suspects of death "+utoa(uint32(c.stats.WorkersLost))+"/"+itoa(int32(i%maxApart)))
		}
	}
}

// actorLost is the death of an actor's process with the calls that were on it. It restarts if it is not charged, or
// has a restart left.
func (c *Core) actorLost(a *actorRec, calls []*taskRec, charged bool, err *errs.Error) {
	a.lease = nil
	if a.state == actor.Stopping {
		c.die(a, a.closedWith(err))
		c.returnCalls(a, calls, err)
		return
	}
	if charged && !c.useRestart(a) {
		c.fall(a, c.actorDied(a, err))
		c.returnCalls(a, calls, err)
		return
	}
	if !charged {
		c.reset(a)
	}
	c.restart(a, calls, err, c.restartDelay(a))
}

// reset counts a restart that is not charged.
func (c *Core) reset(a *actorRec) {
	a.resets++
	a.uncharged = true
	c.stats.ActorResets++
}

// askOthers waits a moment for other jobs to tell which of the actors that died together had calls of theirs: no call of this job's
// ran, and of others' only they know.
func (c *Core) askOthers(dead []deadActor) {
	var named []*actorRec
	for _, d := range dead {
		if d.a.claimed && !d.a.over() {
			named = append(named, d.a)
		}
	}
	if len(named) == 0 {
		return
	}
	q := &inquest{of: named}
	for _, a := range named {
		a.inquest = q
	}
	c.timers.add(c.now+int64(c.cfg.InquestTime), timer{kind: timerInquest, inquest: q})
}

// inquest waits for the word of other jobs about a death for which nobody is known to be charged.
type inquest struct {
	of       []*actorRec
	suspects []*actorRec
}

// callsLost is another job's word that an actor which died had calls of its own.
func (c *Core) callsLost(m CallsLost) {
	a := c.actors[m.Actor]
	switch {
	case a == nil || a.rec == nil || a.over():
	case a.lease != nil && a.lease.id == m.Lease:
		a.lease.toldBusy = true // its end is told a moment later
	case a.inquest != nil && a.lostLease == m.Lease:
		q := a.inquest
		a.inquest = nil // told by several jobs it is one suspect
		q.suspects = append(q.suspects, a)
	}
}

// inquestOver decides with what other jobs have told.
func (c *Core) inquestOver(q *inquest) {
	for _, a := range q.of {
		if a.inquest == q {
			a.inquest = nil
		}
	}
	switch len(q.suspects) {
	case 0:
	case 1:
		c.chargeLate(q.suspects[0])
	default:
		ts := make([]*taskRec, 0, len(q.suspects))
		for _, a := range q.suspects {
			if !a.over() {
				ts = append(ts, a.rec)
			}
		}
		c.suspect(ts)
	}
}

// chargeLate charges the restart that an actor has begun.
func (c *Core) chargeLate(a *actorRec) {
	if a.over() || !a.uncharged {
		return
	}
	if !c.chargeReset(a) {
		c.fall(a, c.actorDied(a, a.cause))
		return
	}
	c.isolate(a.rec, 0)
	c.logActor(a)
}

// chargeReset charges the last restart after all, and is false if none was left.
func (c *Core) chargeReset(a *actorRec) bool {
	a.resets--
	c.stats.ActorResets--
	return c.useRestart(a)
}
