package owner

import (
	"fmt"
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
	v := &validator{c: c, tasks: make(map[ids.ObjectID]uint32), objs: make(map[ids.ObjectID]uint32), lineage: make(map[ids.ObjectID]uint32),
		handles: make(map[*clientRec]int), onLane: make(map[*taskRec]int)}
	for _, check := range []func() error{v.leases, v.countTasks, v.countObjects, v.objects, v.clients, v.promises, v.lineageList, v.collections, v.recycled} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

type validator struct {
	c                    *Core
	tasks, objs, lineage map[ids.ObjectID]uint32
	handles              map[*clientRec]int
	onLane               map[*taskRec]int
}

func (v *validator) leases() error {
	for id, l := range v.c.leases.byID {
		if l.id != id || l.state == lease.None || l.state == lease.Ended {
			return fmt.Errorf("lease %v is in the table as %v, %v", id, l.id, l.state)
		}
		if (l.actor != nil) != (l.actor != nil && l.actor.lease == l) {
			return fmt.Errorf("lease %v is of actor %v, which has another", id, l.actor.id)
		}
		for _, t := range l.lane.all() {
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
	}
	return nil
}

func (v *validator) countTasks() error {
	c := v.c
	var byState [16]int
	specs, streams := int64(0), 0
	for id, t := range c.tasks.all() {
		if t.nret == wire.Streaming {
			streams++
		}
		byState[t.state]++
		if t.id() != id || t.flags&taskReaped != 0 {
			return fmt.Errorf("task %v is in the table as %v, reaped %v", id, t.id(), t.flags&taskReaped != 0)
		}
		if err := v.place(t); err != nil {
			return err
		}
		if n := v.live(t); n != t.live {
			return fmt.Errorf("task %v counts %d live returns, there are %d", id, t.live, n)
		}
		if t.state.Terminal() && t.live == 0 && (!t.isCreation() || t.actor.over()) && !c.recovering {
			return fmt.Errorf("task %v has ended, nothing refers to it, and it is still there", id)
		}
		if t.spec == nil {
			continue
		}
		specs += wire.CostOfSpec(t.spec)
		if t.flags&taskHolds != 0 {
			v.refs(t.spec, v.tasks)
		}
		if t.flags&taskLineage != 0 {
			v.refs(t.spec, v.lineage)
		}
		if t.state.Terminal() && t.flags&taskHolds != 0 && !t.isCreation() {
			return fmt.Errorf("task %v has ended and holds its arguments", id)
		}
		if !t.state.Terminal() && t.flags&taskHolds == 0 {
			return fmt.Errorf("task %v is %v and does not hold its arguments", id, t.state)
		}
	}
	if streams != c.streamCount {
		return fmt.Errorf("streams: counted %d, are %d", c.streamCount, streams)
	}
	if byState != c.byState {
		return fmt.Errorf("tasks by state: counted %v, are %v", c.byState, byState)
	}
	return nil
}

// place checks that a task is where its state says.
func (v *validator) place(t *taskRec) error {
	c := v.c
	want := 0
	if t.lease != nil {
		want = 1
	}
	if v.onLane[t] != want {
		return fmt.Errorf("task %v (%v) is on %d lanes, has lease %v", t.id(), t.state, v.onLane[t], t.lease)
	}
	if t.lease != nil && c.leases.byID[t.lease.id] != t.lease {
		return fmt.Errorf("task %v (%v) has the lease %v, which is over", t.id(), t.state, t.lease.id)
	}
	switch t.state {
	case task.PendingNode:
		k := t.class
		if t.flags&taskSolo != 0 {
			k = t.x.solo
		}
		if t.in != &k.ready {
			return fmt.Errorf("task %v is %v and not in its class's queue", t.id(), t.state)
		}
	case task.PendingActor:
		if t.in == nil {
			return fmt.Errorf("task %v is %v and in no queue", t.id(), t.state)
		}
	case task.PendingArgs:
		if t.deps == 0 && t.flags&(taskWaitsName|taskTurn) == 0 && !t.isCall() && t.in == nil {
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

func (v *validator) live(t *taskRec) uint32 {
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

func (v *validator) refs(spec *wire.TaskSpec, into map[ids.ObjectID]uint32) {
	v.c.eachRef(spec, func(_ *objects, o *objRec) { into[o.id]++ })
}

func (v *validator) countObjects() error {
	v.c.eachInside(func(refs []ids.ObjectID) {
		for _, id := range refs {
			v.objs[id]++
		}
	})
	v.c.eachObject(func(o *objRec) {
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
	return nil
}

func (v *validator) objects() (err error) {
	v.c.eachObject(func(o *objRec) {
		if e := v.object(o); e != nil && err == nil {
			err = e
		}
	})
	return err
}

func (v *validator) object(o *objRec) error {
	c := v.c
	if o.tasks != v.tasks[o.id] || o.objs != v.objs[o.id] || o.lineage != v.lineage[o.id] {
		return fmt.Errorf("object %v counts %d tasks, %d objects, %d lineage; there are %d, %d, %d",
			o.id, o.tasks, o.objs, o.lineage, v.tasks[o.id], v.objs[o.id], v.lineage[o.id])
	}
	if o.flags&objGet != 0 && o.holder == nil {
		return fmt.Errorf("object %v: its first holder waits for it, and there is none", o.id)
	}
	if c.object(o.id) != o {
		return fmt.Errorf("object %v is not found by its id", o.id)
	}
	if o.state.Resolved() != (o.res != nil) {
		return fmt.Errorf("object %v is %v, has a result: %v", o.id, o.state, o.res != nil)
	}
	packing := o.state == object.Inline && o.flags&objPacking != 0 && o.flags&objGet == 0 // tasks that take much wait for that
	if o.state != object.Pending && !packing && (o.waits != nil || o.flags&objGet != 0) {
		return fmt.Errorf("object %v is %v and waited for", o.id, o.state)
	}
	if !c.recovering && len(c.silent) == 0 && !o.held() && (o.flags&objForeign == 0 || o.waits == nil) {
		if o.state == object.Stored && o.flags&objPacked == 0 || o.state.Resolved() && o.lineage == 0 {
			return fmt.Errorf("object %v is %v and nothing refers to it", o.id, o.state)
		}
		if asked := o.flags&objPromised != 0 && (o.waits != nil || c.promises.open[o.id].endOfCall(o)); o.rec == nil && o.lineage == 0 && !c.unpacking(o) && !asked {
			return fmt.Errorf("object %v has no reference and is still there", o.id)
		}
	}
	if t := o.rec; t != nil && o.state == object.Pending && t.state.Terminal() && t.nret != wire.Streaming && !c.unpacking(o) {
		return fmt.Errorf("object %v is %v and its task %v", o.id, o.state, t.state)
	}
	return nil
}

func (v *validator) clients() error {
	for _, cl := range v.c.clients.byID {
		if cl.handles != v.handles[cl] {
			return fmt.Errorf("client %v counts %d handles, holds %d", cl.id, cl.handles, v.handles[cl])
		}
		if cl.gone && cl.handles > 0 && !v.c.ended && !slices.ContainsFunc(v.c.sweeps, func(s *sweep) bool { return s.client == cl }) {
			return fmt.Errorf("client %v is gone and holds %d handles", cl.id, cl.handles)
		}
	}
	return nil
}

func (v *validator) promises() error {
	c := v.c
	kept := make(map[*taskRec]int)
	for id, p := range c.promises.open {
		kept[p.by]++
		if o := c.object(id); o == nil || o.flags&objPromised == 0 {
			return fmt.Errorf("object %v is promised by %v and is not there, or does not know", id, p.by.id())
		}
		if promised(p.by, p.n) != id || p.by.state.Terminal() || c.tasks.task(p.by.id()) != p.by {
			return fmt.Errorf("object %v is promised by %v, which is %v", id, p.by.id(), p.by.state)
		}
	}
	for _, t := range c.tasks.all() {
		if t.x != nil && len(t.x.promises) != kept[t]+t.x.unneeded {
			return fmt.Errorf("task %v promised %d results: %d are to come, %d were given up", t.id(), len(t.x.promises), kept[t], t.x.unneeded)
		}
	}
	marked := 0
	c.eachObject(func(o *objRec) {
		if o.flags&objPromised != 0 {
			marked++
		}
	})
	if marked != len(c.promises.open) {
		return fmt.Errorf("%d objects are marked as promised, %d are", marked, len(c.promises.open))
	}
	return nil
}

func (v *validator) lineageList() error {
	n, bytes := 0, int64(0)
	for t := v.c.lineage.kept.head; t != nil; t = t.next {
		n++
		bytes += wire.CostOfSpec(t.spec)
		if t.flags&taskLineage == 0 {
			return fmt.Errorf("task %v is in the lineage list and not kept", t.id())
		}
	}
	if n != v.c.lineage.kept.n || bytes != v.c.lineage.bytes {
		return fmt.Errorf("lineage counts %d tasks and %d bytes, there are %d and %d", v.c.lineage.kept.n, v.c.lineage.bytes, n, bytes)
	}
	return nil
}

func (v *validator) collections() error {
	c := v.c
	inline, specs, returns := int64(0), int64(0), int64(0)
	c.eachObject(func(o *objRec) {
		if o.state == object.Inline && o.flags&objForeign == 0 {
			inline += sizeOf(o.res)
		}
	})
	for _, t := range c.tasks.all() {
		if t.spec != nil {
			specs += wire.CostOfSpec(t.spec)
		}
		if t.x != nil {
			returns += int64(len(t.x.more)) * returnCost
		}
	}
	if returns != c.budget.returns {
		return fmt.Errorf("records of returns: counted %d bytes, are %d", c.budget.returns, returns)
	}
	if inline != c.budget.inline {
		return fmt.Errorf("inline values: counted %d bytes, are %d", c.budget.inline, inline)
	}
	if specs != c.budget.specs {
		return fmt.Errorf("specs: counted %d bytes, are %d", c.budget.specs, specs)
	}
	sent := int64(0)
	for id, cl := range c.clients.byID {
		u := &cl.unread
		if sent += u.bytes; u.fresh > u.bytes || len(u.later) > 0 && u.fresh >= u.bytes {
			return fmt.Errorf("client %v: %d answers wait, %d bytes are unread, and of %d of these no receipt was asked", id, len(u.later), u.bytes, u.fresh)
		}
	}
	if sent != c.budget.unread {
		return fmt.Errorf("unread answers: counted %d bytes, are %d", c.budget.unread, sent)
	}
	wanting := 0
	for id, k := range c.classes.byID {
		live := 0
		for _, t := range c.tasks.all() {
			if t.flags&taskCounted != 0 && t.class == k {
				live++
			}
		}
		if k.id != id || k.live != live {
			return fmt.Errorf("class %d counts %d live tasks, there are %d", id, k.live, live)
		}
		if k.wants {
			wanting++
		}
		if k.wants && !k.dirty && k.ready.n == 0 {
			return fmt.Errorf("the scheduler was not told that nothing of class %d waits any more", id)
		}
	}
	if wanting != c.wanting {
		return fmt.Errorf("%d classes wait for leases, counted are %d", wanting, c.wanting)
	}
	for _, a := range c.actors.byID {
		pending := 0
		for _, t := range c.tasks.all() {
			if t.actor == a && t.isCall() && !t.state.Terminal() {
				pending++
			}
		}
		if a.pending != pending {
			return fmt.Errorf("actor %v counts %d pending calls, there are %d", a.id, a.pending, pending)
		}
	}
	for id := range c.kids {
		if t := c.tasks.task(id); t == nil || t.state.Terminal() {
			return fmt.Errorf("task %v has ended and its children are kept", id)
		}
	}
	return nil
}
