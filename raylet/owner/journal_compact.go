package owner

import (
	"cmp"
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/owner/record"
	"mobula/wire"
)

// What the log's upkeep needs to know. It asks between two steps.

// Relocate decides on a live record at the log's tail. It returns where the record's position is kept, so that the log can append the record again and
// write the new position there; nil: the record is not needed.
func (c *Core) Relocate(cookie uint64, rec []byte) *uint64 {
	r, seq, err := record.Parse(rec)
	if err != nil {
		return nil
	}
	switch r := r.(type) {
	case *record.Options:
		return among(cookie, c.optCookies[r.No])
	case *record.Submit:
		return c.placeOf(cookie, r.Spec.ID)
	case *record.Done:
		return c.placeOf(cookie, r.Done.Task)
	case *record.Retry:
		return c.placeOf(cookie, r.Task)
	case *record.Closed:
		return c.placeOf(cookie, r.Task)
	case *record.Actor:
		return c.placeOf(cookie, ids.TaskID(r.Actor))
	case *record.Object:
		return c.placeOfObject(cookie, r.ID)
	case *record.Packed:
		return c.placeOfObject(cookie, r.ID)
	case *record.Borrower:
		return among(cookie, c.peers.borrowers[r.Job])
	case *record.Forget:
		tombs := c.tombs.All()
		if i, ok := slices.BinarySearchFunc(tombs, seq, func(t tomb, seq uint64) int { return cmp.Compare(t.seq, seq) }); ok {
			return among(cookie, tombs[i].at)
		}
	}
	return nil
}

// among gives the place that has a position.
func among(cookie uint64, places ...*uint64) *uint64 {
	for _, p := range places {
		if p != nil && *p == cookie {
			return p
		}
	}
	return nil
}

func (c *Core) placeOf(cookie uint64, id ids.TaskID) *uint64 {
	t := c.tasks.task(id)
	if t == nil {
		return nil
	}
	if p := among(cookie, &t.cookie, &t.doneAt); p != nil {
		return p
	}
	if t.isCreation() && t.actor.loggedAt == cookie {
		return &t.actor.loggedAt
	}
	if t.x == nil {
		return nil
	}
	return cmp.Or(among(cookie, &t.x.retryAt, &t.x.closedAt), among(cookie, t.x.ends...))
}

func (c *Core) placeOfObject(cookie uint64, id ids.ObjectID) *uint64 {
	o := c.object(id)
	if o == nil {
		return nil
	}
	return among(cookie, &o.cookie, c.packedAt[id])
}

// tomb is a forget record that names what a driver made, and may send again to the node's next life.
type tomb struct {
	at   *uint64  // its position; zero where its append failed
	seq  uint64   // its number
	sent sentOnce // by the driver, before it
}

// sentOnce counts what a driver has sent that it may send again.
type sentOnce struct {
	messages, bytes int64
	last            int64 // bytes of the last message, which are not in bytes
}

// flushLapsed emits the forget records that lapse: no driver will send again what they name, so they are needed only while the log has the records before
// them.
func (c *Core) flushLapsed() {
	for c.tombs.Len() > 0 && !c.recovering && (c.clients.drivers == 0 || c.sentOften(c.tombs.Front().sent)) {
		c.lapsed = append(c.lapsed, c.tombs.Pop().at)
	}
	if len(c.lapsed) > 0 && !c.ended {
		c.effects = append(c.effects, Effect{Kind: LogLapse, Cookies: &c.lapsed})
	}
}

// sentOften tells whether a driver has sent so much since that it does not send again what was forgotten then. It keeps its last messages, and all of which it
// does not know that they were handled: before the last one, that was less than the credit. A Python driver goes by whole frames, of as much each at most.
func (j *journal) sentOften(then sentOnce) bool {
	return j.sent.messages-then.messages >= wire.Replayed && (j.cfg.CreditWindow <= 0 || j.sent.bytes-then.bytes-then.last >= 2*j.cfg.CreditWindow)
}

// noteSent counts what a driver sends and may send again to the node's next life. What comes while a rebuilt core waits for its holdings is what it sends again
// to this one.
func (j *journal) noteSent(cl *clientRec, cost int64) {
	if cl.role == wire.RoleDriver && !j.recovering {
		j.sent = sentOnce{messages: j.sent.messages + 1, bytes: j.sent.bytes + j.sent.last, last: cost}
	}
}

// noteMaker marks the record of a put, or of a task's first return, that a driver made.
func (o *objRec) noteMaker(cl *clientRec) {
	if cl.role == wire.RoleDriver {
		o.flags |= objOfDriver
	}
}

// forget takes note that a put, or the task of a first return, is forgotten in this step.
func (j *journal) forget(id ids.ObjectID, o *objRec) {
	j.forgot = append(j.forgot, id)
	j.forgotOfDriver = j.forgotOfDriver || o.flags&objOfDriver != 0
}

// logForget records what the step forgot.
func (j *journal) logForget() {
	ofDriver := j.forgotOfDriver
	j.forgotOfDriver = false
	if j.cfg.VolatileLog || j.ended {
		return
	}
	at := len(j.logbuf)
	seq := j.nextRecord()
	j.logbuf = record.AppendForget(j.logbuf, seq, j.forgot)
	ck := new(uint64)
	if ofDriver {
		j.tombs.Push(tomb{at: ck, seq: seq, sent: j.sent})
	} else {
		j.lapsed = append(j.lapsed, ck)
	}
	j.logged(at, ck)
}
