package owner

import (
	"slices"

	"mobula/raylet/owner/task"
	"mobula/wire"
)

// A task's spec is in the log. Above the budget, the specs at the end of a queue leave memory and are read back when their turn comes. A spec that
// refers to nothing goes as a whole; of any other one only the inline values go, so that no count, and no order, depends on what is not there. So go those of
// tasks that wait for arguments, of calls that wait for their actor, and of what is kept as lineage. A deadline needs no spec: the task's record has it.

const (
	pageKeep  = 1024 // tasks at the head of a queue whose specs stay, unless they are large
	pageBatch = 256  // specs read back at once, at most
)

// keepBytes bounds the specs that stay at the heads of all queues together. The first of a queue stays in any case.
func (ms *memory) keepBytes() int64 { return ms.cfg.InlineBudget / 4 }

// readBytes bounds what is read back at once for one queue.
func (ms *memory) readBytes() int64 { return ms.cfg.InlineBudget / 16 }

// specCost is the bytes of a task's spec in memory.
func (t *taskRec) specCost() int64 {
	if t.spec == nil {
		return 0
	}
	return wire.CostOfSpec(t.spec)
}

// pagedOut tells whether a task cannot be pushed before its spec is read back from the log.
func (t *taskRec) pagedOut() bool { return t.spec == nil || t.x != nil && t.x.trimmed > 0 }

// replaceSpec changes what of a task's spec is in memory, and counts it.
func (ms *memory) replaceSpec(t *taskRec, spec *wire.TaskSpec) {
	n := -t.specCost()
	t.spec = spec
	n += t.specCost()
	ms.objects.budget.specs += n
	if t.in != nil {
		t.in.bytes += n
	}
}

// fullCost is specCost with what is paged out of a spec that is there.
func (t *taskRec) fullCost() int64 {
	if t.x == nil {
		return t.specCost()
	}
	return t.specCost() + t.x.trimmed
}

// waitsLong notes a task that waits for arguments, if there is something to page out of its spec.
func (ms *memory) waitsLong(t *taskRec) {
	if t.in == nil && t.spec != nil && inlineBytes(t.spec) >= packMin {
		ms.waiting.pushBack(t)
	}
}

// waitsNoLonger is the end of that.
func (ms *memory) waitsNoLonger(t *taskRec) {
	if t.in == &ms.waiting {
		t.unlist()
	}
}

// pageOutSpecs takes first what is not needed soon.
func (ms *memory) pageOutSpecs() {
	ms.trimAll(ms.up.keptLineage())
	ms.trimAll(&ms.waiting)
	if ms.objects.budget.specs > ms.cfg.InlineBudget/2 {
		ms.pageOut()
	}
}

// pageOutCalls gives up the inline values of calls that wait for their actor, while the budget is exceeded. Those that came in this step go when the actor is
// looked at next.
func (ms *memory) pageOutCalls(queue *taskList) {
	if queue.n > 0 && ms.specsExceed() {
		ms.trimAll(queue)
	}
}

// specsExceed tells whether the budget is exceeded, and by specs.
func (ms *memory) specsExceed() bool {
	b := &ms.objects.budget
	return b.used() > ms.cfg.InlineBudget && b.specs > ms.cfg.InlineBudget/2
}

// trimAll gives up the inline values of every spec in a list.
func (ms *memory) trimAll(l *taskList) {
	fresh, later := l.pushed-l.looked, uint64(0)
	for t := l.tail; t != nil && fresh > 0; t, fresh = t.prev, fresh-1 {
		ms.objects.budget.looked++
		switch {
		case t.pagedOut() || inlineBytes(t.spec) < packMin:
		case t.cookie == 0:
			later++
		default:
			ms.trim(t)
			ms.stats.PagedOut++
		}
	}
	l.looked = l.pushed - later
}

