package owner

import (
	"mobula/internal/ids"
	"mobula/objectstore"
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
		ls.toSched(sched.BlockCPU{Lease: l.id})
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
	ls.touchLease(l) // it may have nothing left
}

// startHead says of the task that is first on a lease that it runs.
func (ls *leases) startHead(l *leaseRec) {
	if h := l.lane.head(); h != nil && h.state == task.Submitted {
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
	if l.state == lease.Blocked && t != nil && t.lease == l {
		ls.moveLease(l, lease.Unblock)
		ls.toSched(sched.UnblockCPU{Lease: l.id})
		return
	}
	if t != nil && t.lease == l && t.state == task.RunningInGet {
		ls.goOn(l, t)
	} else {
		ls.toClient(cl, &wire.Resume{Task: m.Task})
	}
}

func (ls *leases) resumed(l *leaseRec) {
	if l.state == lease.Blocked { // a core before this one asked for it
		ls.moveLease(l, lease.Unblock)
	}
	if !ls.moveLease(l, lease.Resume) {
		if h := l.lane.head(); h != nil && h.state.OnWorker() && ls.lenient {
			ls.toClient(l.worker, &wire.Resume{Task: h.id()}) // the same
		}
		return
	}
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

// createWaits gives the CPU of a task to others: its create waits until they let go of what fills the disk. The task goes on when the store
// has room, and its lease is closed when it has ended.
func (ls *leases) createWaits(m objectstore.CreateWaits) {
	t := ls.tasks.task(m.Task)
	if t == nil || t.lease == nil || t.state != task.Running || t.lease.actor != nil || !ls.moveLease(t.lease, lease.Block) {
		return
	}
	ls.tasks.move(t, task.Block)
	ls.unpushFetching(t.lease)
	ls.toSched(sched.BlockCPU{Lease: t.lease.id})
}
