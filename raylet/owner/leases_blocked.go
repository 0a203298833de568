package owner

import (
	"mobula/internal/ids"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// blocked is a task that waits in a get: its CPU goes back, and what was queued behind it.
// A zero Task only gives back the queue of a lease whose task takes long.
func (ls *leases) blocked(cl *clientRec, m *wire.Blocked) {
	for i := len(m.Returned) - 1; i >= 0; i-- {
		ls.returnedByWorker(cl, m.Returned[i])
	}
	l := ls.byID[m.Lease]
	if l == nil || l.worker != cl {
		return
	}
	if m.Task.IsZero() {
		l.slow = l.state == lease.Active && l.lane.Len() > 0
		ls.relist(l)
		return
	}
	t := ls.tasks.task(m.Task)
	if t == nil || t.lease != l || !t.state.OnWorker() {
		return
	}
	ls.tasks.move(t, task.Block)
	ls.up.waitsFor(t, m)
	if t.flags&taskPinned != 0 {
		ls.memory.idleArgs(t, true)
	}
	if l.actor == nil && ls.moveLease(l, lease.Block) {
		ls.unpushFetching(l)
		l.lendCPU(ls.step)
	}
}

// returnedByWorker takes a task back that a worker has not started, whatever lease it came on: an older worker tells of all that it
// has queued under the lease of the task that it runs, which may have been returned since. An actor's calls stay where they are.
func (ls *leases) returnedByWorker(cl *clientRec, id ids.TaskID) {
	t := ls.tasks.task(id)
	if t == nil || t.lease == nil || t.lease.worker != cl || t.lease.actor != nil {
		return
	}
	l := t.lease
	if l.lane.take(id) == nil { // its arguments are being pinned: it was not pushed again yet
		return
	}
	ls.up.unpush(t)
	ls.startHead(l)
	ls.relist(l)
	ls.touchLease(l) // it may have nothing left
}

// startHead says of the task that is first on a lease that it runs.
func (ls *leases) startHead(l *leaseRec) {
	if h := l.lane.head(); h != nil && h.state == task.Submitted {
		l.headSince = ls.now
		ls.tasks.move(h, task.Start)
	}
}

// unblocked asks for the CPU again. An actor's calls hold none of their own.
func (ls *leases) unblocked(cl *clientRec, m *wire.Unblocked) {
	l := ls.byID[m.Lease]
	if l == nil || l.worker != cl {
		return
	}
	t := ls.tasks.task(m.Task)
	if l.state == lease.Resuming {
		return // a core that took it over knows so from what the worker holds
	}
	if l.state == lease.Blocked && t != nil && t.lease == l {
		ls.moveLease(l, lease.Unblock)
		l.askCPU(ls.step)
		return
	}
	if t != nil && t.lease == l && t.state == task.RunningInGet {
		ls.goOn(l, t)
	} else {
		ls.toClient(cl, &wire.Resume{Task: m.Task})
	}
}

// lendCPU gives the CPU of a lease back to the scheduler.
func (l *leaseRec) lendCPU(s *step) {
	l.lent = true
	s.toSched(sched.BlockCPU{Lease: l.id})
}

// askCPU asks the scheduler for the CPU of a lease again.
func (l *leaseRec) askCPU(s *step) {
	l.ask = sched.Ask{Epoch: s.epoch, Nth: l.ask.Nth + 1}
	s.toSched(sched.UnblockCPU{Lease: l.id, Ask: l.ask})
}

// resumed is the scheduler's answer to an UnblockCPU. One that comes late speaks of a CPU that was given back again since.
func (ls *leases) resumed(l *leaseRec, ask sched.Ask) {
	switch {
	case ask != l.ask && (l.lent || l.state == lease.Resuming), l.state == lease.Blocked && l.lent:
		return
	case l.state == lease.Blocked: // a core before this one asked for it
		ls.moveLease(l, lease.Unblock)
	}
	l.lent = false
	if !ls.moveLease(l, lease.Resume) {
		if h := l.lane.head(); h != nil && h.state.OnWorker() && ls.lenient && ask.Epoch != ls.epoch {
			ls.toClient(l.worker, &wire.Resume{Task: h.id()}) // the same
		}
		return
	}
	l.answerCreates(ls.step)
	for _, t := range l.lane.All() {
		if t.state == task.RunningInGet {
			ls.goOn(l, t)
		}
	}
	if l.closing {
		ls.closeLease(l)
	}
	if l.class != nil {
		ls.touch(l.class)
	}
	ls.touchLease(l)
}

// goOn lets a blocked task run again.
func (ls *leases) goOn(l *leaseRec, t *taskRec) {
	ls.tasks.move(t, task.Unblock)
	if t.flags&taskPinned != 0 {
		ls.memory.idleArgs(t, false)
	}
	ls.toClient(l.worker, &wire.Resume{Task: t.id()})
}

// stillBlocked is an adopted lease whose task was in a get when the core was lost. Where that
// task has ended meanwhile the lease goes back: the scheduler counts its CPU as given back.
func (ls *leases) stillBlocked(l *leaseRec) {
	h := l.lane.head()
	if h == nil || h.flags&taskAdopted == 0 {
		ls.closeLease(l)
		return
	}
	if h.state == task.Running {
		ls.tasks.move(h, task.Block)
	}
	ls.moveLease(l, lease.Block)
}

// adoptBlocked takes over that a task waits in a get, and whether it asks for its CPU, as its worker says. The scheduler may have lost that as well: it is
// told again.
func (ls *leases) adoptBlocked(t *taskRec, at wire.Attempt) {
	l := t.lease
	if !at.Blocked || l.actor != nil || l.lane.head() != t || !ls.moveLease(l, lease.Block) {
		return
	}
	ls.tasks.move(t, task.Block)
	l.lendCPU(ls.step)
	if at.Asks {
		ls.moveLease(l, lease.Unblock)
		l.askCPU(ls.step)
	}
}
