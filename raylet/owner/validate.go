package owner

import (
	"fmt"
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// Validate recounts everything that the core counts, and gives the first disagreement. It
// looks at every record: for tests, between two steps.
func (c *Core) Validate() error {
	v := &recount{tasks: make(map[ids.ObjectID]uint32), objs: make(map[ids.ObjectID]uint32), lineage: make(map[ids.ObjectID]uint32),
		handles: make(map[*clientRec]int), onLane: make(map[*taskRec]int), readBack: c.memory.unpacking,
		endOfCall: func(o *objRec) bool { return c.promises.open[o.id].endOfCall(o) }}
	c.eachContainer(func(refs []ids.ObjectID) {
		for _, id := range refs {
			v.objs[id]++
		}
	})
	for _, check := range []func(*recount) error{
		c.leases.validate, c.life.validate, c.copies.validate, c.objects.validate, c.job.validate, c.promises.validate, c.lineage.validate, c.memory.validate, c.gets.validate,
		c.actors.validate, c.straight.validate, c.deadlocks.validate, c.validateRecycled,
	} {
		if err := check(v); err != nil {
			return err
		}
	}
	return nil
}

// recount is what the parts count anew, each for those that are asked after it.
type recount struct {
	tasks, objs, lineage map[ids.ObjectID]uint32 // by who uses an object
	handles              map[*clientRec]int
	onLane               map[*taskRec]int   // tasks on the lanes of leases
	readBack             func(*objRec) bool // its value is on its way from the log
	endOfCall            func(*objRec) bool // it is promised, as the end of a call
}

// validate checks that only stored objects have copies, and each node one place in the lists.
func (cp *copies) validate(*recount) error {
	known := make(map[ids.Home]int)
	for id, set := range cp.byID {
		nodes := slices.Concat(set.on, set.told)
		slices.Sort(nodes)
		if set.o != cp.up.object(id) || set.o.state != object.Stored {
			return fmt.Errorf("copies of object %v are known, which is %v", id, set.o.state)
		}
		if n := len(nodes); len(set.on) == 0 || len(slices.Compact(nodes)) != n {
			return fmt.Errorf("copies of object %v are on %v, and %v know of it", id, set.on, set.told)
		}
		for _, node := range nodes {
			known[node]++
		}
	}
	if delete(known, cp.home()); !maps.Equal(known, cp.known) {
		return fmt.Errorf("other nodes know of %v objects, counted %v", known, cp.known)
	}
	return nil
}

// validate checks that a task is on the lane of the lease that it has, and what is wanted of the scheduler.
func (ls *leases) validate(v *recount) error {
	for id, l := range ls.byID {
		if l.id != id || l.state == lease.None || l.state == lease.Ended {
			return fmt.Errorf("lease %v is in the table as %v, %v", id, l.id, l.state)
		}
		if (l.actor != nil) != (l.actor != nil && l.actor.lease == l) {
			return fmt.Errorf("lease %v is of actor %v, which has another", id, l.actor.id)
		}
		for _, t := range l.lane.All() {
			v.onLane[t]++
			if t.lease != l || !t.state.OnWorker() && !t.state.Terminal() {
				return fmt.Errorf("task %v is on the lane of lease %v and %v", t.id(), id, t.state)
			}
		}
		for _, t := range l.fetching {
			v.onLane[t]++
			if t.lease != l || t.state != task.PendingFetch && t.state != task.PendingStore {
				return fmt.Errorf("task %v has arguments pinned for lease %v and is %v", t.id(), id, t.state)
			}
		}
		if len(l.out) > 0 {
			return fmt.Errorf("lease %v has %d tasks that were not sent", id, len(l.out))
		}
		if k := l.class; k != nil && (l.takes() && l.load() == 0) != (l.in == &k.idle) || l.in != nil && (!l.takes() || l.in != &k.idle && l.in != &k.spare) {
			return fmt.Errorf("lease %v is %v with %d tasks, and in the wrong list of those with room", id, l.state, l.load())
		}
	}
	wanting := 0
	for id, k := range ls.classes.byID {
		live, queued := 0, int64(0)
		for t := k.ready.head; t != nil; t = t.next {
			queued += t.specCost()
		}
		if queued != k.ready.bytes {
			return fmt.Errorf("class %d counts %d bytes of queued specs, there are %d", id, k.ready.bytes, queued)
		}
		for _, t := range ls.tasks.all() {
			if t.flags&taskCounted != 0 && t.class == k {
				live++
			}
		}
		if k.id != id || k.live != live {
			return fmt.Errorf("class %d counts %d live tasks, there are %d", id, k.live, live)
		}
		if k.wantSent {
			wanting++
		}
		if k.wantSent && !k.dirty && k.ready.n == 0 {
			return fmt.Errorf("the scheduler was not told that nothing of class %d waits any more", id)
		}
	}
	if wanting != ls.wanting {
		return fmt.Errorf("%d classes wait for leases, counted are %d", wanting, ls.wanting)
	}
	return nil
}

// validate checks that every task is where its state says, and counts the objects that tasks use.
func (lf *life) validate(v *recount) error {
	var byState [16]int
	specs, streams := int64(0), 0
	for id, t := range lf.tasks.all() {
		if t.nret == wire.Streaming {
			streams++
		}
		byState[t.state]++
		if t.id() != id || t.flags&taskReaped != 0 {
			return fmt.Errorf("task %v is in the table as %v, reaped %v", id, t.id(), t.flags&taskReaped != 0)
		}
		if err := lf.validatePlace(v, t); err != nil {
			return err
		}
		if n := t.countLive(); n != t.live {
			return fmt.Errorf("task %v counts %d live returns, there are %d", id, t.live, n)
		}
		if t.state.Terminal() && t.live == 0 && (!t.isCreation() || t.actor.ended()) && !lf.recovering {
			return fmt.Errorf("task %v has ended, nothing refers to it, and it is still there", id)
		}
		if t.spec == nil {
			continue
		}
		specs += wire.CostOfSpec(t.spec)
		if t.flags&taskHolds != 0 {
			lf.objects.eachRef(t.spec, func(_ *objects, o *objRec) { v.tasks[o.id]++ })
		}
		if t.flags&taskLineage != 0 {
			lf.objects.eachRef(t.spec, func(_ *objects, o *objRec) { v.lineage[o.id]++ })
		}
		if t.state.Terminal() && t.flags&taskHolds != 0 && !t.isCreation() {
			return fmt.Errorf("task %v has ended and holds its arguments", id)
		}
		if !t.state.Terminal() && t.flags&taskHolds == 0 {
			return fmt.Errorf("task %v is %v and does not hold its arguments", id, t.state)
		}
	}
	if streams != lf.tasks.streamCount {
		return fmt.Errorf("streams: counted %d, are %d", lf.tasks.streamCount, streams)
	}
	if byState != lf.tasks.byState {
		return fmt.Errorf("tasks by state: counted %v, are %v", lf.tasks.byState, byState)
	}
	for id := range lf.tasks.children {
		if t := lf.tasks.task(id); (t == nil || t.state.Terminal()) && !lf.tasks.isMaking(id) && !lf.recovering {
			return fmt.Errorf("task %v has ended and its children are kept", id)
		}
	}
	return nil
}

// validatePlace checks that a task is where its state says.
func (lf *life) validatePlace(v *recount, t *taskRec) error {
	want := 0
	if t.lease != nil {
		want = 1
	}
	if v.onLane[t] != want {
		return fmt.Errorf("task %v (%v) is on %d lanes, has lease %v", t.id(), t.state, v.onLane[t], t.lease)
	}
	if t.lease != nil && lf.leases.byID[t.lease.id] != t.lease {
		return fmt.Errorf("task %v (%v) has the lease %v, which is over", t.id(), t.state, t.lease.id)
	}
	switch t.state {
	case task.PendingNode:
		k := t.class
		if t.flags&taskIsolated != 0 {
			k = t.x.isolatedClass
		}
		if t.in != &k.ready {
			return fmt.Errorf("task %v is %v and not in its class's queue", t.id(), t.state)
		}
	case task.PendingActor:
		if t.in == nil {
			return fmt.Errorf("task %v is %v and in no queue", t.id(), t.state)
		}
	case task.PendingArgs:
		if t.deps == 0 && !slices.Contains(lf.unsure, t) && t.flags&(taskWaitsName|taskTurn) == 0 && !t.isCall() && t.in == nil {
			return fmt.Errorf("task %v is %v and waits for nothing", t.id(), t.state)
		}
	case task.Backoff:
		if t.x == nil || t.x.timer == nil {
			return fmt.Errorf("task %v is %v without a timer", t.id(), t.state)
		}
	case task.PendingFetch, task.PendingStore, task.Submitted, task.Running, task.RunningInGet:
		if t.lease == nil || t.in != nil {
			return fmt.Errorf("task %v is %v without a lease, or queued", t.id(), t.state)
		}
	}
	return nil
}

// countLive counts the returns and items of a task that are not dead.
func (t *taskRec) countLive() uint32 {
	n := uint32(0)
	t.eachReturn(func(o *objRec) {
		if o.flags&objDead == 0 {
			n++
		}
	})
	if t.nret == wire.Streaming && !t.x.stream.closed {
		n++
	}
	return n
}

// validate checks every object's counts and that it has a reason to be there, and counts the handles of clients.
func (os *objects) validate(v *recount) (err error) {
	os.eachObject(func(o *objRec) {
		if o.flags&objHeld != 0 {
			v.objs[o.id]++
		}
		if o.holder != nil {
			v.handles[o.holder]++
		}
		if o.more != nil {
			for _, cl := range *o.more {
				v.handles[cl]++
			}
		}
	})
	os.eachObject(func(o *objRec) {
		if e := os.validateOne(v, o); e != nil && err == nil {
			err = e
		}
	})
	return err
}

func (os *objects) validateOne(v *recount, o *objRec) error {
	if o.tasks != v.tasks[o.id] || o.objs != v.objs[o.id] || o.lineage != v.lineage[o.id] {
		return fmt.Errorf("object %v counts %d tasks, %d objects, %d lineage; there are %d, %d, %d",
			o.id, o.tasks, o.objs, o.lineage, v.tasks[o.id], v.objs[o.id], v.lineage[o.id])
	}
	if o.flags&objGet != 0 && o.holder == nil {
		return fmt.Errorf("object %v: its first holder waits for it, and there is none", o.id)
	}
	if os.object(o.id) != o {
		return fmt.Errorf("object %v is not found by its id", o.id)
	}
	if o.state.Resolved() != (o.res != nil) {
		return fmt.Errorf("object %v is %v, has a result: %v", o.id, o.state, o.res != nil)
	}
	packing := o.state == object.Inline && o.flags&objPacking != 0 && o.flags&objGet == 0 // tasks that take much wait for that
	if o.state != object.Pending && !packing && (o.waits != nil || o.flags&objGet != 0) {
		return fmt.Errorf("object %v is %v and waited for", o.id, o.state)
	}
	size, kept := os.keptValues.size[o.id]
	if kept && o.state == object.Stored && size != int64(o.res.Size) {
		return fmt.Errorf("object %v is %v, and %d bytes of it are kept for lineage", o.id, o.state, size)
	}
	stays := o.flags&objBorrowed != 0 && os.borrowStays(o)
	if !os.recovering && len(os.silent) == 0 && !o.held() && !stays {
		if o.state == object.Stored && o.flags&objPacked == 0 && (!kept || o.lineage == 0) || o.state.Resolved() && o.lineage == 0 {
			return fmt.Errorf("object %v is %v and nothing refers to it", o.id, o.state)
		}
		if asked := o.flags&objPromised != 0 && (o.waits != nil || v.endOfCall(o)); o.rec == nil && o.lineage == 0 && !v.readBack(o) && !asked {
			return fmt.Errorf("object %v has no reference and is still there", o.id)
		}
	}
	if t := o.rec; t != nil && o.state == object.Pending && t.state.Terminal() && t.nret != wire.Streaming && !v.readBack(o) {
		return fmt.Errorf("object %v is %v and its task %v", o.id, o.state, t.state)
	}
	return nil
}

// validate checks what clients hold, and that one which is gone is being swept.
func (jb *job) validate(v *recount) error {
	for _, cl := range jb.clients.byID {
		if cl.handles != v.handles[cl] {
			return fmt.Errorf("client %v counts %d handles, holds %d", cl.id, cl.handles, v.handles[cl])
		}
		if cl.gone && cl.handles > 0 && !jb.ended && !slices.ContainsFunc(jb.sweeps.All(), func(s *sweep) bool { return s.client == cl }) {
			return fmt.Errorf("client %v is gone and holds %d handles", cl.id, cl.handles)
		}
	}
	return nil
}

// validate checks that what is promised is there and knows it.
func (ps *promises) validate(*recount) error {
	kept := make(map[*taskRec]int)
	for id, p := range ps.open {
		kept[p.by]++
		if o := ps.objects.object(id); o == nil || o.flags&objPromised == 0 {
			return fmt.Errorf("object %v is promised by %v and is not there, or does not know", id, p.by.id())
		}
		if promised(p.by, p.n) != id || p.by.state.Terminal() || ps.objects.tasks.task(p.by.id()) != p.by {
			return fmt.Errorf("object %v is promised by %v, which is %v", id, p.by.id(), p.by.state)
		}
	}
	for _, t := range ps.objects.tasks.all() {
		if t.x != nil && len(t.x.promises) != kept[t]+t.x.unneeded {
			return fmt.Errorf("task %v promised %d results: %d are to come, %d were given up", t.id(), len(t.x.promises), kept[t], t.x.unneeded)
		}
	}
	marked := 0
	ps.objects.eachObject(func(o *objRec) {
		if o.flags&objPromised != 0 {
			marked++
		}
	})
	if marked != len(ps.open) {
		return fmt.Errorf("%d objects are marked as promised, %d are", marked, len(ps.open))
	}
	return nil
}

// validate checks the list of what is kept.
func (ln *lineage) validate(*recount) error {
	n, bytes := 0, int64(0)
	for t := ln.kept.head; t != nil; t = t.next {
		n++
		bytes += t.fullCost()
		if t.flags&taskLineage == 0 {
			return fmt.Errorf("task %v is in the lineage list and not kept", t.id())
		}
	}
	if n != ln.kept.n || bytes != ln.bytes {
		return fmt.Errorf("lineage counts %d tasks and %d bytes, there are %d and %d", ln.kept.n, ln.bytes, n, bytes)
	}
	return nil
}

// validate checks what counts in the budget.
func (ms *memory) validate(*recount) error {
	inline, specs, returns := int64(0), int64(0), int64(0)
	ms.objects.eachObject(func(o *objRec) {
		if o.state == object.Inline && o.flags&objBorrowed == 0 {
			inline += sizeOf(o.res)
		}
	})
	for _, t := range ms.tasks.all() {
		if t.spec != nil {
			specs += wire.CostOfSpec(t.spec)
		}
		if t.x != nil {
			returns += int64(len(t.x.more)) * returnCost
		}
	}
	if returns != ms.objects.budget.returns {
		return fmt.Errorf("records of returns: counted %d bytes, are %d", ms.objects.budget.returns, returns)
	}
	if inline != ms.objects.budget.inline {
		return fmt.Errorf("inline values: counted %d bytes, are %d", ms.objects.budget.inline, inline)
	}
	if specs != ms.objects.budget.specs {
		return fmt.Errorf("specs: counted %d bytes, are %d", ms.objects.budget.specs, specs)
	}
	return nil
}

// validate checks what clients have not read.
func (gs *gets) validate(*recount) error {
	sent := int64(0)
	for id, cl := range gs.clients.byID {
		u := &cl.window
		if sent += u.bytes; u.fresh > u.bytes || len(u.later) > 0 && u.fresh >= u.bytes {
			return fmt.Errorf("client %v: %d answers wait, %d bytes are unread, and of %d of these no receipt was asked", id, len(u.later), u.bytes, u.fresh)
		}
	}
	if sent != gs.objects.budget.unread {
		return fmt.Errorf("unread answers: counted %d bytes, are %d", gs.objects.budget.unread, sent)
	}
	return nil
}

// validate checks how many calls each actor has.
func (as *actors) validate(*recount) error {
	for _, a := range as.byID {
		pending := 0
		for _, t := range as.tasks.all() {
			if t.actor == a && t.isCall() && !t.state.Terminal() {
				pending++
			}
		}
		if a.pending != pending {
			return fmt.Errorf("actor %v counts %d pending calls, there are %d", a.id, a.pending, pending)
		}
	}
	return nil
}
