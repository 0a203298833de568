package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// await looks at a task's arguments: it is ready, or waits for those that are not resolved.
// Arguments whose values were dropped are made again.
func (lf *life) await(t *taskRec) {
	if t.state != task.PendingArgs {
		return // it ended meanwhile
	}
	t.gen++
	t.deps = 0
	if lf.awaitsCalls && lf.hasUnknownArg(t) {
		lf.unsure = append(lf.unsure, t)
		return
	}
	if t.spec != nil {
		for i := range t.spec.Args {
			if id := t.spec.Args[i].Ref; !id.IsZero() {
				lf.waitFor(t, lf.objects.ensure(id))
			}
		}
	}
	switch {
	case t.deps == 0:
		lf.argsReady(t)
	case t.flags&taskTurn != 0:
		lf.calls.resequence(t)
	case !t.isCall():
		lf.memory.waitsLong(t)
	}
}

// hasUnknownArg tells whether an argument is a result that the owner does not know.
func (lf *life) hasUnknownArg(t *taskRec) bool {
	return t.spec != nil && slices.ContainsFunc(t.spec.Args, func(a wire.Arg) bool {
		return !a.Ref.IsZero() && !a.Ref.IsPut() && !lf.objects.ofOtherJob(a.Ref) && lf.objects.ensure(a.Ref).flags&objPlaceholder != 0
	})
}

func (lf *life) waitFor(t *taskRec, o *objRec) {
	if o.state == object.Freed && !lf.lineage.remake(o) {
		return // argsReady sees it
	}
	if o.state == object.Pending {
		lf.objects.askFor(o)
		w := lf.objects.waitsOf(o)
		w.tasks = append(w.tasks, taskWait{t, t.gen})
		t.deps++
	}
}

// argsReady puts a task whose arguments are all resolved into its queue, or fails it with
// the error of the first that failed.
func (lf *life) argsReady(t *taskRec) {
	if t.state != task.PendingArgs || t.deps > 0 {
		return
	}
	if t.spec != nil {
		for i := range t.spec.Args {
			if id := t.spec.Args[i].Ref; !id.IsZero() {
				if err, passed := lf.argError(lf.objects.ensure(id)); err != nil {
					lf.failByArg(t, err, passed)
					return
				}
			}
		}
	}
	if t.isCall() {
		lf.tasks.move(t, task.ReadyCall)
		lf.calls.callReady(t)
		return
	}
	lf.memory.waitsNoLonger(t)
	lf.tasks.move(t, task.Ready)
	lf.enqueue(t)
}

// enqueue puts a ready task into its class's queue.
func (lf *life) enqueue(t *taskRec) {
	k := t.class
	if t.flags&taskIsolated != 0 && t.x.isolatedClass != nil {
		t.x.isolatedClass = lf.leases.currentClass(t.x.isolatedClass)
		k = t.x.isolatedClass
	}
	if k.infeasible != nil {
		lf.leases.failInfeasible(t, k.infeasible)
		return
	}
	if t.flags&taskFront != 0 {
		t.flags &^= taskFront
		k.ready.pushFront(t)
	} else {
		k.ready.pushBack(t)
	}
	lf.leases.touch(k)
}

// argError gives the error that stands for an argument, and whether it came from an
// argument itself and so names the place already.
func (lf *life) argError(o *objRec) (err *errs.Error, passed bool) {
	switch o.state {
	case object.Failed:
		return o.res.Err, o.flags&objArgErr != 0
	case object.Freed:
		return lf.lineage.cannotRemake(o), false
	}
	return nil, false
}

// failByArg fails a task because an argument failed. The first task in a chain wraps the
// cause; those after it pass the same error on, so that a long chain stays cheap to read.
func (lf *life) failByArg(t *taskRec, err *errs.Error, passed bool) {
	if !passed {
		err = &errs.Error{
			Code: err.Code, Name: err.Name, Task: t.id().String(),
			Msg:   "an argument of " + t.name() + " failed: " + err.Error(),
			Cause: []*errs.Error{err},
		}
	}
	lf.fail(t, err)
	for i := range uint32(max(t.nret, 0)) {
		if o := t.ret(i); o.state == object.Failed {
			o.flags |= objArgErr
		}
	}
}

// argsRefused fails a task whose arguments can never be in memory together, or now for want of
// disk or memory, as a result without room does. The arguments themselves are intact.
func (lf *life) argsRefused(m objectstore.ArgsRefused) {
	t := lf.tasks.task(m.Task)
	if t == nil || t.start != m.Attempt || lf.memory.ask(t) != m.Ask || t.state != task.PendingFetch && t.state != task.PendingStore {
		return
	}
	err := &errs.Error{
		Code: m.Err.Code, Name: t.name(), Task: t.id().String(),
		Msg: "the arguments of " + t.name() + " have no room: " + m.Err.Msg, Cause: []*errs.Error{m.Err},
	}
	if t.isCreation() {
		lf.actors.killActorWith(t.actor, err)
		return
	}
	lf.withdraw(t)
	lf.fail(t, err)
}
