package owner

import (
	"slices"

	"mobula/objectstore"
	"mobula/raylet/owner/task"
)

// pinArgs asks the store to pin the stored arguments of an attempt for its worker.
func (ls *leases) pinArgs(t *taskRec, l *leaseRec) {
	t.flags |= taskPinned
	t.lease = l
	l.fetching = append(l.fetching, t)
	ls.tasks.move(t, task.Fetch)
	ls.memory.pinAgain(t, l)
}

// argsPinned pushes the task whose arguments lie ready.
func (ls *leases) argsPinned(m objectstore.ArgsPinned) {
	t := ls.tasks.task(m.Task)
	if t == nil || t.start != m.Attempt || ls.memory.ask(t) != m.Ask || t.state != task.PendingFetch && t.state != task.PendingStore {
		return // withdrawn by UnpinArgs, which is on its way
	}
	l := t.lease
	ls.cancelFetch(l, t)
	args, ok := ls.memory.argValues(t, m.Values)
	if !ok {
		ls.memory.unpinArgs(t)
		ls.unassign(t)
		ls.up.requeue(t, true)
		ls.touchLease(l)
		return
	}
	ls.push(l, t, args)
	ls.relist(l)
}

func (ls *leases) argsWait(m objectstore.ArgsWait) {
	if t := ls.tasks.task(m.Task); t != nil && t.start == m.Attempt && ls.memory.ask(t) == m.Ask && t.state == task.PendingFetch {
		ls.tasks.move(t, task.NoRoom)
	}
}

// cancelFetch ends the wait for a task's arguments. Calls that waited behind it go on: it may be waiting for one of them.
func (ls *leases) cancelFetch(l *leaseRec, t *taskRec) {
	if i := slices.Index(l.fetching, t); i >= 0 {
		l.fetching = slices.Delete(l.fetching, i, i+1)
		ls.relist(l)
		if l.actor != nil {
			ls.up.touchActor(l.actor)
		}
	}
}
