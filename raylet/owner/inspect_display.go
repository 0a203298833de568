package owner

import (
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
)

// displayState is a task's state as lists show it. That a call of an actor has begun nobody tells its owner: of those pushed and not
// done the first run, as many as the actor runs at once. Where other jobs may call the actor too, or calls go straight to it, that is not known here, and a call
// stays as it is.
func (t *taskRec) displayState() task.State {
	if t.isElsewhere() {
		return task.PendingActor // or runs: the processes that call and are called know
	}
	if t.state != task.Submitted || t.lease == nil || !t.lease.countsRunning() {
		return t.state
	}
	group := t.concurrencyGroup()
	left := t.lease.actor.concurrencyLimit(group)
	for _, x := range t.lease.lane.All() {
		switch {
		case left <= 0:
			return t.state
		case x == t:
			return task.Running
		case x.concurrencyGroup() == group:
			left--
		}
	}
	return t.state
}

// started counts the calls on a lease that are Submitted and shown as Running.
func (l *leaseRec) started() int {
	if !l.countsRunning() {
		return 0
	}
	n := 0
	used := make(map[string]int)
	for _, x := range l.lane.All() {
		group := x.concurrencyGroup()
		if used[group]++; used[group] <= l.actor.concurrencyLimit(group) && x.state == task.Submitted {
			n++
		}
	}
	return n
}

// countsRunning tells whether the calls on a lease are all that its actor has.
func (l *leaseRec) countsRunning() bool {
	a := l.actor
	return a != nil && a.rec != nil && a.state == actor.Alive && a.opts != nil && !a.opts.Detached && !a.passed
}

// concurrencyLimit is how many calls of a group, or with "" of none, an actor runs at once.
func (a *actorRec) concurrencyLimit(group string) int {
	if group == "" {
		return max(int(a.opts.MaxConcurrency), 1)
	}
	for _, g := range a.opts.Groups {
		if g.Name == group {
			return max(int(g.Max), 1)
		}
	}
	return 0
}

func (t *taskRec) concurrencyGroup() string {
	if t.spec == nil {
		return ""
	}
	return t.spec.Opts.Group
}
