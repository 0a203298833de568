package owner

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

func (c *Core) fromSched(m any) {
	switch m := m.(type) {
	case sched.Granted:
		c.granted(m)
	case sched.Reclaim:
		if l := c.leases[m.Lease]; l != nil {
			c.closeLease(l)
		}
	case sched.Revoked:
		c.revoked(m)
	case sched.Resumed:
		if l := c.leases[m.Lease]; l != nil {
			c.resumed(l)
		}
	case sched.Infeasible:
		if k := c.classes.byID[m.Key.Class]; k != nil {
			c.infeasible(k, m.Err)
		}
	case sched.Feasible:
		if k := c.classes.byID[m.Key.Class]; k != nil {
			k.infeasible = nil
			c.setWants(k, 0) // the scheduler has forgotten it
			c.touch(k)
		}
	case sched.Resync:
		c.schedResync(m.Epoch)
	}
}

// moveLease takes a lease along its table, or is false where the table has no such move.
func (c *Core) moveLease(l *leaseRec, ev lease.Event) bool {
	to, ok := lease.Next(l.state, ev)
	if ok {
		l.state = to
	}
	return ok
}

// maxPastLeases bounds the leases remembered after a restart, when the scheduler tells again
// of leases that it may have told of just before.
const maxPastLeases = 4096

func (c *Core) granted(m sched.Granted) {
	if m.Epoch != 0 && m.Epoch != c.epoch {
		return // answers a core before this one
	}
	if l := c.leases[m.Lease]; l != nil { // told again after a restart
		if m.Blocked && l.state == lease.Active {
			c.stillBlocked(l)
		}
		return
	}
	if _, over := c.pastLeases[m.Lease]; over {
		return // told twice, and returned meanwhile
	}
	if m.Up {
		c.giveUpLease(m.Lease) // of an actor that is no more
		return
	}
	k := c.classes.byID[m.Key.Class]
	cl := c.client(m.Worker)
	if k == nil || c.ended {
		c.giveUpLease(m.Lease) // of before a restart: nothing of ours runs on it
		return
	}
	if cl == nil {
		cl = c.addClient(m.Worker, wire.RoleWorker) // its ClientJoined is on its way
	}
	l := &leaseRec{id: m.Lease, class: k, worker: cl}
	c.moveLease(l, lease.Grant)
	c.addLease(l)
	c.stats.LeasesGranted++
	k.told = max(k.told-1, 0) // as the scheduler counts
	if cl.gone {              // its Revoked is on its way
		c.moveLease(l, lease.Lose)
		return
	}
	c.touch(k)
	c.touchLease(l)
}

// giveUpLease returns a lease that there is no use for.
func (c *Core) giveUpLease(id ids.LeaseID) {
	c.toSched(sched.Return{Lease: id})
	if c.lenient && len(c.pastLeases) < maxPastLeases {
		c.pastLeases[id] = struct{}{}
	}
}

// stillBlocked is an adopted lease whose task was in a get when the core was lost. Where that
// task has ended meanwhile the lease goes back: the scheduler counts its CPU as given back.
func (c *Core) stillBlocked(l *leaseRec) {
	h := l.lane.head()
	if h == nil || h.flags&taskAdopted == 0 {
		c.closeLease(l)
		return
	}
	if h.state == task.Running {
		c.move(h, task.Block)
	}
	c.moveLease(l, lease.Block)
}

func (c *Core) addLease(l *leaseRec) {
	c.leases[l.id] = l
	l.worker.leases = append(l.worker.leases, l)
	if l.class != nil {
		l.class.leases = append(l.class.leases, l)
	}
}

// leaseIdle decides about a lease that has nothing to do.
func (c *Core) leaseIdle(l *leaseRec) {
	switch {
	case l.state == lease.Closing:
		c.returnLease(l)
	case l.state != lease.Active:
	case l.class.ready.n > 0 && l.class.ready.head.spec == nil: // its spec is being read back
	case l.worker.drained:
		c.returnLease(l)
	default:
		l.idleAt = c.now
		if l.idle == nil {
			l.idle = c.timers.add(c.now+c.mayIdle(), timer{kind: timerIdle, lease: l})
		}
	}
}

