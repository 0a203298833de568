package owner

import (
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// putValue makes an inline object. One that is known already, because its task runs again,
// stays as it is.
func (vs *values) putValue(cl *clientRec, m *wire.PutValue) {
	cost := wire.CostOfValue(&m.Value)
	vs.journal.noteSent(cl, cost)
	if vs.cfg.CreditWindow > 0 {
		vs.clients.spend(cl, cost)
	}
	if !m.ID.IsPut() {
		return // a name that only a task's return can have
	}
	o := vs.objects.object(m.ID)
	if o != nil && o.flags&objPlaceholder == 0 {
		vs.objects.giveHandle(cl, o)
		return
	}
	o = vs.newPut(m.ID)
	o.noteMaker(cl)
	vs.objects.giveHandle(cl, o)
	vs.stats.Puts++
	res := &wire.Result{Kind: wire.ResultInline, Value: m.Value, Size: uint64(len(m.Value.Data))}
	vs.journal.logObject(o, res, 0, vs.home())
	vs.objects.resolve(o, res, object.SetInline)
}

// newPut makes the record of a put and enters it. What was counted for its name while it was
// unknown goes over to it.
func (vs *values) newPut(id ids.ObjectID) *objRec {
	o := &objRec{id: id}
	if s := vs.objects.placeholders[id]; s != nil {
		vs.objects.fillPlaceholder(o, s)
	}
	vs.objects.puts.add(o)
	return o
}

// seal decides whether an extent that a client has written becomes the object. The first
// attempt wins; the store frees the others.
func (vs *values) seal(cl *clientRec, m *wire.Seal) {
	vs.journal.noteSent(cl, 0)
	o := vs.objects.object(m.ID)
	if o == nil || o.flags&objPlaceholder != 0 {
		o = vs.sealTarget(m.ID)
	}
	if o == nil || o.state != object.Pending || o.rec != nil && !vs.runs(cl, o.rec, m.Attempt) {
		if o != nil && o.state == object.Stored && o.attempt == m.Attempt {
			vs.toStoreAt(vs.nodeOf(cl), sealObject(cl, m)) // told again, or made again by an attempt that a lost core had not counted
		} else {
			vs.toStoreAt(vs.nodeOf(cl), objectstore.DropAttempt{ID: m.ID, Attempt: m.Attempt})
		}
		if o != nil && o.rec == nil {
			vs.objects.giveHandle(cl, o)
		}
		return
	}
	if o.rec == nil {
		o.noteMaker(cl)
		vs.objects.giveHandle(cl, o)
		vs.stats.Puts++
	}
	if o.rec != nil && o.rec.isElsewhere() {
		o.rec.start = m.Attempt // as who makes it counts
	}
	res := &wire.Result{Kind: wire.ResultStored, Value: wire.Value{Meta: m.Value.Meta, Refs: m.Value.Refs}, Size: m.Size}
	o.attempt = m.Attempt
	vs.journal.logObject(o, res, m.Attempt, vs.nodeOf(cl))
	vs.toStoreAt(vs.nodeOf(cl), sealObject(cl, m))
	vs.copies.made(o, vs.nodeOf(cl))
	vs.objects.resolve(o, res, object.SetStored)
}

func sealObject(cl *clientRec, m *wire.Seal) objectstore.SealObject {
	return objectstore.SealObject{Client: cl.id, ID: m.ID, Attempt: m.Attempt, Size: m.Size, Meta: m.Value.Meta}
}

// sealTarget makes the record of a put, or of a stream's item, that is sealed for the first
// time; nil if there can be none.
func (vs *values) sealTarget(id ids.ObjectID) *objRec {
	if id.IsPut() {
		return vs.newPut(id)
	}
	t := vs.tasks.task(id.Task)
	if t == nil || t.nret != wire.Streaming || t.state.Terminal() {
		return nil
	}
	return vs.up.newItem(t, id.Index)
}

// runs tells whether an attempt at a task is the one under way on a client. While it is not
// known what runs where, any may be.
func (vs *values) runs(cl *clientRec, t *taskRec, attempt uint32) bool {
	if t.state.Terminal() || t.isCreation() {
		return false
	}
	if t.isElsewhere() { // its result is too large for a message, or it is a stream
		return cl.straight && (t.nret != wire.Streaming || attempt == t.tries+1)
	}
	return vs.recovering || t.start == attempt && t.state.OnWorker() && t.lease.worker == cl
}

// accepted resolves one return, unless it was resolved before: one attempt is accepted an
// object.
func (vs *values) accepted(cl *clientRec, o *objRec, d *wire.Done, i int) {
	r := &d.Results[i]
	if o.state != object.Pending {
		if r.Kind == wire.ResultStored && (o.state != object.Stored || o.attempt != d.Attempt) {
			vs.toStoreAt(vs.nodeOf(cl), objectstore.DropAttempt{ID: o.id, Attempt: d.Attempt})
		}
		return
	}
	switch r.Kind {
	case wire.ResultInline:
		if len(d.Results) > 1 { // else the message's other values would live as long as this one
			own := *r
			r = &own
		}
		vs.objects.resolve(o, r, object.SetInline)
	case wire.ResultError:
		vs.objects.resolve(o, errorResult(r.Err), object.SetError)
	}
}

// dropResults frees what a stale attempt left in the store.
func (vs *values) dropResults(cl *clientRec, d *wire.Done) {
	for i := range d.Results {
		if d.Results[i].Kind != wire.ResultStored {
			continue
		}
		id := d.Task.Return(i)
		if o := vs.objects.object(id); o == nil || o.state != object.Stored || o.attempt != d.Attempt {
			vs.toStoreAt(vs.nodeOf(cl), objectstore.DropAttempt{ID: id, Attempt: d.Attempt})
		}
	}
}
