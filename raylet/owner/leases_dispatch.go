package owner

import (
	"slices"

	"mobula/objectstore"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// dispatchClasses pushes ready tasks over the leases of every class that changed.
func (ls *leases) dispatchClasses() {
	for i := 0; i < len(ls.dirtyClass); i++ {
		k := ls.dirtyClass[i]
		k.dirty = false
		ls.dispatch(k)
		ls.readAhead(k)
		ls.want(k)
	}
	clear(ls.dirtyClass)
	ls.dirtyClass = ls.dirtyClass[:0]
}

// dispatch shares a class's ready tasks out among its leases: as many a lease as its
// pipeline takes, and no more than an even share, so that none idles beside a long queue.
// A pipeline that is nearly full is left to run down a little, so that pushes stay batched.
func (ls *leases) dispatch(k *classRec) {
	if k.ready.n == 0 || len(k.leases) == 0 || ls.ended || ls.up.cancelling() {
		return
	}
	depth := ls.depth(k)
	left := 0 // leases that take tasks
	for _, l := range k.leases {
		if l.takes() {
			left++
		}
	}
	if left > 1 {
		if k.ready.n == 1 {
			if l := k.mostRecentlyIdle(); l != nil {
				ls.fill(k, l, 1)
				return
			}
		}
		k.next++
	}
	for i := range k.leases {
		l := k.leases[(k.next+i)%len(k.leases)]
		if !l.takes() {
			continue
		}
		if k.ready.n == 0 {
			return
		}
		share := (k.ready.n + left - 1) / left
		left--
		load := l.load()
		if load > 0 && load > depth-(depth+3)/4 {
			continue
		}
		ls.fill(k, l, min(depth-load, share))
	}
}

// mostRecentlyIdle gives the lease that has nothing to do since the shortest time, or nil. A single task goes there: its worker is awake still, and where tasks
// come one at a time the other leases are returned.
func (k *classRec) mostRecentlyIdle() *leaseRec {
	var best *leaseRec
	for _, l := range k.leases {
		if l.takes() && l.load() == 0 && (best == nil || l.idleAt > best.idleAt) {
			best = l
		}
	}
	return best
}

// readAhead advises the store of the stored arguments of the tasks that come next, one a lease, while those
// before them run. Where tasks are short they are pushed ahead, and their arguments are in memory
// most of the time.
func (ls *leases) readAhead(k *classRec) {
	if k.ready.n == 0 || !k.known || ls.depth(k) > 1 || ls.ended {
		return
	}
	t := k.ready.head
	for range k.leases {
		if t == nil {
			return
		}
		if t.spec != nil && !slices.Contains(k.readaheadSent, t.id()) && ls.memory.argsOf(t) == argsStored {
			if len(k.readaheadSent) > 2*len(k.leases) {
				k.readaheadSent = slices.Delete(k.readaheadSent, 0, len(k.leases))
			}
			k.readaheadSent = append(k.readaheadSent, t.id())
			ls.toStore(objectstore.ReadAhead{IDs: ls.memory.storedArgs(t)})
		}
		t = t.next
	}
}

// takes tells whether tasks are pushed over the lease. One that gave back what waited behind
// a long task gets no more until that has ended.
func (l *leaseRec) takes() bool { return l.state == lease.Active && !l.slow }

// fill pushes up to n tasks of the class's queue over a lease. A task with stored arguments
// goes only to an idle lease: pinned and queued behind a task that waits for memory, its
// arguments would be memory that nothing can free.
func (ls *leases) fill(k *classRec, l *leaseRec, n int) {
	if n > len(l.out) && l.out == nil && n > 1 {
		l.out = make([]wire.ExecTask, 0, n)
	}
	for ; n > 0 && k.ready.head != nil; n-- {
		t := k.ready.head
		if t.spec == nil {
			if !ls.memory.pageIn(t) {
				return
			}
		}
		var args []wire.ArgValue
		if len(t.spec.Args) > 0 {
			st := ls.memory.argsOf(t)
			if st == argsAgain {
				t.unlist()
				ls.tasks.move(t, task.Requeue)
				t.flags |= taskFront
				ls.tasks.workQ = append(ls.tasks.workQ, t)
				continue
			}
			if st == argsHeavy {
				t.unlist()
				ls.memory.packArgs(t)
				continue
			}
			if st == argsStored {
				if l.load() > 0 {
					return
				}
				t.unlist()
				t.start++
				ls.pinArgs(t, l)
				continue
			}
			args, _ = ls.memory.argValues(t, nil)
		}
		t.unlist()
		t.start++
		ls.push(l, t, args)
	}
}

// push sends one attempt. Its number is given out already.
func (ls *leases) push(l *leaseRec, t *taskRec, args []wire.ArgValue) {
	t.lease = l
	l.out = append(l.out, wire.ExecTask{Spec: t.spec, Attempt: t.start, Args: args})
	l.lane.Push(t)
	t.flags &^= taskAdopted
	ls.tasks.move(t, task.Push)
	ls.promises.resendUnneeded(t)
	ls.stats.Pushed++
	if l.lane.Len() == 1 && l.actor == nil {
		ls.tasks.move(t, task.Start)
	}
	ls.touchLease(l)
}

func (ls *leases) touchLease(l *leaseRec) {
	if !l.dirty {
		l.dirty = true
		ls.dirtyLease = append(ls.dirtyLease, l)
	}
}

// flushLeases sends what was pushed, one message a lease, and looks at the leases that
// something ended on.
func (ls *leases) flushLeases() {
	for i := 0; i < len(ls.dirtyLease); i++ {
		l := ls.dirtyLease[i]
		l.dirty = false
		ls.sendPushed(l)
		if l.load() == 0 {
			ls.leaseIdle(l)
		}
	}
	clear(ls.dirtyLease)
	ls.dirtyLease = ls.dirtyLease[:0]
}

// sendPushed sends what was pushed over a lease in this step.
func (ls *leases) sendPushed(l *leaseRec) {
	if len(l.out) > 0 && l.state != lease.Ended && l.state != lease.Lost {
		ls.toClient(l.worker, &wire.Exec{Lease: l.id, Tasks: l.out})
	}
	l.out = nil
}

// toLease sends a worker a message about a task that it was given over a lease. One that was pushed in this step goes first: the end
// of what the worker does not know yet would say nothing to it.
func (ls *leases) toLease(l *leaseRec, m wire.Msg) {
	ls.sendPushed(l)
	ls.toClient(l.worker, m)
}

// depth is how many tasks of a class are pushed ahead over one lease.
func (ls *leases) depth(k *classRec) int {
	if !k.known || k.isolated || k.kind == wire.TaskActorCreate {
		return 1
	}
	if k.runNs <= 0 {
		return ls.cfg.MaxPipeline
	}
	return int(min(max(int64(ls.cfg.PipelineTime)/k.runNs, 1), int64(ls.cfg.MaxPipeline)))
}

// measured takes one run time into the class's mean. A long one counts at once, and is
// forgotten slowly: to push too much is worse than to push too little.
func (k *classRec) measured(ns int64) {
	if !k.known {
		k.known, k.runNs = true, ns
		return
	}
	k.runNs += (ns - k.runNs) / 8
}

// want tells the scheduler how many tasks wait beyond the leases held, when the number
// changed from or to nothing, doubled or halved. That nothing waits it must be told, though it
// has granted as many leases as were wanted: else it goes on granting.
func (ls *leases) want(k *classRec) {
	n := k.ready.n
	if ls.ended || ls.up.cancelling() {
		n = 0
	}
	if n == 0 && !k.wantSent || n != 0 && k.lastWant != 0 && n < 2*k.lastWant && 2*n > k.lastWant {
		return
	}
	if ls.setWants(k, n); n > 0 {
		ls.stats.LeaseRequests++
		ls.returnSpareLeases()
	}
	ls.toSched(sched.Want{Key: sched.ClassKey{Job: ls.cfg.Job, Class: k.id}, Opts: k.opts, Kind: k.kind, Backlog: n})
}

// setWants notes what the scheduler has been told of a class.
func (ls *leases) setWants(k *classRec, n int) {
	switch {
	case n > 0 && !k.wantSent:
		ls.wanting++
	case n == 0 && k.wantSent:
		ls.wanting--
	}
	k.lastWant, k.wantSent = n, n > 0
}
