package owner

import (
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// Tasks that are to be spread are shared out among nodes, to each as much as it has leases or is about to have. A worker takes milliseconds to start, one of Python's
// up to a second, and within that the worker that is up first would run a queue of short tasks alone. So from when a node's first lease is awaited (sched.Awaited)
// no node gets more than its share of the tasks that were begun since and those that wait. That ends when leases have come from all, or, where tasks
// are short, when none waits; and after Config.SpreadWait: then the rest runs where there are leases, and a node that did not come up is not waited for again for
// a while.
//
// A lease with nothing to do goes back at once, where there are several nodes: the next task is placed on the node whose turn it is. Ray places each task, and
// gives back a worker that no task waits for. Here as there a worker that has ended one task takes the next of its queue: a queue of short tasks is spread by
// share, not one by one, for to place each would cost more than it takes.

// spreading is what a class of tasks that are to be spread knows of nodes.
type spreading struct {
	awaited []sched.Placed     // leases that are yet to come, as told
	leases  int                // how many it had or was to have, when such were told of last
	begun   map[ids.Home]int   // tasks that each node got since there are shares; nil: there are none
	room    map[ids.Home]int   // how many more each may get
	until   int64              // when that ends
	timer   *timer             // then
	late    map[ids.Home]int64 // until when a node is not waited for: it did not come in time
}

// leasesAwaited notes how many leases of a class are yet to come of each node.
func (k *classRec) leasesAwaited(ls *leases, m []sched.Placed) {
	if k.kind != wire.TaskNormal {
		return // one actor is created over each lease
	}
	if k.spread == nil {
		k.spread = &spreading{room: make(map[ids.Home]int), late: make(map[ids.Home]int64)}
	}
	k.spread.awaited = slices.Clone(m)
	if len(m) > 0 {
		k.spread.leases = 0
		for _, n := range k.weights(ls) {
			k.spread.leases += n
		}
	}
	k.reviewSpread(ls)
	ls.touch(k)
}

// weights gives how many leases of a class each node has given, or is about to. One that is late is about to give none.
func (k *classRec) weights(ls *leases) map[ids.Home]int {
	of := make(map[ids.Home]int)
	for _, l := range k.leases {
		of[l.worker.id.Home()]++
	}
	for _, p := range k.spread.awaited {
		if ls.now >= k.spread.late[p.Node] {
			of[p.Node] += p.N
		}
	}
	return of
}

// lacks tells whether a node is waited for, whose first lease is yet to come; late has it be late.
func (k *classRec) lacks(ls *leases, late bool) (lacks bool) {
	has := make(map[ids.Home]bool)
	for _, l := range k.leases {
		has[l.worker.id.Home()] = true
	}
	for _, p := range k.spread.awaited {
		if p.N > 0 && !has[p.Node] && ls.now >= k.spread.late[p.Node] {
			lacks = true
			if late {
				k.spread.late[p.Node] = ls.now + unableFor
			}
		}
	}
	return lacks
}

// reviewSpread begins to give nodes shares, or ends that, after something has changed.
func (k *classRec) reviewSpread(ls *leases) {
	sp := k.spread
	short := k.ready.n > 0 && k.depth(&ls.cfg) > 1 // what waits for one node costs the others little
	switch lacks := k.lacks(ls, false); {
	case lacks && sp.begun == nil:
		sp.begun = make(map[ids.Home]int)
		for _, l := range k.leases {
			sp.begun[l.worker.id.Home()] += l.load()
		}
		sp.until = ls.now + int64(ls.cfg.SpreadWait)
		sp.timer = ls.timers.add(sp.until, timer{kind: timerSpread, class: k})
	case !lacks && !short && sp.begun != nil:
		sp.end(&ls.timers)
	}
}

func (sp *spreading) end(timers *timerHeap) {
	sp.begun = nil
	if sp.timer != nil {
		timers.remove(sp.timer)
		sp.timer = nil
	}
}

// spreadExpired has what waits for a node run without it.
func (k *classRec) spreadExpired(ls *leases) {
	k.spread.timer = nil
	k.lacks(ls, true)
	k.spread.end(&ls.timers)
	ls.touch(k)
}

// spreadGranted notes that a lease has come: it is told later that it is not awaited any more.
func (k *classRec) spreadGranted(l *leaseRec) {
	if k.spread == nil {
		return
	}
	at := l.worker.id.Home()
	delete(k.spread.late, at)
	for i := range k.spread.awaited {
		if p := &k.spread.awaited[i]; p.Node == at {
			p.N = max(p.N-1, 0)
		}
	}
}

// shares tells whether nodes have shares of a class's tasks.
func (k *classRec) shares() bool { return k.spread != nil && k.spread.begun != nil }

// shareOut sets how many tasks more each node may get.
func (k *classRec) shareOut(ls *leases) {
	if !k.shares() {
		return
	}
	k.reviewSpread(ls)
	sp := k.spread
	clear(sp.room)
	all, leases := k.ready.n, 0
	for _, n := range sp.begun {
		all += n
	}
	of := k.weights(ls)
	for _, n := range of {
		leases += n
	}
	for at, n := range of {
		sp.room[at] = share(all*n, leases) - sp.begun[at]
	}
}

// shareOf is how many tasks more a lease may get by its node's share.
func (k *classRec) shareOf(ls *leases, l *leaseRec) int {
	if !k.shares() {
		return ls.cfg.MaxPipeline
	}
	return k.spread.room[l.worker.id.Home()]
}

// shareTaken notes that a lease got so many tasks.
func (k *classRec) shareTaken(l *leaseRec, n int) {
	if k.shares() {
		at := l.worker.id.Home()
		k.spread.begun[at] += n
		k.spread.room[at] -= n
	}
}

// among is by how many leases a class's queue is divided, of which so many have room: as if it had as many as when there were most.
func (k *classRec) among(leases int) int {
	if k.spread == nil || len(k.leases) == 0 {
		return leases
	}
	return max(leases, leases*k.spread.leases/len(k.leases))
}

// nextSpread gives the lease that is to have the next task of those that are to be spread: all in turn, but for nodes that have had their share.
func (k *classRec) nextSpread(ls *leases) *leaseRec {
	for l := k.idle.head; l != nil; l = l.next {
		if k.shareOf(ls, l) > 0 {
			return l
		}
	}
	return nil
}

// spreadIdles tells of a lease without a task whether it goes back, for the next task to be placed anew, or is kept though it would be due.
func (l *leaseRec) spreadIdles() (back, keep bool) {
	k := l.class
	if k == nil || k.spread == nil {
		return false, false
	}
	return k.ready.n == 0, k.ready.n > 0 && k.shares()
}
