package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/record"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// What goes into the log. Each record is emitted before the effects that it allows.

const maxOptions = 4096 // distinct options that the log knows by number; others stand in each submission

// optionsNo gives the number of options in the log, telling it of new ones; 0: they are to
// stand in the submission itself. Those of a named actor are used once, so they do.
func (j *journal) optionsNo(o *wire.TaskOptions) uint32 {
	if o == j.optLast {
		return j.optLNo
	}
	n, ok := j.optNo[o]
	if !ok {
		if o.ActorName != "" {
			return 0
		}
		j.keyBuf = record.EncodeOptions(j.keyBuf[:0], o)
		n = j.optKeys[string(j.keyBuf)]
		if n == 0 && len(j.optKeys) < maxOptions {
			n = uint32(len(j.optKeys) + 1)
			j.optKeys[string(j.keyBuf)] = n
			j.optByNo[n] = o
			at := len(j.logbuf)
			j.logbuf = record.AppendOptions(j.logbuf, j.nextRecord(), n, j.keyBuf)
			ck := new(uint64)
			j.optCookies[n] = ck
			j.logged(at, ck)
		}
		if len(j.optNo) >= maxClassPtrs {
			clear(j.optNo)
		}
		j.optNo[o] = n
	}
	j.optLast, j.optLNo = o, n
	return n
}

// nextRecord gives a record its number. It orders the records, wherever in the log they lie.
func (j *journal) nextRecord() uint64 {
	j.records++
	return j.records
}

func (j *journal) logSubmit(t *taskRec, parent ids.ActorID) {
	no := j.optionsNo(t.spec.Opts)
	at := len(j.logbuf)
	j.logbuf = record.AppendSubmit(j.logbuf, j.nextRecord(), t.spec, record.Submission{OptsNo: no, Born: t.born, Parent: parent, DetachedDescendant: t.detachedDescendant})
	j.logged(at, &t.cookie)
}

// endCookie is where the position of a record of a task's end goes; a task that runs again
// has more than one.
func (t *taskRec) endCookie() *uint64 {
	if t.doneAt == 0 && t.flags&taskEnded == 0 {
		t.flags |= taskEnded
		return &t.doneAt
	}
	return laterCookie(t)
}

// logDone records an attempt's results; a nil d is an end without any.
func (j *journal) logDone(t *taskRec, d *wire.Done) {
	if t.live == 0 {
		return // nothing refers to them, the record goes next
	}
	if d == nil {
		d = &wire.Done{Task: t.id(), Attempt: t.start}
	}
	if t.flags&taskEnded != 0 {
		d = unresolved(t, d)
	}
	at := len(j.logbuf)
	j.logbuf = record.AppendDone(j.logbuf, j.nextRecord(), d, task.Finished)
	j.logged(at, t.endCookie())
}

// unresolved leaves out of the end of a task that has run again what its returns have already: that stays.
func unresolved(t *taskRec, d *wire.Done) *wire.Done {
	own := *d
	own.Results = slices.Clone(d.Results)
	for i := range own.Results {
		if t.ret(uint32(i)).state != object.Pending {
			own.Results[i] = wire.Result{}
		}
	}
	return &own
}

// logFailed records an end without results.
func (j *journal) logFailed(t *taskRec, err *errs.Error) {
	if t.live == 0 {
		return
	}
	at := len(j.logbuf)
	j.logbuf = record.AppendDone(j.logbuf, j.nextRecord(), &wire.Done{Task: t.id(), Attempt: t.start, Err: err}, task.Failed)
	j.logged(at, t.endCookie())
}

// logRetry records that an attempt was charged, or is being cancelled.
func (j *journal) logRetry(t *taskRec) {
	at := len(j.logbuf)
	r := record.Retry{Task: t.id(), Attempt: t.start, Tries: t.tries, Cancelled: t.flags&taskCancelled != 0}
	if t.x != nil {
		r.Errors, r.Insist = t.x.errors, t.x.forceAfterGrace
	}
	j.logbuf = record.AppendRetry(j.logbuf, j.nextRecord(), &r)
	j.logged(at, laterCookie(t))
}

