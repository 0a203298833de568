package owner

import (
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/cluster"
	"mobula/raylet/owner/object"
	"mobula/raylet/sched"
)

// Where arguments lie on several nodes, a task goes where most of its bytes are: the nodes are told to whoever chooses among them for new leases, and of the
// leases that idle the nearest takes the task. One with many bytes waits for a lease where they are, as long as it would take to move them. While every object
// is in the store of the job's own node, none of this runs.

const (
	maxLocated = 1024 // tasks of a queue whose arguments are told of
	maxNear    = 32   // idle leases, and tasks, among which the nearest is looked for

	heavy    = 1 << 20 // bytes that a task would have moved from which it waits; cluster.Config.HeavyArgs likewise
	moveRate = 1 << 30 // bytes a second that move between two nodes, about

	barrenFor = int64(time.Second) // how long nothing waits for a lease on a node where none came
	unableFor = int64(time.Minute) // and on one that cannot give any
)

// bytesOf adds to a list how many bytes of a task's stored arguments each node has.
func (ms *memory) bytesOf(t *taskRec, to []cluster.Held) []cluster.Held {
	if t.spec == nil {
		return to
	}
	for i := range t.spec.Args {
		id := t.spec.Args[i].Ref
		if id.IsZero() {
			continue
		}
		o := ms.objects.object(id)
		if o == nil || o.state != object.Stored {
			continue
		}
		for _, node := range ms.copies.of(o) {
			at := slices.IndexFunc(to, func(h cluster.Held) bool { return h.Node == node })
			if at < 0 {
				at, to = len(to), append(to, cluster.Held{Node: node})
			}
			to[at].Bytes += o.res.Size
		}
	}
	return to
}

// most gives the node with most of a task's bytes: of several the job's own, else the lowest. It is false for a task without stored arguments.
func (ls *leases) most(t *taskRec) (node ids.Home, ok bool) {
	ls.held = ls.memory.bytesOf(t, ls.held[:0])
	var best cluster.Held
	for _, h := range ls.held {
		if h.Bytes > best.Bytes || h.Bytes == best.Bytes && (h.Node == ls.home() || h.Node < best.Node && best.Node != ls.home()) {
			best = h
		}
	}
	return best.Node, len(ls.held) > 0
}

// nearest gives the idle lease that the first task of the queue is nearest to. Where its bytes are there is none, it gives the one that is next, and puts the
// first task ahead whose bytes are there, or none are while the first one waits; no task is passed over for ever. nil: there is only the first, and it waits.
func (ls *leases) nearest(k *classRec, next *leaseRec) *leaseRec {
	first := k.ready.head
	at, ok := ls.most(first)
	if !ok {
		return next
	}
	for l, n := k.idle.tail, 0; l != nil && n < maxNear; l, n = l.prev, n+1 {
		if ls.nodeOf(l.worker) == at {
			k.passed = 0
			return l
		}
	}
	if k.passed >= maxNear {
		k.passed = 0
		return next
	}
	here := ls.nodeOf(next.worker)
	waits := ls.awaitNear(k, first, at, here)
	for t, n := first.next, 1; t != nil && n < maxNear; t, n = t.next, n+1 {
		if at, ok := ls.most(t); ok && at == here || !ok && waits {
			k.passed++
			t.unlist()
			k.ready.pushFront(t)
			return next
		}
	}
	if waits {
		return nil
	}
	return next
}

// awaitNear tells whether a task that could go to a node now waits for a lease where its arguments are: at most as long as it takes to move what that node
// has not, and not soon again where none came. ls.held has what each node has.
func (ls *leases) awaitNear(k *classRec, t *taskRec, at, node ids.Home) bool {
	var most, there uint64
	for _, h := range ls.held {
		if most = max(most, h.Bytes); h.Node == node {
			there = h.Bytes
		}
	}
	if most-there < heavy || ls.now < k.barren[at] && !slices.ContainsFunc(k.leases, func(l *leaseRec) bool { return ls.nodeOf(l.worker) == at }) {
		return false
	}
	if id := t.id(); k.far != id {
		k.far, k.farSince = id, ls.now
		if k.idles { // it has waited with the one before: else a thousand tasks would wait one after the other
			k.farSince = k.idlesSince
		}
	}
	due := k.farSince + int64(float64(most-there)/moveRate*1e9)
	if ls.now >= due {
		k.isBarren(at, ls.now+barrenFor)
		return false
	}
	if k.near != nil && k.near.at != due {
		ls.timers.remove(k.near)
		k.near = nil
	}
	if k.near == nil {
		k.near = ls.timers.add(due, timer{kind: timerNear, class: k})
	}
	return true
}

// isBarren has nothing wait for a lease on a node for a while.
func (k *classRec) isBarren(at ids.Home, until int64) {
	if k.barren == nil {
		k.barren = make(map[ids.Home]int64)
	}
	k.barren[at] = until
}

// nearExpired looks again for a lease for the task that waits for one near it.
func (ls *leases) nearExpired(k *classRec) {
	k.near = nil
	ls.touch(k)
}

// locate says where the arguments of a class's tasks are, ahead of what is wanted for them.
func (ls *leases) locate(k *classRec) {
	if !k.located && ls.memory.copies.atHome() {
		return
	}
	var held []cluster.Held
	for t, n := k.ready.head, 0; t != nil && n < maxLocated; t, n = t.next, n+1 {
		held = ls.memory.bytesOf(t, held)
	}
	if len(held) == 0 && !k.located {
		return
	}
	k.located = len(held) > 0
	ls.toCluster(cluster.Locality{Key: sched.ClassKey{Job: ls.cfg.Job, Class: k.id}, Args: held})
}