// idleOver is the idle timer. It is not moved at each task, so it looks how long the
// lease has idled indeed.
func (c *Core) idleOver(l *leaseRec) {
	l.idle = nil
	if l.state != lease.Active || l.load() > 0 {
		return
	}
	if due := l.idleAt + c.mayIdle(); due > c.now {
		l.idle = c.timers.add(due, timer{kind: timerIdle, lease: l})
		return
	}
	c.returnLease(l)
}

// mayIdle is how long a lease may have nothing to do, in nanoseconds.
func (c *Core) mayIdle() int64 {
	if c.wanting > 0 {
		return int64(c.cfg.LeaseSpare)
	}
	return int64(c.cfg.LeaseIdle)
}

// spareIdle looks again soon whether the leases that have nothing to do are wanted.
func (c *Core) spareIdle() {
	soon := c.now + int64(c.cfg.LeaseSpare)
	for _, id := range slices.Sorted(maps.Keys(c.leases)) {
		if l := c.leases[id]; l.idle != nil && l.idle.at > soon {
			c.timers.remove(l.idle)
			l.idle = c.timers.add(soon, timer{kind: timerIdle, lease: l})
		}
	}
}

func (c *Core) returnLease(l *leaseRec) {
	c.toSched(sched.Return{Lease: l.id})
	c.endLease(l)
}

// endLease forgets a lease. What was on it has been dealt with.
func (c *Core) endLease(l *leaseRec) {
	c.moveLease(l, lease.End)
	delete(c.leases, l.id)
	if c.lenient && len(c.pastLeases) < maxPastLeases {
		c.pastLeases[l.id] = struct{}{}
	}
	if c.lastLease == l {
		c.lastLease = nil
	}
	if l.idle != nil {
		c.timers.remove(l.idle)
		l.idle = nil
	}
	l.worker.leases = without(l.worker.leases, l)
	c.leaveClass(l)
	c.maybeForget(l.worker)
}

func (c *Core) leaveClass(l *leaseRec) {
	if l.class != nil && l.actor == nil {
		l.class.leases = without(l.class.leases, l)
		c.touch(l.class)
	}
}

func without(ls []*leaseRec, l *leaseRec) []*leaseRec {
	if i := slices.Index(ls, l); i >= 0 {
		return slices.Delete(ls, i, i+1)
	}
	return ls
}

// closeLease returns a lease once what was pushed on it is done.
func (c *Core) closeLease(l *leaseRec) {
	l.closing = true
	if l.state == lease.Active {
		c.giveBackFetching(l)
		c.moveLease(l, lease.Close)
		c.touchLease(l)
	}
}

// giveBackFetching takes the tasks back whose arguments are being pinned for a lease.
func (c *Core) giveBackFetching(l *leaseRec) {
	for len(l.fetching) > 0 {
		t := l.fetching[len(l.fetching)-1]
		l.fetching = l.fetching[:len(l.fetching)-1]
		c.giveBack(t)
	}
}

// giveBack puts a task that was not started at the head of its queue. The attempt's number
// is used again: no trace of it is anywhere.
func (c *Core) giveBack(t *taskRec) {
	c.unpinArgs(t)
	c.unassign(t)
	if t.state.Terminal() {
		c.reap(t)
		return
	}
	t.start--
	c.requeue(t, true)
}

func (c *Core) unassign(t *taskRec) { t.lease = nil }

// requeue lets a task run again, at the head of its queue if front; not one that was cancelled meanwhile.
func (c *Core) requeue(t *taskRec, front bool) {
	if t.flags&taskCancelled != 0 {
		c.end(t, task.Cancel, c.cancelled(t))
		return
	}
	if t.x != nil {
		t.x.anew = false
	}
	t.unlist()
	c.move(t, task.Requeue)
	if front {
		t.flags |= taskFront
	}
	c.await(t)
}

