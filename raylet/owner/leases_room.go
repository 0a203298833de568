package owner

import "mobula/raylet/owner/lease"

// A class knows which of its leases have room, so that a step costs what has changed in it, however many leases there are: those with nothing to do, the one
// that idles since the shortest time at the back, and those whose pipeline has run down. Of a pipeline that is nearly full nothing is noted: it is looked at
// again when a task on it ends.

// leaseList is an intrusive list of leases of a class; a lease is in at most one.
type leaseList struct {
	head, tail *leaseRec
	n          int
}

func (ll *leaseList) pushBack(l *leaseRec) {
	l.in, l.prev, l.next = ll, ll.tail, nil
	if ll.tail == nil {
		ll.head = l
	} else {
		ll.tail.next = l
	}
	ll.tail = l
	ll.n++
}

// unlist takes a lease out of the list it is in, if any.
func (l *leaseRec) unlist() {
	ll := l.in
	if ll == nil {
		return
	}
	if l.prev == nil {
		ll.head = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		ll.tail = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.in, l.prev, l.next = nil, nil, nil
	ll.n--
}

// takes tells whether tasks are pushed over the lease. One that gave back what waited behind
// a long task gets no more until that has ended.
func (l *leaseRec) takes() bool { return l.state == lease.Active && !l.slow }

// relist puts a lease into the list for what it has to do, after that or its state has changed.
func (ls *leases) relist(l *leaseRec) {
	var to *leaseList
	if k := l.class; k != nil && l.takes() {
		switch load := l.load(); {
		case load == 0:
			to = &k.idle
		case load <= lowMark(k.depth(&ls.cfg)):
			to = &k.spare
		}
	}
	if to == l.in {
		return
	}
	l.unlist()
	if to != nil {
		to.pushBack(l)
	}
}

// lowMark is how far a pipeline runs down before it is filled again, so that pushes stay batched.
func lowMark(depth int) int { return depth - (depth+3)/4 }