// pageOut gives up specs at the end of the queue that has the most bytes of them: of the tasks that are far from its head, and of those nearer whose specs
// are large.
func (ms *memory) pageOut() {
	k, queues := ms.up.heaviestQueue()
	if k == nil {
		return
	}
	// Tasks further ahead were looked at before: a spec that could not go then cannot go now, and those that stayed are few bytes.
	fresh := k.ready.pushed - k.ready.looked
	keep, later, unlogged := ms.keepBytes()/int64(queues), uint64(0), int64(0)
	for t, n := k.ready.tail, k.ready.n; n > 1 && fresh > 0; t, n, fresh = t.prev, n-1, fresh-1 {
		if n <= pageKeep && k.ready.bytes-unlogged <= keep {
			break
		}
		ms.objects.budget.looked++
		if t.cookie != 0 {
			ms.pageOutSpec(k, t)
		} else {
			later++ // it came in this step: its record is not in the log yet
			unlogged += t.specCost()
		}
	}
	k.ready.looked = k.ready.pushed - later
}

// pageOutSpec gives up what can go of a queued task's spec.
func (ms *memory) pageOutSpec(k *classRec, t *taskRec) {
	if t.pagedOut() {
		return
	}
	switch {
	case refersToNothing(t):
		k.largestPaged = max(k.largestPaged, t.specCost())
		ms.replaceSpec(t, nil)
	case inlineBytes(t.spec) >= packMin:
		ms.trim(t)
	default:
		return
	}
	ms.stats.PagedOut++
}

// trim gives up the inline values of a task's spec.
func (ms *memory) trim(t *taskRec) {
	cost := t.specCost()
	ms.replaceSpec(t, withoutValues(t.spec))
	t.ext().trimmed = cost - t.specCost()
}

// refersToNothing tells whether nothing but a push needs a task's spec.
func refersToNothing(t *taskRec) bool {
	return t.nret != wire.Streaming && !t.isCreation() && !slices.ContainsFunc(t.spec.Args, func(a wire.Arg) bool {
		return !a.Ref.IsZero() || len(a.Value.Refs) > 0
	})
}

func inlineBytes(spec *wire.TaskSpec) (n int) {
	for i := range spec.Args {
		n += len(spec.Args[i].Value.Data) + len(spec.Args[i].Value.Meta)
	}
	return n
}

// withoutValues is a spec with all that it refers to, without its inline values.
func withoutValues(spec *wire.TaskSpec) *wire.TaskSpec {
	own := *spec
	own.Args = slices.Clone(spec.Args)
	for i := range own.Args {
		v := &own.Args[i].Value
		v.Data, v.Meta = nil, nil
	}
	return &own
}

// pageIn reads back the spec of the first task in a queue, and of the tasks behind it as many as are few bytes: one that was paged out as a whole is not larger
// than largest.
func (ms *memory) pageIn(queue *taskList, largest int64) {
	left := ms.readBytes()
	for t, n := queue.head, 0; t != nil && left > 0 && n < pageBatch; t, n = t.next, n+1 {
		switch {
		case t.spec == nil:
			left -= largest
		case t.pagedOut():
			left -= t.x.trimmed
		default:
			left -= t.specCost()
			continue
		}
		if t.flags&taskFetching == 0 {
			t.flags |= taskFetching
			ms.journal.askLog(&t.cookie, &fetch{task: t})
		}
	}
}

func (ms *memory) specFetched(t *taskRec, ev Fetched) {
	t.flags &^= taskFetching
	if t.state != task.PendingNode && t.state != task.PendingActor || !t.pagedOut() {
		return
	}
	ms.touchQueue(t)
	spec, err := ms.journal.parseSpec(ev)
	if err != nil {
		t.unlist()
		ms.up.fail(t, err)
		return
	}
	if t.x != nil {
		t.x.trimmed = 0
	}
	ms.replaceSpec(t, spec)
}

// touchQueue has the queue of a task looked at.
func (ms *memory) touchQueue(t *taskRec) {
	if t.isCall() {
		ms.up.touchActor(t.actor)
		return
	}
	ms.up.touch(t.class)
	if t.x != nil && t.x.isolatedClass != nil {
		ms.up.touch(t.x.isolatedClass)
	}
}
