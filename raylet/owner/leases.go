package owner

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/cluster"
	"mobula/raylet/owner/lease"
	"mobula/raylet/sched"
	"mobula/wire"
)

// moveLease takes a lease along its table, or is false where the table has no such move.
func (ls *leases) moveLease(l *leaseRec, ev lease.Event) bool {
	to, ok := lease.Next(l.state, ev)
	if ok {
		l.state = to
		ls.relist(l)
	}
	return ok
}

// maxPastLeases bounds the leases remembered after a restart, when the scheduler tells again
// of leases that it may have told of just before.
const maxPastLeases = 4096

func (ls *leases) granted(m sched.Granted) {
	if m.Epoch != 0 && m.Epoch != ls.epoch {
		return // answers a core before this one
	}
	if l := ls.byID[m.Lease]; l != nil { // told again after a restart
		if m.Blocked && (l.state == lease.Active || l.state == lease.Closing) { // closing: the core before this one was asked to return it
			ls.stillBlocked(l)
		}
		return
	}
	if _, over := ls.pastLeases[m.Lease]; over { // told twice, and returned meanwhile
		ls.toSched(sched.Return{Lease: m.Lease}) // whoever chooses nodes may count it as held again
		return
	}
	if m.Up {
		ls.giveUpLease(m.Lease) // of an actor that is no more
		return
	}
	k := ls.classes.byID[m.Key.Class]
	cl := ls.clients.client(m.Worker)
	if k == nil || ls.ended {
		ls.giveUpLease(m.Lease) // of before a restart: nothing of ours runs on it
		return
	}
	if cl == nil {
		cl = ls.clients.addClient(m.Worker, wire.RoleWorker) // its ClientJoined is on its way
	}
	l := &leaseRec{id: m.Lease, class: k, worker: cl}
	ls.moveLease(l, lease.Grant)
	ls.addLease(l)
	k.spreadGranted(l)
	if m.Epoch == 0 && k.opts.Spread {
		ls.toCluster(cluster.Heard{Job: ls.cfg.Job, Lease: m.Lease})
	}
	ls.stats.LeasesGranted++
	k.lastWant = max(k.lastWant-1, 0) // as the scheduler counts
	if cl.gone {                      // its Revoked is on its way
		ls.moveLease(l, lease.Lose)
		return
	}
	ls.touch(k)
	ls.touchLease(l)
}

// giveUpLease returns a lease that there is no use for.
func (ls *leases) giveUpLease(id ids.LeaseID) {
	ls.toSched(sched.Return{Lease: id})
	if ls.lenient && len(ls.pastLeases) < maxPastLeases {
		ls.pastLeases[id] = struct{}{}
	}
}

func (ls *leases) addLease(l *leaseRec) {
	ls.byID[l.id] = l
	l.worker.leases = append(l.worker.leases, l)
	if l.class != nil {
		l.class.leases = append(l.class.leases, l)
		l.class.local += int(bit(ls.nodeOf(l.worker) == ls.home()))
	}
	ls.relist(l)
}

// leaseIdle decides about a lease that has nothing to do.
func (ls *leases) leaseIdle(l *leaseRec) {
	switch {
	case l.state == lease.Closing:
		ls.returnLease(l)
	case l.state != lease.Active:
	case l.worker.drainRequested && !l.class.readsBack():
		ls.returnLease(l)
	default:
		if back, _ := l.spreadIdles(); back {
			ls.returnLease(l)
			return
		}
		l.idleAt = ls.now
		if l.idle == nil {
			l.idle = ls.timers.add(ls.now+ls.idleLimit(), timer{kind: timerIdle, lease: l})
		}
	}
}

// readsBack tells whether the next task of a class waits for its spec, which is read back from the log. A lease waits for that with it.
func (k *classRec) readsBack() bool { return k.ready.n > 0 && k.ready.head.pagedOut() }

// idleExpired is the idle timer. It is not moved at each task, so it looks how long the
// lease has idled indeed.
func (ls *leases) idleExpired(l *leaseRec) {
	l.idle = nil
	if l.state != lease.Active || l.load() > 0 {
		return
	}
	due := l.idleAt + ls.idleLimit()
	if _, keep := l.spreadIdles(); keep || l.class.readsBack() {
		due = ls.now + ls.idleLimit()
	}
	if due > ls.now {
		l.idle = ls.timers.add(due, timer{kind: timerIdle, lease: l})
		return
	}
	ls.returnLease(l)
}