// blocked is a task that waits in a get: its CPU goes back, and what was queued behind it.
// A zero Task only gives back the queue of a lease whose task takes long.
func (c *Core) blocked(cl *clientRec, m *wire.Blocked) {
	for i := len(m.Returned) - 1; i >= 0; i-- {
		c.returned(cl, m.Returned[i])
	}
	l := c.leases[m.Lease]
	if l == nil || l.worker != cl {
		return
	}
	if m.Task.IsZero() {
		l.slow = l.state == lease.Active && l.lane.len() > 0
		return
	}
	t := c.tasks.task(m.Task)
	if t == nil || t.lease != l || !t.state.OnWorker() {
		return
	}
	c.move(t, task.Block)
	c.waitsFor(t, m)
	if t.flags&taskPinned != 0 {
		c.idleArgs(t, true)
	}
	if l.actor == nil && c.moveLease(l, lease.Block) {
		c.giveBackFetching(l)
		c.toSched(sched.BlockCPU{Lease: l.id})
	}
}

// returned takes a task back that a worker has not started, whatever lease it came on: an older worker tells of all that it
// has queued under the lease of the task that it runs, which may have been returned since. An actor's calls stay where they are.
func (c *Core) returned(cl *clientRec, id ids.TaskID) {
	t := c.tasks.task(id)
	if t == nil || t.lease == nil || t.lease.worker != cl || t.lease.actor != nil {
		return
	}
	l := t.lease
	if l.lane.take(id) == nil { // its arguments are being pinned: it was not pushed again yet
		return
	}
	c.giveBack(t)
	c.startHead(l)
	c.touchLease(l) // it may have nothing left
}

// startHead says of the task that is first on a lease that it runs.
func (c *Core) startHead(l *leaseRec) {
	if h := l.lane.head(); h != nil && h.state == task.Submitted {
		c.move(h, task.Start)
	}
}

// unblocked asks for the CPU again. An actor's calls hold none of their own.
func (c *Core) unblocked(cl *clientRec, m *wire.Unblocked) {
	l := c.leases[m.Lease]
	if l == nil || l.worker != cl {
		return
	}
	t := c.tasks.task(m.Task)
	if l.state == lease.Blocked && t != nil && t.lease == l {
		c.moveLease(l, lease.Unblock)
		c.toSched(sched.UnblockCPU{Lease: l.id})
		return
	}
	if t != nil && t.lease == l && t.state == task.RunningInGet {
		c.goOn(l, t)
	} else {
		c.toClient(cl, &wire.Resume{Task: m.Task})
	}
}

func (c *Core) resumed(l *leaseRec) {
	if l.state == lease.Blocked { // a core before this one asked for it
		c.moveLease(l, lease.Unblock)
	}
	if !c.moveLease(l, lease.Resume) {
		if h := l.lane.head(); h != nil && h.state.OnWorker() && c.lenient {
			c.toClient(l.worker, &wire.Resume{Task: h.id()}) // the same
		}
		return
	}
	for _, t := range l.lane.all() {
		if t.state == task.RunningInGet {
			c.goOn(l, t)
		}
	}
	if l.closing {
		c.closeLease(l)
	}
	if l.class != nil {
		c.touch(l.class)
	}
	c.touchLease(l)
}

// goOn lets a blocked task run again.
func (c *Core) goOn(l *leaseRec, t *taskRec) {
	c.move(t, task.Unblock)
	if t.flags&taskPinned != 0 {
		c.idleArgs(t, false)
	}
	c.toClient(l.worker, &wire.Resume{Task: t.id()})
}

// infeasible fails what waits in a class that the node can never run, and what comes until it is
// Feasible. That no worker could be started says nothing of the next one.
func (c *Core) infeasible(k *classRec, err *errs.Error) {
	if err == nil || err.Code != errs.CodeRuntimeSetup {
		k.infeasible = err
	}
	c.setWants(k, 0)
	for k.ready.head != nil {
		t := k.ready.head
		t.unlist()
		c.failInfeasible(t, err)
	}
}

func (c *Core) failInfeasible(t *taskRec, err *errs.Error) {
	if t.x != nil && t.x.ooms > 0 {
		err = &errs.Error{
			Code: errs.CodeOutOfMemory, Task: t.id().String(), Cause: []*errs.Error{err},
			Msg: t.name() + " was killed for memory and needs more than the node has: " + err.Error(),
		}
	}
	c.fail(t, err)
}
