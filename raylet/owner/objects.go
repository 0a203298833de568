package owner

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// object finds an object, or nil.
func (os *objects) object(id ids.ObjectID) *objRec {
	if id.Index&ids.PutBit != 0 {
		if o := os.puts.find(&id); o != nil {
			return o
		}
	} else if t := os.tasks.task(id.Task); t != nil {
		if o := t.ret(id.Index); o != nil {
			return o
		}
	}
	if len(os.placeholders) == 0 {
		return nil
	}
	return os.placeholders[id]
}

func (os *objects) moveObject(o *objRec, ev object.Event) {
	to, ok := object.Next(o.state, ev)
	if !ok {
		panic("owner: object " + o.id.String() + " is " + o.state.String() + " and cannot " + ev.String())
	}
	o.state = to
}

// resolve gives an object its outcome and tells everyone who waits for it.
func (os *objects) resolve(o *objRec, res *wire.Result, ev object.Event) {
	os.moveObject(o, ev)
	o.res = res
	os.retainContained(containedIn(res))
	if ev == object.SetInline {
		os.budget.add(o)
	}
	if fetch, ok := o.takeGet(); ok {
		os.up.answer(o.holder, o, fetch)
	}
	if w := o.waits; w != nil {
		o.waits = nil
		for _, g := range w.gets {
			os.up.answer(g.client, o, g.fetch)
		}
		os.wake(w)
		os.recycle(w)
	}
	os.queueRecount(o)
}

// wake makes tasks ready that waited for this only.
func (os *objects) wake(w *waits) {
	for _, tw := range w.tasks {
		if tw.t.gen == tw.gen && tw.t.state == task.PendingArgs {
			if tw.t.deps--; tw.t.deps == 0 {
				os.tasks.readyQ = append(os.tasks.readyQ, tw.t)
			}
		}
	}
}

func (os *objects) waitsOf(o *objRec) *waits {
	if o.waits == nil {
		if n := len(os.waitsFree); n > 0 {
			o.waits, os.waitsFree = os.waitsFree[n-1], os.waitsFree[:n-1]
		} else {
			o.waits = new(waits)
		}
	}
	return o.waits
}

const keepWaits = 4096 // waits kept to be used again

func (os *objects) recycle(w *waits) {
	if len(os.waitsFree) < keepWaits && cap(w.tasks)+cap(w.gets) <= 64 {
		clear(w.tasks)
		clear(w.gets)
		w.tasks, w.gets = w.tasks[:0], w.gets[:0]
		os.waitsFree = append(os.waitsFree, w)
	}
}

// placeholder gives the record of an object that is referred to but unknown.
func (os *objects) placeholder(id ids.ObjectID) *objRec {
	if os.ofOtherJob(id) {
		return os.borrow(id)
	}
	o := &objRec{id: id, state: object.Failed, flags: objPlaceholder}
	o.res = &wire.Result{Kind: wire.ResultError, Err: os.unknown(id)}
	os.placeholders[id] = o
	return o
}

func (os *objects) unknown(id ids.ObjectID) *errs.Error {
	if err := os.whyDropped(id); err != nil {
		return err
	}
	if t := os.tasks.task(id.Task); t != nil && !id.IsPut() && t.ret0.state == object.Failed { // one return stands for more than it may have
		return t.ret0.res.Err
	}
	return errs.New(errs.CodeObjectFreed, "object %v: its last reference was released; hold a reference for as long as it is used", id)
}

// fillPlaceholders lets the returns of a task that comes anew take over what was counted for
// their names while they were unknown.
func (os *objects) fillPlaceholders(t *taskRec) {
	for i := range uint32(max(t.nret, 0)) {
		o := t.ret(i)
		s := os.placeholders[o.id]
		if s == nil {
			continue
		}
		os.fillPlaceholder(o, s)
	}
}

// fillPlaceholder lets an object take over what was counted for its name.
func (os *objects) fillPlaceholder(o, s *objRec) {
	delete(os.placeholders, o.id)
	o.holder, o.more, o.tasks, o.objs, o.lineage = s.holder, s.more, s.tasks, s.objs, s.lineage
	s.holder, s.more, s.tasks, s.objs, s.lineage = nil, nil, 0, 0, 0
	if s.flags&objPromised != 0 { // somebody may wait for it already
		o.waits, s.waits = s.waits, nil
		o.flags |= s.flags & (objGet | objGetFetch | objPromised)
		s.flags &^= objPromised
		os.queueRecount(o) // as the placeholder may have been
	}
}

// eachObject calls f for every object there is a record of.
func (os *objects) eachObject(f func(*objRec)) {
	os.tasks.eachTask(func(t *taskRec) { t.eachReturn(f) })
	os.puts.each(f)
	for _, id := range slices.SortedFunc(maps.Keys(os.placeholders), ids.ObjectID.Compare) {
		f(os.placeholders[id])
	}
}