// idleLimit is how long a lease may have nothing to do, in nanoseconds.
func (ls *leases) idleLimit() int64 {
	if ls.wanting > 0 {
		return int64(ls.cfg.LeaseSpare)
	}
	return int64(ls.cfg.LeaseIdle)
}

// returnSpareLeases looks at the leases that have nothing to do, since a class begins to wait for one. What has idled for LeaseSpare
// goes back before the scheduler hears of the want: else it starts a process beside a worker that has nothing to do.
func (ls *leases) returnSpareLeases() {
	for _, id := range slices.Sorted(maps.Keys(ls.byID)) {
		l := ls.byID[id]
		if l.idle == nil || l.class.ready.n > 0 { // a task that came in this step may be for it
			continue
		}
		ls.timers.remove(l.idle)
		ls.idleExpired(l)
	}
}

// returnIdleLeases gives back the leases that have nothing to do, at the job's end.
func (ls *leases) returnIdleLeases() {
	for _, id := range slices.Sorted(maps.Keys(ls.byID)) {
		if l := ls.byID[id]; l.state == lease.Active && l.actor == nil && l.load() == 0 {
			ls.returnLease(l)
		}
	}
}

func (ls *leases) returnLease(l *leaseRec) {
	ls.toSched(sched.Return{Lease: l.id})
	ls.endLease(l)
}

// endLease forgets a lease. What was on it has been dealt with.
func (ls *leases) endLease(l *leaseRec) {
	ls.moveLease(l, lease.End)
	l.answerCreates(ls.step)
	delete(ls.byID, l.id)
	if ls.lenient && len(ls.pastLeases) < maxPastLeases {
		ls.pastLeases[l.id] = struct{}{}
	}
	if ls.lastLease == l {
		ls.lastLease = nil
	}
	if l.idle != nil {
		ls.timers.remove(l.idle)
		l.idle = nil
	}
	if l.word != nil {
		ls.timers.remove(l.word)
		l.word = nil
	}
	l.worker.leases = without(l.worker.leases, l)
	ls.leaveClass(l)
	ls.clients.maybeForget(l.worker)
}

func (ls *leases) leaveClass(l *leaseRec) {
	if l.class != nil && l.actor == nil {
		l.class.leases = without(l.class.leases, l)
		l.class.local -= int(bit(ls.nodeOf(l.worker) == ls.home()))
		ls.touch(l.class)
	}
}

// closeLease returns a lease once what was pushed on it is done.
func (ls *leases) closeLease(l *leaseRec) {
	l.closing = true
	if l.state == lease.Active {
		ls.unpushFetching(l)
		ls.moveLease(l, lease.Close)
		ls.touchLease(l)
	}
}

// unpushFetching takes the tasks back whose arguments are being pinned for a lease.
func (ls *leases) unpushFetching(l *leaseRec) {
	for len(l.fetching) > 0 {
		t := l.fetching[len(l.fetching)-1]
		l.fetching = l.fetching[:len(l.fetching)-1]
		ls.up.unpush(t)
	}
}

func (ls *leases) unassign(t *taskRec) { t.lease = nil }

// infeasible fails what waits in a class that the node can never run, and what comes until it is
// Feasible. That no worker could be started says nothing of the next one.
func (ls *leases) infeasible(k *classRec, err *errs.Error) {
	if err == nil || err.Code != errs.CodeRuntimeSetup {
		k.infeasible = err
	}
	for k.ready.head != nil {
		t := k.ready.head
		t.unlist()
		ls.failInfeasible(t, err)
	}
	ls.touch(k) // a number may have crossed with this, and would stand: it is taken back
}

func (ls *leases) failInfeasible(t *taskRec, err *errs.Error) {
	if t.x != nil && t.x.ooms > 0 {
		err = &errs.Error{
			Code: errs.CodeOutOfMemory, Task: t.id().String(), Cause: []*errs.Error{err},
			Msg: t.name() + " was killed for memory and needs more than the node has: " + err.Error(),
		}
	}
	ls.up.fail(t, err)
}
