package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/record"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// What goes into the log. Each record is emitted before the effects that it allows.

const maxOptions = 4096 // distinct options that the log knows by number; others stand in each submission

// optionsNo gives the number of options in the log, telling it of new ones; 0: they are to
// stand in the submission itself. Those of a named actor are used once, so they do.
func (c *Core) optionsNo(o *wire.TaskOptions) uint32 {
	if o == c.optLast {
		return c.optLNo
	}
	n, ok := c.optNo[o]
	if !ok {
		if o.ActorName != "" {
			return 0
		}
		c.keyBuf = record.EncodeOptions(c.keyBuf[:0], o)
		n = c.optKeys[string(c.keyBuf)]
		if n == 0 && len(c.optKeys) < maxOptions {
			n = uint32(len(c.optKeys) + 1)
			c.optKeys[string(c.keyBuf)] = n
			c.optByNo[n] = o
			at := len(c.logbuf)
			c.logbuf = record.AppendOptions(c.logbuf, c.nextRecord(), n, c.keyBuf)
			ck := new(uint64)
			c.optCookies[n] = ck
			c.logged(at, ck)
		}
		if len(c.optNo) >= maxClassPtrs {
			clear(c.optNo)
		}
		c.optNo[o] = n
	}
	c.optLast, c.optLNo = o, n
	return n
}

// nextRecord gives a record its number. It orders the records, wherever in the log they lie.
func (c *Core) nextRecord() uint64 {
	c.records++
	return c.records
}

func (c *Core) logSubmit(t *taskRec, parent ids.ActorID) {
	no := c.optionsNo(t.spec.Opts)
	at := len(c.logbuf)
	c.logbuf = record.AppendSubmit(c.logbuf, c.nextRecord(), t.spec, record.Submission{OptsNo: no, Born: t.born, Parent: parent, Heir: t.heir})
	c.logged(at, &t.cookie)
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
func (c *Core) logDone(t *taskRec, d *wire.Done) {
	if t.live == 0 {
		return // nothing refers to them, the record goes next
	}
	if d == nil {
		d = &wire.Done{Task: t.id(), Attempt: t.start}
	}
	at := len(c.logbuf)
	c.logbuf = record.AppendDone(c.logbuf, c.nextRecord(), d, task.Finished)
	c.logged(at, t.endCookie())
}

// logFailed records an end without results.
func (c *Core) logFailed(t *taskRec, err *errs.Error) {
	if t.live == 0 {
		return
	}
	at := len(c.logbuf)
	c.logbuf = record.AppendDone(c.logbuf, c.nextRecord(), &wire.Done{Task: t.id(), Attempt: t.start, Err: err}, task.Failed)
	c.logged(at, t.endCookie())
}

// logRetry records that an attempt was charged, or is being cancelled.
func (c *Core) logRetry(t *taskRec) {
	at := len(c.logbuf)
	r := record.Retry{Task: t.id(), Attempt: t.start, Tries: t.tries, Cancelled: t.flags&taskCancelled != 0}
	if t.x != nil {
		r.Errors, r.Insist = t.x.errors, t.x.insist
	}
	c.logbuf = record.AppendRetry(c.logbuf, c.nextRecord(), &r)
	c.logged(at, laterCookie(t))
}

// logObject records an object that is not resolved by its task's Done: a put, an early seal,
// a stream's item.
func (c *Core) logObject(o *objRec, res *wire.Result, attempt uint32) {
	at := len(c.logbuf)
	c.logbuf = record.AppendObject(c.logbuf, c.nextRecord(), o.id, attempt, res)
	c.logged(at, c.furtherCookie(o))
}

// furtherCookie is where the position of a record about an object goes.
func (c *Core) furtherCookie(o *objRec) *uint64 {
	if o.cookie == 0 && o.flags&objLogged == 0 {
		o.flags |= objLogged
		return &o.cookie
	}
	return c.objectCookie(o)
}

// objectCookie is where the position of one more record about an object goes.
func (c *Core) objectCookie(o *objRec) *uint64 {
	if o.rec != nil {
		return laterCookie(o.rec)
	}
	ck := new(uint64)
	c.putCookies[o.id] = append(c.putCookies[o.id], ck)
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
func (c *Core) logClosed(t *taskRec) {
	if t.live > 0 || !t.state.Terminal() {
		at := len(c.logbuf)
		c.logbuf = record.AppendClosed(c.logbuf, c.nextRecord(), t.id())
		c.logged(at, laterCookie(t))
	}
}

func (c *Core) logActor(a *actorRec) {
	at := len(c.logbuf)
	r := record.Actor{Actor: a.id, State: a.state, Restarts: a.restarts, Resets: a.resets, Named: a.claimed, Err: a.cause, Stop: a.stop != nil, Hurt: a.hurt}
	if a.lease != nil {
		r.Lease, r.Worker = a.lease.id, a.lease.worker.id
	}
	if a.alias != nil {
		r.Alias = a.alias.id
	}
	c.logbuf = record.AppendActor(c.logbuf, c.nextRecord(), &r)
	c.logged(at, laterCookie(a.rec))
}