// logObject records an object that is not resolved by its task's Done: a put, an early seal,
// a stream's item. A stored one is kept by the node.
func (j *journal) logObject(o *objRec, res *wire.Result, attempt uint32, node ids.Home) {
	at := len(j.logbuf)
	j.logbuf = record.AppendObject(j.logbuf, j.nextRecord(), o.id, attempt, res, j.elsewhere(node))
	j.logged(at, j.furtherCookie(o))
}

// logFreed records that a put's value is gone while lineage needs the put's name: a rebuilt owner is not to ask the store for it, nor to seal it once
// more when a driver says again that it has made it.
func (j *journal) logFreed(o *objRec) {
	at := len(j.logbuf)
	j.logbuf = record.AppendObject(j.logbuf, j.nextRecord(), o.id, o.attempt, &wire.Result{}, 0)
	j.logged(at, j.furtherCookie(o))
}

// elsewhere is how the log names the node that keeps an object.
func (j *journal) elsewhere(node ids.Home) uint64 {
	if node == j.home() {
		return 0
	}
	return uint64(node) + 1
}

// furtherCookie is where the position of a record about an object goes.
func (j *journal) furtherCookie(o *objRec) *uint64 {
	if o.cookie == 0 && o.flags&objLogged == 0 {
		o.flags |= objLogged
		return &o.cookie
	}
	return j.objectCookie(o)
}

// objectCookie is where the position of one more record about an object goes.
func (j *journal) objectCookie(o *objRec) *uint64 {
	if o.rec != nil {
		return laterCookie(o.rec)
	}
	ck := new(uint64)
	j.putCookies[o.id] = append(j.putCookies[o.id], ck)
	return ck
}

// laterCookie is where the position of one more record about a task goes.
func laterCookie(t *taskRec) *uint64 {
	ck := new(uint64)
	x := t.ext()
	x.cookies = append(x.cookies, ck)
	return ck
}

// logClosed records that nobody reads a stream any more.
func (j *journal) logClosed(t *taskRec) {
	if t.live > 0 || !t.state.Terminal() {
		at := len(j.logbuf)
		j.logbuf = record.AppendClosed(j.logbuf, j.nextRecord(), t.id())
		j.logged(at, laterCookie(t))
	}
}

func (j *journal) logActor(a *actorRec) {
	at := len(j.logbuf)
	r := record.Actor{Actor: a.id, State: a.state, Restarts: a.restarts, Resets: a.resets, Named: a.claimed, Err: a.cause, Stop: a.stop != nil, Hurt: a.hurt}
	if a.lease != nil {
		r.Lease, r.Worker = a.lease.id, a.lease.worker.id
	}
	if a.alias != nil {
		r.Alias = a.alias.id
	}
	j.logbuf = record.AppendActor(j.logbuf, j.nextRecord(), &r)
	j.logged(at, laterCookie(a.rec))
}

// logStopped records that an actor is to be made again, which costs it no restart.
func (j *journal) logStopped(a *actorRec) {
	at := len(j.logbuf)
	r := record.Actor{Actor: a.id, State: actor.Restarting, Restarts: a.restarts, Named: a.claimed, Err: errs.New(errs.CodeShutdown, "the node was stopped, and restarts actor %v", a.id)}
	if a.stop != nil { // or ended, as was asked
		r.Err, r.Stop = a.stop, true
	}
	j.logbuf = record.AppendActor(j.logbuf, j.nextRecord(), &r)
	j.logged(at, laterCookie(a.rec))
}

// logPacked records that the store has an object's value.
func (j *journal) logPacked(o *objRec, size uint64) {
	at := len(j.logbuf)
	j.logbuf = record.AppendPacked(j.logbuf, j.nextRecord(), o.id, size)
	j.logged(at, j.objectCookie(o))
}

// logged takes what was appended to the log buffer since start as a record of this step. The
// log of a job that has ended is removed with it: nothing more is written or freed there, and a
// core that is rebuilt from it ends the job again.
func (j *journal) logged(start int, cookie *uint64) {
	b := j.logbuf
	if j.ended {
		j.logbuf = b[:start]
		return
	}
	j.logs = append(j.logs, LogRecord{b[start:len(b):len(b)], cookie})
}
