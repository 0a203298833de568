package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// A task may promise objects: first returns of tasks that it is going to submit. A promised object has an id, holders and
// waiters, but no task. It is a placeholder until its task is submitted (fillPlaceholders), or the task that promised it ends
// (breakPromises). When only the worker of the promising task still refers to the object, the promise is abandoned, and the
// worker is told that it need not submit that task (wire.Unneeded). A parent that runs again, and submits the promising task
// again, wants the object again: the promising task then runs again too.
//
// A call of an actor promises an object for a task that it never submits. breakPromises resolves that object as the call ends, and
// so tells who has no result of the call. Such a promise is never abandoned.

// endOfCall tells whether the promised object o is the end of a call that is still to come.
func (p promise) endOfCall(o *objRec) bool { return p.by.isCall() && o.flags&objPlaceholder != 0 }

// promise makes what a new task promises; an actor's creation promises nothing. What a task returned already is kept.
func (ps *promises) promise(t *taskRec) {
	if len(t.spec.Promises) == 0 || t.spec.Kind == wire.TaskActorCreate {
		return
	}
	t.ext().promises = t.spec.Promises
	for _, n := range t.x.promises {
		ps.promiseOne(t, n)
	}
}

func (ps *promises) promiseOne(t *taskRec, n uint32) {
	id := promised(t, n)
	o := ps.objects.object(id)
	switch {
	case o == nil:
		o = &objRec{id: id, state: object.Pending, flags: objPlaceholder}
		ps.objects.placeholders[id] = o
	case o.flags&objPlaceholder != 0 && o.state != object.Pending: // something referred to it before it was promised
		o.state, o.res = object.Pending, nil
		o.flags &^= objArgErr
	}
	o.flags |= objPromised
	ps.open[id] = promise{t, n}
}

func promised(t *taskRec, n uint32) ids.ObjectID {
	return ids.Derive(t.id(), uint64(n)).Return(0)
}

// givePromises gives a client its handles on what a task promises.
func (ps *promises) givePromises(cl *clientRec, t *taskRec) {
	if t.x == nil {
		return
	}
	for _, n := range t.x.promises {
		id := promised(t, n)
		if _, ok := ps.open[id]; !ok {
			ps.promiseOne(t, n)
			t.x.unneeded--
			t.x.rerunRequested = t.x.rerunRequested || t.state.OnWorker() // which was told that it need not make this
		}
		o := ps.objects.object(id)
		ps.objects.giveHandle(cl, o)
		ps.objects.queueRecount(o) // a client that is gone holds nothing
		if o.state == object.Freed {
			ps.up.remake(o)
		}
	}
}

// maybeUnneeded abandons a promise if only the worker of the task that made it still refers to the object.
func (ps *promises) maybeUnneeded(o *objRec) {
	p, ok := ps.open[o.id]
	if !ok || p.endOfCall(o) || o.tasks+o.objs > 0 || o.more != nil || o.holder != nil && (p.by.lease == nil || o.holder != p.by.lease.worker) {
		return
	}
	if o.waits != nil && slices.ContainsFunc(o.waits.gets, func(g getWait) bool { return g.client != o.holder }) {
		return // it released its handle and still expects an answer
	}
	ps.abandonPromise(o)
}

// abandonPromise ends a promise that nobody needs kept.
func (ps *promises) abandonPromise(o *objRec) {
	p, ok := ps.open[o.id]
	if !ok {
		return
	}
	delete(ps.open, o.id)
	o.flags &^= objPromised
	p.by.x.unneeded++
	if p.by.state.OnWorker() {
		ps.unneeded = append(ps.unneeded, p)
	}
}

// resendUnneeded tells of what was given up before this attempt.
func (ps *promises) resendUnneeded(t *taskRec) {
	if t.x == nil || t.x.unneeded == 0 {
		return
	}
	for _, n := range t.x.promises {
		if _, ok := ps.open[promised(t, n)]; !ok {
			ps.unneeded = append(ps.unneeded, promise{t, n})
		}
	}
}

// flushUnneeded tells workers, one message a task, behind the attempts that were pushed in this step.
func (ps *promises) flushUnneeded() {
	for rest := ps.unneeded; len(rest) > 0; {
		t := rest[0].by
		var ns []uint32
		later := rest[:0]
		for _, p := range rest {
			if p.by == t {
				ns = append(ns, p.n)
			} else {
				later = append(later, p)
			}
		}
		rest = later
		if t.state.OnWorker() && t.lease != nil {
			ps.toClient(t.lease.worker, &wire.Unneeded{Task: t.id(), Numbers: ns})
		}
	}
	clear(ps.unneeded)
	ps.unneeded = ps.unneeded[:0]
}

// breakPromises fails what a task that has ended promised and did not submit.
func (ps *promises) breakPromises(t *taskRec, err *errs.Error) {
	if t.x == nil {
		return
	}
	for _, n := range t.x.promises {
		id := promised(t, n)
		if _, ok := ps.open[id]; !ok {
			continue
		}
		delete(ps.open, id)
		o := ps.objects.object(id)
		o.flags &^= objPromised
		if o.flags&objPlaceholder == 0 || o.state != object.Pending {
			continue
		}
		if err == nil {
			err = errs.New(errs.CodeReturnMismatch, "%s ended and has not made task %d, whose result it promised", t.name(), n)
		}
		ps.objects.resolve(o, errorResult(err), object.SetError)
	}
	t.x.promises, t.x.unneeded, t.x.rerunRequested = nil, 0, false
}
