package main

import (
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/cluster"
	"mobula/raylet/sched"
	"mobula/wire"
)

var options = &wire.TaskOptions{Func: "task"}

// owner is a model of a job's owner: what of it the cluster sees.
type owner struct {
	s     *sim
	at    *node
	job   ids.JobID
	ready queue
	told  int
	wants bool
	held  map[ids.LeaseID]bool // leases, and whether a task is on them
	asked map[ids.LeaseID]bool // those that are to go back after it
	idle  []ids.LeaseID
	since map[ids.LeaseID]int64 // when each has begun to idle last
	on    map[ids.Home]int      // leases of each node
	near  near
	local int // tasks that ran where their arguments were
	moved int // and elsewhere
}

func (s *sim) newOwner(at *node, n uint64, tasks []task) *owner {
	return &owner{
		s: s, at: at, job: ids.JobID(at.id.ID(n)), ready: newQueue(tasks), held: map[ids.LeaseID]bool{}, asked: map[ids.LeaseID]bool{},
		since: map[ids.LeaseID]int64{}, on: map[ids.Home]int{}, near: near{barren: map[ids.Home]int64{}},
	}
}

func (o *owner) key() sched.ClassKey { return sched.ClassKey{Job: o.job, Class: 1} }

// locate says where the arguments of the next tasks are.
func (o *owner) locate() {
	tasks := make(map[ids.Home]uint64)
	for t, n := o.ready.first(), 0; t != nil && n < maxLocated; t, n = o.ready.next(t), n+1 {
		if t.args != 0 {
			tasks[t.args]++
		}
	}
	var held []cluster.Held
	for _, node := range slices.Sorted(maps.Keys(tasks)) {
		held = append(held, cluster.Held{Node: node, Bytes: tasks[node] * o.s.cfg.ArgBytes})
	}
	o.s.After(0, func() { o.at.step(cluster.Locality{Key: o.key(), Args: held}) })
}

// want is raylet/owner's.
func (o *owner) want() {
	n := o.ready.left
	if n == 0 && !o.wants || n != 0 && o.told != 0 && n < 2*o.told && 2*n > o.told {
		return
	}
	if o.told, o.wants = n, n > 0; n > 0 {
		o.locate()
	}
	o.say(sched.Want{Key: o.key(), Opts: options, Backlog: n})
}

func (o *owner) say(ev sched.Event) {
	o.s.After(0, func() { o.at.step(cluster.FromOwner{Job: o.job, Event: ev}) })
}

func (o *owner) handle(m sched.OwnerMsg) {
	switch m := m.(type) {
	case sched.Granted:
		o.told = max(o.told-1, 0)
		o.on[m.Lease.Home()]++
		o.free(m.Lease)
	case sched.Reclaim:
		if busy, held := o.held[m.Lease]; held && !busy {
			o.giveBack(m.Lease)
		} else if held { // after its task
			o.asked[m.Lease] = true
		}
	}
}

func (o *owner) giveBack(l ids.LeaseID) {
	delete(o.held, l)
	delete(o.asked, l)
	delete(o.since, l)
	o.on[l.Home()]--
	o.busy(l)
	o.say(sched.Return{Lease: l})
}

// busy takes a lease off those that idle: most often the last of them.
func (o *owner) busy(l ids.LeaseID) {
	for i, other := range slices.Backward(o.idle) {
		if other == l {
			o.idle = slices.Delete(o.idle, i, i+1)
			return
		}
	}
}

// free has a lease take its next task. If there is none it is given back after a while.
func (o *owner) free(l ids.LeaseID) {
	o.held[l] = false
	if o.asked[l] {
		o.giveBack(l)
	} else {
		o.idle = append(o.idle, l)
		o.dispatch()
	}
	if busy, held := o.held[l]; held && !busy {
		since := o.s.Now()
		o.since[l] = since
		o.s.After(o.s.cfg.LeaseIdle, func() {
			if busy, held := o.held[l]; held && !busy && o.since[l] == since {
				o.giveBack(l)
			}
		})
	}
	o.want()
}

// dispatch gives idle leases tasks.
func (o *owner) dispatch() {
	for len(o.idle) > 0 && o.ready.left > 0 {
		l, t := o.nearest(o.idle[len(o.idle)-1])
		if t == nil {
			if n := &o.near; !n.idles {
				n.idles, n.idle = true, o.s.Now()
			}
			return
		}
		o.busy(l)
		o.push(l, t)
	}
	o.near.idles = false
}

// push runs a task on a lease.
func (o *owner) push(l ids.LeaseID, t *task) {
	at := l.Home()
	o.ready.take(t)
	o.held[l] = true
	d := t.runs
	switch t.args {
	case 0:
	case at:
		o.local++
	default:
		o.moved++
		d += o.s.moves()
	}
	if at != o.at.id {
		d += 2 * o.s.cfg.Latency
	}
	o.s.After(d, func() {
		o.s.left--
		o.free(l)
	})
}
