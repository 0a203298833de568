package owner

import (
	"unsafe"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// returnCost is the bytes of the record of a further return, which is there from when it is announced.
const returnCost = int64(unsafe.Sizeof(objRec{}))

// returnsLimit is how many returns a task may have: their records, which the message that announces them does not pay for, take a quarter of the budget at most.
func (lf *life) returnsLimit() int32 {
	return int32(min(max(lf.cfg.InlineBudget/4/returnCost, fewReturns), maxReturns))
}

// submit takes a task. One that is known already, because its parent runs again, is not
// taken twice: the client only gets its handles.
func (lf *life) submit(cl *clientRec, spec *wire.TaskSpec) {
	cost := wire.CostOfSpec(spec)
	lf.journal.noteSent(cl, cost)
	if lf.cfg.CreditWindow > 0 {
		lf.clients.spend(cl, cost)
	}
	name := ids.ObjectID{Task: spec.ID}
	known, at := lf.tasks.findOrPlace(&name)
	if known != nil {
		lf.giveReturns(cl, known.rec)
		lf.resubmitted(known.rec, spec)
		return
	}
	refused := lf.refuse(spec)
	if spec.Opts.NumReturns > lf.returnsLimit() {
		spec = withOneReturn(spec)
	}
	t := lf.newTask(spec, at, nil)
	t.ret0.noteMaker(cl)
	lf.giveReturns(cl, t)
	by := lf.tasks.task(spec.Parent)
	t.markDetached(by)
	t.detachedDescendant = t.detachedDescendant || by == nil && cl.hostsDetached()
	var parent ids.ActorID
	if (spec.Opts.Escalate || spec.Opts.OnPanic == wire.PanicEscalates) && spec.Kind == wire.TaskActorCreate {
		parent = lf.parentActor(spec, by)
	}
	lf.journal.logSubmit(t, parent)
	if refused != nil {
		lf.stats.Submitted++
		lf.fail(t, refused)
		return
	}
	if parent != (ids.ActorID{}) {
		t.actor = newActor(t)
		t.actor.parent = parent
	}
	lf.accept(t, by)
}

// refuse gives the reason not to take a spec at all.
func (lf *life) refuse(spec *wire.TaskSpec) *errs.Error {
	switch o := spec.Opts; {
	case lf.ended:
		return errs.New(errs.CodeShutdown, "task %v: job %v has ended", spec.ID, lf.cfg.Job)
	case o.NumReturns > lf.returnsLimit():
		return errs.New(errs.CodeInvalid, "%s asks for %d returns, whose records take %d bytes; at most %d are possible, a quarter of this node's budget of %d bytes for inline values and records: return a list, or a stream, or give the node a larger store",
			o.Func, o.NumReturns, int64(o.NumReturns)*returnCost, lf.returnsLimit(), lf.cfg.InlineBudget)
	case spec.Deadline != 0 && spec.Deadline <= lf.now:
		return errs.New(errs.CodeDeadline, "%s was submitted after its deadline", o.Func)
	}
	return nil
}

// withOneReturn is what is kept of a task that announces more than is possible: its error.
func withOneReturn(spec *wire.TaskSpec) *wire.TaskSpec {
	own, opts := *spec, *spec.Opts
	opts.NumReturns = 1
	own.Opts = &opts
	return &own
}

// newTask makes the record of a task and enters it where it belongs. ad is of a call that is adopted; nil: it is none.
func (lf *life) newTask(spec *wire.TaskSpec, at place, ad *adoptedCall) *taskRec {
	t := lf.tasks.newTaskRecord()
	lf.tasks.born = max(lf.tasks.born+1, lf.now)
	t.spec, t.nret, t.born, t.since, t.begun = spec, spec.Opts.NumReturns, lf.tasks.born, lf.now, ticks(lf.now)
	t.ret0.id.Task = spec.ID
	t.ret0.rec = t
	if spec.Kind == wire.TaskActorCreate {
		t.nret = 1
	}
	switch {
	case t.nret == wire.Streaming:
		t.ext().stream = newStream()
		lf.tasks.streamCount++
		t.live = 1
	case t.nret < 0:
		t.nret = 0
	default:
		t.live = uint32(t.nret)
		if t.nret > 1 {
			more := make([]objRec, t.nret-1)
			for i := range more {
				more[i].id = spec.ID.Return(i + 1)
				more[i].rec = t
			}
			t.ext().more = more
			lf.objects.budget.returns += int64(len(more)) * returnCost
		}
	}
	lf.tasks.enter(&t.ret0, at)
	lf.objects.budget.addSpec(spec)
	if len(lf.objects.placeholders) > 0 {
		lf.objects.fillPlaceholders(t)
	}
	lf.promises.promise(t)
	if spec.Deadline != 0 {
		t.ext().deadline = spec.Deadline
	}
	t.state = task.PendingArgs
	lf.tasks.byState[t.state]++
	if ad != nil {
		t.ext().adopted = ad
		lf.tasks.elsewhere++
	}
	if lf.cfg.Transitions {
		lf.tasks.changed(t, lf.now)
	}
	return t
}

// giveReturns gives the client its handles on the returns.
func (lf *life) giveReturns(cl *clientRec, t *taskRec) {
	lf.promises.givePromises(cl, t)
	if t.nret == wire.Streaming {
		t.x.stream.join(cl)
		return
	}
	for i := range uint32(max(t.nret, 0)) {
		o := t.ret(i)
		lf.objects.giveHandle(cl, o)
		if o.state == object.Freed {
			lf.lineage.remake(o) // its value was dropped; the parent runs again and wants it
		}
	}
}

// resubmitted runs a task once more of which a return was dropped while others were kept, where lineage does not make it: the one
// who submits it anew, and whoever that one calls with it, wants them all. The error of a task that has failed stays what it was.
func (lf *life) resubmitted(t *taskRec, spec *wire.TaskSpec) {
	if !t.state.Terminal() || t.isCall() || t.isCreation() || t.nret < 2 {
		return
	}
	var dropped []*objRec
	var failed *wire.Result
	t.eachReturn(func(o *objRec) {
		switch o.state {
		case object.Freed:
			dropped = append(dropped, o)
		case object.Failed:
			failed = o.res
		}
	})
	if len(dropped) == 0 || t.state != task.Finished && failed == nil {
		return
	}
	for _, o := range dropped {
		lf.objects.moveObject(o, object.Remake)
	}
	if t.state != task.Finished {
		for _, o := range dropped {
			lf.objects.resolve(o, failed, object.SetError)
		}
		return
	}
	if t.spec == nil {
		t.spec = spec
		lf.objects.budget.addSpec(spec)
	}
	lf.journal.logRetry(t)
	lf.lineage.startAgain(t)
}
