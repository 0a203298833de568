package sched

import (
	"mobula/internal/ids"
	"mobula/wire"
)

// State is the state of a lease.
type State uint8

// The states of a lease.
const (
	Starting State = iota + 1 // its resources are taken, it waits for a worker
	Running                   // granted; its owner uses it
	Blocked                   // its task waits in a get, the CPU is given back
	Resuming                  // the task wants its CPU again
	Ended
	stateEnd
)

// String names the state.
func (s State) String() string {
	return [...]string{"none", "starting", "running", "blocked", "resuming", "ended"}[min(s, stateEnd)%stateEnd]
}

// Trigger is a cause of a lease's state change.
type Trigger uint8

// The triggers.
const (
	onWorker  Trigger = iota + 1 // the pool has a slot
	onBlock                      // BlockCPU
	onUnblock                    // UnblockCPU
	onCPU                        // a CPU is free for it
	onUp                         // ActorUp
	onEnd                        // returned, revoked, dropped, or no worker
	triggerEnd
)

// transitions is the table of a lease's state changes. An event that would cause a change which is not in it is
// stale and ignored.
var transitions = [stateEnd][triggerEnd]State{
	Starting: {onWorker: Running, onEnd: Ended},
	Running:  {onBlock: Blocked, onUp: Running, onEnd: Ended},
	Blocked:  {onUnblock: Resuming, onUp: Blocked, onEnd: Ended},
	Resuming: {onUnblock: Resuming, onCPU: Running, onUp: Resuming, onEnd: Ended},
}

// lease is one row of the table.
type lease struct {
	id        ids.LeaseID
	class     *class
	state     State
	need      demand // what the lease takes while it runs
	worker    ids.ClientID
	granted   int64 // when it last began to run, Unix ns
	reclaimed bool  // Reclaim is sent
	up        bool  // the lifetime lease of an actor
	asks      []Ask // UnblockCPU to answer

	at         int // index in its class's leases
	prev, next *lease
}

// held is what the lease takes in its state: all of its need, or all but the CPU.
func (l *lease) held() demand {
	switch l.state {
	case Starting, Running:
		return l.need
	case Blocked, Resuming:
		return l.need.withoutCPU()
	}
	return nil
}

// stuck tells whether its owner cannot return it when asked.
func (l *lease) stuck() bool {
	return l.state == Blocked || l.state == Resuming || l.up
}

// reclaimable tells whether it can be reclaimed, or was.
func (l *lease) reclaimable() bool {
	return l.state == Running && l.class.kind == wire.TaskNormal && len(l.need) > 0
}

func (d demand) withoutCPU() demand {
	if d.of(resCPU) == 0 {
		return d
	}
	out := make(demand, 0, len(d)-1)
	for _, x := range d {
		if x.r != resCPU {
			out = append(out, x)
		}
	}
	return out
}

// move changes the lease's state by the table and updates the totals; false if the table has no such change.
func (c *Core) move(now int64, l *lease, t Trigger) bool {
	to := transitions[l.state][t]
	if to == 0 {
		return false
	}
	c.account(l, -1)
	l.state = to
	switch t {
	case onWorker, onCPU:
		l.granted = now
	case onUp:
		l.need, l.up = l.class.life, true
	}
	c.account(l, +1)
	return true
}

// account adds the lease to every total that depends on its state (sign 1), or subtracts it (-1).
func (c *Core) account(l *lease, sign int) {
	if d := l.held(); sign > 0 {
		c.res.take(d)
		if l.stuck() {
			c.res.stick(d)
		}
	} else {
		c.res.give(d)
		if l.stuck() {
			c.res.unstick(d)
		}
	}
	if l.state == Running || l.state == Starting {
		if !l.up {
			c.running += sign
			l.class.running += sign
		}
	}
	if l.reclaimable() {
		if sign > 0 {
			c.active.push(l)
		} else {
			c.active.remove(l)
		}
	}
}

// leaseList holds the leases that can be reclaimed, in the order in which they began to run.
type leaseList struct {
	head, tail *lease
	n          int
}

func (q *leaseList) push(l *lease) {
	l.prev, l.next = q.tail, nil
	if q.tail == nil {
		q.head = l
	} else {
		q.tail.next = l
	}
	q.tail = l
	q.n++
}

func (q *leaseList) remove(l *lease) {
	if l.prev == nil {
		q.head = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		q.tail = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.prev, l.next = nil, nil
	q.n--
}
