package main

import (
	"time"

	"mobula/internal/ids"
)

// These are raylet/owner's: of how many tasks it is said where their arguments are, among how many the nearest is looked for, and how long nothing waits for a
// lease on a node where none came.
const (
	maxLocated = 1024
	maxNear    = 32
	barrenFor  = int64(time.Second)
)

// near is what an owner remembers of tasks that wait for a lease where their arguments are.
type near struct {
	passed int   // tasks since the first one was passed over
	far    *task // that waits
	since  int64
	due    int64 // when it is looked at again; 0: it is not
	idles  bool  // leases idle because tasks wait
	idle   int64 // since then
	barren map[ids.Home]int64
}

// moves is how long a task's arguments take to another node.
func (s *sim) moves() time.Duration {
	return time.Duration(float64(s.cfg.ArgBytes) / s.cfg.Bandwidth * float64(time.Second))
}

// nearest chooses what runs next, by raylet/owner's rule: the first task where its arguments are, or while it waits for that the next of the first tasks that
// may run here. nil: the first one waits, and nothing else may run.
func (o *owner) nearest(l ids.LeaseID) (ids.LeaseID, *task) {
	first, n := o.ready.first(), &o.near
	if first.args == 0 {
		return l, first
	}
	for i := len(o.idle) - 1; i >= 0 && i >= len(o.idle)-maxNear; i-- {
		if o.idle[i].Home() == first.args {
			n.passed = 0
			return o.idle[i], first
		}
	}
	if n.passed >= maxNear {
		n.passed = 0
		return l, first
	}
	waits := o.waits(first)
	for t, i := o.ready.next(first), 1; t != nil && i < maxNear; t, i = o.ready.next(t), i+1 {
		if t.args == l.Home() || t.args == 0 && waits {
			n.passed++
			return l, t
		}
	}
	if waits {
		return 0, nil
	}
	return l, first
}

// waits tells whether a task waits for a lease where its arguments are: at most as long as they take to move.
func (o *owner) waits(t *task) bool {
	n, now := &o.near, o.s.Now()
	if now < n.barren[t.args] && o.on[t.args] == 0 {
		return false
	}
	if n.far != t {
		n.far, n.since = t, now
		if n.idles {
			n.since = n.idle
		}
	}
	due := n.since + int64(o.s.moves())
	if now >= due {
		n.barren[t.args] = now + barrenFor
		return false
	}
	if n.due != due {
		n.due = due
		o.s.After(time.Duration(due-now), o.dispatch)
	}
	return true
}
