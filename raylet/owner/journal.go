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
// stand in the submission itself. Those of a named actor are used once, so they do; long ones would stay.
func (j *journal) optionsNo(o *wire.TaskOptions) uint32 {
	if o == j.optLast {
		return j.optLNo
	}
	n, ok := j.optNo[o]
	if !ok {
		if o.ActorName != "" || o.Long() {
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
	j.logbuf = record.AppendSubmit(j.logbuf, j.nextRecord(), t.spec, record.Submission{OptsNo: no, Born: t.born, Parent: parent, DetachedDescendant: t.detachedDescendant, Elsewhere: t.isElsewhere()})
	j.logged(at, &t.cookie)
}

// loggedEnd takes the record of a task's end. One that says all replaces those before it; else what they say of returns that are resolved stays.
func (j *journal) loggedEnd(start int, t *taskRec, all bool) {
	if !all {
		ck := new(uint64)
		t.ext().ends = append(t.ext().ends, ck)
		j.logged(start, ck)
		return
	}
	t.flags |= taskEnded
	if t.x != nil {
		j.cookies = append(j.cookies, t.x.ends...)
		t.x.ends = nil
	}
	j.replaced(start, &t.doneAt)
}

// endSaysAll tells whether the next record of a task's end says all that there is to be said: it is the first, or no return is resolved.
func (t *taskRec) endSaysAll() bool {
	all := true
	if t.flags&taskEnded != 0 && t.nret != wire.Streaming && !t.isCreation() {
		t.eachReturn(func(o *objRec) { all = all && o.state == object.Pending })
	}
	return all
}

// logDone records an attempt's results; a nil d is an end without any.
func (j *journal) logDone(t *taskRec, d *wire.Done) {
	if t.live == 0 {
		return // nothing refers to them, the record goes next
	}
	if d == nil {
		d = &wire.Done{Task: t.id(), Attempt: t.start}
	}
	all := t.endSaysAll()
	if !all {
		d = unresolved(t, d)
	}
	at := len(j.logbuf)
	j.logbuf = record.AppendDone(j.logbuf, j.nextRecord(), d, task.Finished)
	j.loggedEnd(at, t, all)
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
	j.loggedEnd(at, t, t.endSaysAll())
}

// logRetry records that an attempt was charged, or is being cancelled.
func (j *journal) logRetry(t *taskRec) {
	at := len(j.logbuf)
	r := record.Retry{Task: t.id(), Attempt: t.start, Tries: t.tries, Cancelled: t.flags&taskCancelled != 0, Elsewhere: t.isElsewhere()}
	if t.x != nil {
		r.Errors, r.Insist = t.x.errors, t.x.forceAfterGrace
	}
	if t.nret == wire.Streaming {
		r.Length = uint32(t.x.stream.length + 1)
	}
	j.logbuf = record.AppendRetry(j.logbuf, j.nextRecord(), &r)
	j.replaced(at, &t.ext().retryAt)
}

// logObject records an object that is not resolved by its task's Done: a put, an early seal,
// a stream's item. A stored one is kept by the node. It replaces what the log has of the object, but for the bytes of one that was packed.
func (j *journal) logObject(o *objRec, res *wire.Result, attempt uint32, node ids.Home) {
	at := len(j.logbuf)
	j.logbuf = record.AppendObject(j.logbuf, j.nextRecord(), o.id, attempt, res, j.elsewhere(node))
	if o.flags&objPacked != 0 {
		j.replaced(at, j.packedPlace(o))
		return
	}
	j.loggedObject(at, o)
}

// logFreed records that a put's value is gone while lineage needs the put's name: a rebuilt owner is not to ask the store for it, nor to seal it once
// more when a driver says again that it has made it. Or that a stream's item is: how far the stream has come a rebuilt owner knows by its items' records.
func (j *journal) logFreed(o *objRec) {
	at := len(j.logbuf)
	j.logbuf = record.AppendObject(j.logbuf, j.nextRecord(), o.id, o.attempt, &wire.Result{}, 0)
	j.loggedObject(at, o)
}

// loggedObject takes a record that says all there is to be said of an object.
func (j *journal) loggedObject(start int, o *objRec) {
	o.flags |= objLogged
	j.freePacked(o.id)
	j.replaced(start, &o.cookie)
}

// elsewhere is how the log names the node that keeps an object.
func (j *journal) elsewhere(node ids.Home) uint64 {
	if node == j.home() {
		return 0
	}
	return uint64(node) + 1
}

// packedPlace is the position of the record that says where the store has an object whose bytes another record has.
func (j *journal) packedPlace(o *objRec) *uint64 {
	ck := j.packedAt[o.id]
	if ck == nil {
		ck = new(uint64)
		j.packedAt[o.id] = ck
		if o.rec != nil {
			o.rec.ext().packed = true
		}
	}
	return ck
}

// freePacked frees that record, if there is one.
func (j *journal) freePacked(id ids.ObjectID) {
	if ck := j.packedAt[id]; ck != nil {
		j.cookies = append(j.cookies, ck)
		delete(j.packedAt, id)
	}
}

// logClosed records that nobody reads a stream any more.
func (j *journal) logClosed(t *taskRec) {
	if t.live > 0 || !t.state.Terminal() {
		at := len(j.logbuf)
		j.logbuf = record.AppendClosed(j.logbuf, j.nextRecord(), t.id())
		j.replaced(at, &t.ext().closedAt)
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
	j.replaced(at, &a.loggedAt)
}

// logStopped records that an actor is to be made again, which costs it no restart.
func (j *journal) logStopped(a *actorRec) {
	at := len(j.logbuf)
	r := record.Actor{Actor: a.id, State: actor.Restarting, Restarts: a.restarts, Named: a.claimed, Err: errs.New(errs.CodeShutdown, "the node was stopped, and restarts actor %v", a.id)}
	if a.stop != nil { // or ended, as was asked
		r.Err, r.Stop = a.stop, true
	}
	j.logbuf = record.AppendActor(j.logbuf, j.nextRecord(), &r)
	j.replaced(at, &a.loggedAt)
}

// logPacked records that the store has an object's value.
func (j *journal) logPacked(o *objRec, size uint64) {
	at := len(j.logbuf)
	j.logbuf = record.AppendPacked(j.logbuf, j.nextRecord(), o.id, size)
	j.replaced(at, j.packedPlace(o))
}

// logged takes what was appended to the log buffer since start as a record of this step. The
// log of a job that has ended is removed with it: nothing more is written or freed there, and a
// core that is rebuilt from it ends the job again.
func (j *journal) logged(start int, cookie *uint64) { j.take(start, LogRecord{Cookie: cookie}) }

// replaced is logged, for a record that says all that the one said whose position the cookie has.
func (j *journal) replaced(start int, cookie *uint64) {
	j.take(start, LogRecord{Cookie: cookie, Replaces: true})
}

func (j *journal) take(start int, r LogRecord) {
	b := j.logbuf
	if j.ended {
		j.logbuf = b[:start]
		return
	}
	r.Bytes = b[start:len(b):len(b)]
	j.logs = append(j.logs, r)
}
