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

// dispatch shares a class's ready tasks out among its leases with room: as many a lease as its
// pipeline takes, and no more than an even share, so that none idles beside a long queue.
func (ls *leases) dispatch(k *classRec) {
	k.shareOut(ls)
	if k.ready.n == 0 || ls.ended || ls.up.cancelling() {
		k.idles = false
		return
	}
	depth := k.depth(&ls.cfg)
	left := k.among(k.idle.n + k.spare.n)
	for k.ready.n > 0 && k.idle.n > 0 {
		l := ls.nextIdle(k)
		if l == nil && k.shares() {
			break // those with something to do may be of another node
		}
		if l == nil && !k.idles {
			k.idles, k.idlesSince = true, ls.now
		}
		if l == nil || !ls.fill(k, l, min(depth, share(k.ready.n, left), k.shareOf(ls, l))) {
			return
		}
		left--
	}
	k.idles = false
	for l := k.spare.tail; l != nil && k.ready.n > 0; left-- {
		next := l.prev
		switch load := l.load(); {
		case load > lowMark(depth): // the mark was higher when it was noted
			l.unlist()
		case ls.slowed(l), !l.fitsBehind(k.ready.head, &ls.cfg), k.shareOf(ls, l) <= 0:
		case !ls.fill(k, l, min(depth-load, share(k.ready.n, left), k.shareOf(ls, l))):
			return
		}
		l = next
	}
}

func share(tasks, leases int) int { return (tasks + leases - 1) / max(leases, 1) }

// nextIdle gives the lease that is to have the next task, of those that have nothing to do: the one that idles since the shortest time. Its worker is awake
// still, and where tasks come one at a time the other leases are returned. Tasks that are to be spread go to all in turn, and those of a class with a node of
// its own wait for no other. nil: the next task waits.
func (ls *leases) nextIdle(k *classRec) *leaseRec {
	switch {
	case k.opts.Spread:
		return k.nextSpread(ls)
	case k.opts.Affinity != wire.AffinityNone, ls.memory.copies.atHome():
		return k.idle.tail
	}
	return ls.nearest(k, k.idle.tail)
}

// readAhead advises the store of the stored arguments of the tasks that come next, one a lease of the store's node, while those
// before them run. Where tasks are short they are pushed ahead, and their arguments are in memory
// most of the time.
func (ls *leases) readAhead(k *classRec) {
	if k.ready.n == 0 || !k.known || k.depth(&ls.cfg) > 1 || ls.ended {
		return
	}
	t := k.ready.head
	for range k.local {
		if t == nil {
			return
		}
		if t.spec != nil && !slices.Contains(k.readaheadSent, t.id()) && ls.memory.argsOf(t) == argsStored {
			if len(k.readaheadSent) > 2*k.local {
				k.readaheadSent = slices.Delete(k.readaheadSent, 0, k.local)
			}
			k.readaheadSent = append(k.readaheadSent, t.id())
			ls.toStore(objectstore.ReadAhead{IDs: ls.memory.storedArgs(t)})
		}
		t = t.next
	}
}

// fill pushes up to n tasks of the class's queue over a lease. A task with stored arguments
// goes only to an idle lease: pinned and queued behind a task that waits for memory, its
// arguments would be memory that nothing can free. It is false if the first task of the queue goes nowhere now.
func (ls *leases) fill(k *classRec, l *leaseRec, n int) bool {
	if n > len(l.out) && l.out == nil && n > 1 {
		l.out = make([]wire.ExecTask, 0, n)
	}
	was := n
	for n > 0 && k.ready.head != nil {
		t := k.ready.head
		if t.pagedOut() {
			ls.memory.pageIn(&k.ready, k.largestPaged)
			break
		}
		if !l.fitsBehind(t, &ls.cfg) {
			break
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
					break
				}
				t.unlist()
				t.start++
				ls.pinArgs(t, l)
				n--
				continue
			}
			args, _ = ls.memory.argValues(t, nil)
		}
		t.unlist()
		t.start++
		ls.push(l, t, args)
		n--
	}
	k.shareTaken(l, was-n)
	ls.relist(l)
	return n < was || k.ready.n == 0
}

// push sends one attempt. Its number is given out already.
func (ls *leases) push(l *leaseRec, t *taskRec, args []wire.ArgValue) {
	t.lease = l
	l.out = append(l.out, wire.ExecTask{Spec: l.specOf(t), Attempt: t.start, Args: args})
	l.lane.Push(t)
	t.flags &^= taskAdopted
	ls.tasks.move(t, task.Push)
	ls.promises.resendUnneeded(t)
	ls.stats.Pushed++
	if l.actor == nil {
		ls.startHead(l)
	}
	ls.touchLease(l)
}

// specOf is the spec of a task as its worker has it. A call that names its actor by an alias, which is known here alone, names it by its own id there.
func (l *leaseRec) specOf(t *taskRec) *wire.TaskSpec {
	if l.actor == nil || t.spec.Actor == l.actor.id {
		return t.spec
	}
	s := *t.spec // what the log has, and what the call holds, stays: the alias
	s.Actor = l.actor.id
	return &s
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
		ls.locate(k)
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
