package owner

import (
	"mobula/internal/errs"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
)

// A worker's death is told twice: the end of its connection, after the last message it
// sent, and the revoked leases with the reason. What ran on it is settled when both are in,
// so that what it had done is not done again and the reason is the right one.

// revoked says that a lease is over because its worker is.
func (c *Core) revoked(m sched.Revoked) {
	l := c.leases[m.Lease]
	if l == nil {
		return
	}
	cl := l.worker
	if m.Err != nil {
		cl.lostErr = m.Err
	}
	cl.peak = max(cl.peak, m.Peak)
	c.moveLease(l, lease.Lose)
	if cl.gone {
		c.settleWorker(cl)
		return
	}
	c.awaitSettle(cl)
}

// workerLost notes the end of a worker's connection.
func (c *Core) workerLost(cl *clientRec) {
	revoked := false
	for _, l := range cl.leases {
		revoked = revoked || l.state == lease.Lost
	}
	if revoked {
		c.settleWorker(cl)
		return
	}
	for _, l := range cl.leases {
		c.moveLease(l, lease.Lose)
	}
	c.awaitSettle(cl)
}

func (c *Core) awaitSettle(cl *clientRec) {
	if cl.settle == nil {
		cl.settle = c.timers.add(c.now+int64(c.cfg.SettleGrace), timer{kind: timerSettle, client: cl})
	}
}

// settleWorker deals with everything that was on a worker.
func (c *Core) settleWorker(cl *clientRec) {
	if cl.settle != nil {
		c.timers.remove(cl.settle)
		cl.settle = nil
	}
	c.stats.WorkersLost++
	err := cl.deathCause()
	var started []*taskRec
	var dead []deadActor
	for len(cl.leases) > 0 {
		l := cl.leases[0]
		c.giveBackFetching(l)
		l.out = nil
		if l.actor != nil {
			d := deadActor{a: l.actor, lease: l.id, ran: l.ranCalls(), calls: l.lane.drain()}
			c.endLease(l)
			switch {
			case d.a.over():
				c.returnCalls(d.a, d.calls, err)
			case d.a.rec == nil:
				d.a.lease = nil
				c.foreignLost(d.a, d.calls, err)
			default:
				dead = append(dead, d)
			}
			continue
		}
		lane := l.lane.drain()
		for i := len(lane) - 1; i >= 0; i-- {
			switch t := lane[i]; {
			case t.state.Terminal():
				t.lease = nil
				c.unpinArgs(t)
				c.stopTimer(t)
				c.reap(t)
			case t.state == task.Submitted:
				c.giveBack(t)
			default:
				started = append(started, t)
			}
		}
		c.endLease(l)
	}
	c.blame(cl, dead, started, err)
	c.maybeForget(cl)
}

// settleStarted decides about the tasks that were running in a process when it died. One is
// the culprit and is charged. Of several suspects nobody knows: they run again uncharged, each in a
// process of its own, until one brings that down and so is found.
func (c *Core) settleStarted(cl *clientRec, started []*taskRec, several bool, err *errs.Error) {
	for _, t := range started {
		c.unpinArgs(t)
		t.lease = nil
	}
	for _, t := range started {
		t.ext().err = err
		if err.Code == errs.CodeOutOfMemory {
			c.stats.OOMKills++
		}
		switch {
		case t.flags&taskCancelled != 0:
			c.end(t, task.Cancel, c.cancelled(t))
		case t.isCreation() && (several || cl.drained):
			c.reset(t.actor)
			c.creationAgain(t, err)
		case err.Code == errs.CodeOutOfMemory && retriable(t):
			c.outOfMemory(t, cl, len(started) == 1, err)
		case cl.drained:
			c.requeue(t, true) // the process was ended because of another task
		case several && retriable(t):
			c.isolate(t, 0)
			c.requeue(t, true)
		default:
			c.culprit(t)
			c.crashed(t, err)
		}
	}
}

// isolate lets a task run in a process of its own from now on.
func (c *Core) isolate(t *taskRec, memory uint64) { c.setApart(t, c.soloClass(t.class, memory)) }

// inProcess lets an actor be made in the process of a name from now on.
func (c *Core) inProcess(t *taskRec, process string) {
	opts := *t.class.opts
	opts.Process = process
	c.setApart(t, c.classByKey(t.class.kind, &opts))
}

// setApart lets a task run in leases of another class than its own from now on.
func (c *Core) setApart(t *taskRec, k *classRec) {
	was := t.in
	t.flags |= taskSolo
	t.ext().solo = k
	c.stats.Isolated++
	if t.state == task.PendingNode && was != nil && was != &k.ready {
		t.unlist()
		c.touch(t.class)
		t.flags |= taskFront
		c.enqueue(t)
	}
}

// culprit clears the others that ran when the process died that this task is now known to
// have brought down.
func (c *Core) culprit(t *taskRec) {
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
		if m != t && m.x.ooms == 0 && m.flags&taskSolo != 0 {
			m.flags &^= taskSolo
			if m.state == task.PendingNode && m.in == &m.x.solo.ready {
				m.unlist()
				c.touch(m.x.solo)
				m.flags |= taskFront
				c.enqueue(m)
			}
		}
	}
}
