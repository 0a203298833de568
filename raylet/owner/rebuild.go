package owner

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/record"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// image is what the log says, before it is made into records.
type image struct {
	opts    map[uint32]*wire.TaskOptions
	optsAt  map[uint32]uint64
	tombs   []uint64
	dead    []uint64 // of what was forgotten, or replaced
	tasks   map[ids.TaskID]*taskImage
	order   []*taskImage // by submission
	objects map[ids.ObjectID]*objectImage
	objList []*objectImage
}

type taskImage struct {
	submit  *record.Submit
	cookie  uint64
	done    *record.Done
	doneAt  uint64
	retry   *record.Retry
	again   bool // charged after its end: it was being made again
	actor   *record.Actor
	further []uint64
	objects []*objectImage // its early seals, items and packed values
	closed  bool           // a stream that nobody reads
	gone    bool
	rec     *taskRec
}

type objectImage struct {
	record.Object
	cookie   uint64
	packed   *record.Packed
	packedAt uint64
	gone     bool
}

// Rebuild makes the core of a job from its log: the position and bytes of each record, in
// any order. The core keeps every event back until Restored came and each client
// told what it holds. The error names the record that cannot be read.
func Rebuild(cfg Config, records iter.Seq2[uint64, []byte]) (*Core, error) {
	im := &image{
		opts: make(map[uint32]*wire.TaskOptions), optsAt: make(map[uint32]uint64), tasks: make(map[ids.TaskID]*taskImage), objects: make(map[ids.ObjectID]*objectImage),
	}
	var all []numbered
	for cookie, b := range records {
		r, seq, err := record.Parse(b)
		if err != nil {
			return nil, fmt.Errorf("record at %d of job %v: %w", cookie, cfg.Job, err)
		}
		all = append(all, numbered{r, seq, cookie})
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.cookie, b.cookie)) })
	c := New(cfg)
	for i := range all {
		if i+1 < len(all) && all[i+1].seq == all[i].seq {
			im.dead = append(im.dead, all[i].cookie) // it was moved
		} else {
			im.add(all[i].cookie, all[i].r)
		}
		all[i].r = nil
	}
	if n := len(all); n > 0 {
		c.records = all[n-1].seq
	}
	c.lenient = true
	c.pastLeases = make(map[ids.LeaseID]struct{})
	c.pause = newRecovery()
	c.build(im)
	return c, nil
}

type numbered struct {
	r           record.Record
	seq, cookie uint64
}

func (im *image) task(id ids.TaskID) *taskImage {
	t := im.tasks[id]
	if t == nil {
		t = &taskImage{}
		im.tasks[id] = t
	}
	return t
}

func (im *image) add(cookie uint64, r record.Record) {
	switch r := r.(type) {
	case *record.Options:
		im.opts[r.No], im.optsAt[r.No] = r.Opts, cookie
	case *record.Submit:
		if t := im.tasks[r.Spec.ID]; t != nil && t.submit != nil { // its name was used before, and it was forgotten
			im.forget(ids.ObjectID{Task: r.Spec.ID, Index: record.WholeTask})
		}
		t := im.task(r.Spec.ID)
		t.submit, t.cookie = r, cookie
		im.order = append(im.order, t)
	case *record.Done:
		t := im.task(r.Done.Task)
		if t.done != nil {
			t.further = append(t.further, t.doneAt)
		}
		t.done, t.doneAt, t.again = r, cookie, false
	case *record.Retry:
		t := im.task(r.Task)
		t.retry, t.again = r, t.done != nil
		t.further = append(t.further, cookie)
	case *record.Closed:
		t := im.task(r.Task)
		t.closed = true
		t.further = append(t.further, cookie)
	case *record.Actor:
		t := im.task(ids.TaskID(r.Actor))
		t.actor = r
		t.further = append(t.further, cookie)
	case *record.Object:
		if old := im.objects[r.ID]; old != nil { // made again
			old.gone = true
			im.dead = append(im.dead, old.cookie, old.packedAt)
		}
		im.object(&objectImage{Object: *r, cookie: cookie})
	case *record.Packed:
		if o := im.objects[r.ID]; o != nil {
			o.packed, o.packedAt = r, cookie
		} else {
			o = &objectImage{packed: r, packedAt: cookie}
			o.ID = r.ID
			im.object(o)
		}
	case *record.Forget:
		im.tombs = append(im.tombs, cookie)
		for _, id := range r.IDs {
			im.forget(id)
		}
	}
}

func (im *image) forget(id ids.ObjectID) {
	if id.Index != record.WholeTask {
		im.forgetObject(id)
		return
	}
	t := im.tasks[id.Task]
	if t == nil {
		return
	}
	t.gone = true
	im.dead = append(append(im.dead, t.cookie, t.doneAt), t.further...)
	for _, o := range t.objects {
		im.forgetObject(o.ID)
	}
	delete(im.tasks, id.Task)
}

func (im *image) forgetObject(id ids.ObjectID) {
	if o := im.objects[id]; o != nil {
		o.gone = true
		im.dead = append(im.dead, o.cookie, o.packedAt)
		delete(im.objects, id)
	}
}

// object enters what the log says of an object; that of a task's own objects goes with the task.
func (im *image) object(o *objectImage) {
	im.objects[o.ID] = o
	im.objList = append(im.objList, o)
	if !o.ID.IsPut() {
		t := im.task(o.ID.Task)
		t.objects = append(t.objects, o)
	}
}

// build makes the records: first every task and object, then what they refer to, then the
// life of the tasks that have not ended.
func (c *Core) build(im *image) {
	for no, o := range im.opts {
		c.optByNo[no], c.optNo[o] = o, no
		ck := im.optsAt[no]
		c.optCookies[no] = &ck
		c.optKeys[string(record.EncodeOptions(nil, o))] = no
	}
	for _, ck := range im.tombs {
		c.tombs = append(c.tombs, &ck)
	}
	for _, ck := range im.dead {
		c.deadLog = append(c.deadLog, &ck)
	}
	live := slices.DeleteFunc(im.order, func(t *taskImage) bool { return t.gone || !t.resolveOpts(im.opts) })
	for _, ti := range live {
		c.buildTask(ti)
	}
	for _, o := range im.objList {
		if !o.gone {
			c.buildObject(o)
		}
	}
	for _, ti := range live {
		c.buildResults(ti)
	}
	c.eachInside(func(refs []ids.ObjectID) {
		for _, id := range refs {
			c.ensure(id).objs++ // strays made here have no references of their own
		}
	})
	for _, ti := range live {
		c.buildLife(ti)
	}
}

func (t *taskImage) resolveOpts(opts map[uint32]*wire.TaskOptions) bool {
	if t.submit == nil {
		return false
	}
	if t.submit.OptsNo != 0 {
		t.submit.Spec.Opts = opts[t.submit.OptsNo]
	}
	return t.submit.Spec.Opts != nil
}

func (c *Core) buildTask(ti *taskImage) {
	name := ids.ObjectID{Task: ti.submit.Spec.ID}
	_, at := c.tasks.findOrPlace(&name)
	c.born = max(c.born, ti.submit.Born-1) // which an older version did not write down: then it is in its order
	t := c.newTask(ti.submit.Spec, at)
	ti.rec = t
	t.cookie, t.doneAt = ti.cookie, ti.doneAt
	t.heir = ti.submit.Heir
	for _, ck := range ti.further {
		x := t.ext()
		x.cookies = append(x.cookies, &ck)
	}
	if t.nret == wire.Streaming {
		t.x.stream.anyone = true
		if ti.closed {
			t.x.stream.closed = true
			t.live--
		}
	}
	if r := ti.retry; r != nil {
		t.start, t.tries = r.Attempt, r.Tries
		if r.Errors > 0 {
			t.ext().errors = r.Errors
		}
		if r.Cancelled {
			t.flags |= taskCancelled
		}
		if r.Insist {
			t.ext().insist = true
		}
	}
	if ti.done != nil {
		t.flags |= taskEnded
		t.start = max(t.start, ti.done.Done.Attempt)
	}
	if t.spec.Kind == wire.TaskActorCreate {
		c.buildActor(t, ti.actor)
		t.actor.parent = ti.submit.Parent
	}
}

// buildActor makes the record of an actor; whether it is still alive its worker says.
func (c *Core) buildActor(t *taskRec, r *record.Actor) {
	a := newActor(t)
	t.actor = a
	c.actors[a.id] = a
	if r == nil {
		return // acceptActorTask begins its life
	}
	a.state, a.restarts, a.resets, a.claimed, a.cause = r.State, r.Restarts, r.Resets, r.Named, r.Err
	if r.Stop {
		a.stop = r.Err
	}
	a.hurt, a.logged = r.Hurt, r
}

func (c *Core) buildObject(im *objectImage) {
	o := c.object(im.ID)
	if o == nil || o.flags&objStray != 0 {
		if o = c.sealTarget(im.ID); o == nil {
			return
		}
	}
	if im.Result.Kind != wire.ResultNone {
		o.cookie = im.cookie
		o.flags |= objLogged
		c.setBuilt(o, &im.Result, im.Attempt)
	}
	if im.packed != nil {
		*c.objectCookie(o) = im.packedAt
	}
	if im.packed != nil && o.state == object.Inline {
		c.setPacked(o, im.packed.Size)
	} else if im.packed != nil {
		o.flags |= objPacked // its value comes with the record of the task's end
	}
}

// setBuilt gives an object the outcome that the log has. A value that was packed is not
// kept in memory again.
func (c *Core) setBuilt(o *objRec, r *wire.Result, attempt uint32) {
	if o.state != object.Pending {
		return
	}
	switch r.Kind {
	case wire.ResultInline:
		o.state, o.res = object.Inline, r
		c.budget.add(o)
		if o.flags&objPacked != 0 {
			c.setPacked(o, uint64(len(r.Value.Data)))
		}
	case wire.ResultStored:
		o.state, o.res, o.attempt = object.Stored, r, attempt
	case wire.ResultError:
		o.state, o.res = object.Failed, errorResult(r.Err)
	}
}

func (c *Core) setPacked(o *objRec, size uint64) {
	c.budget.drop(o)
	o.state = object.Stored
	o.flags |= objPacked
	o.res = &wire.Result{Kind: wire.ResultStored, Value: wire.Value{Meta: o.res.Value.Meta}, Size: size}
}

// buildResults ends a task as its record of the end says.
func (c *Core) buildResults(ti *taskImage) {
	t, d := ti.rec, ti.done
	if t.nret == wire.Streaming {
		s := t.x.stream
		for s.item(s.produced) != nil && s.item(s.produced).state != object.Pending {
			s.produced++
		}
	}
	if d == nil {
		return
	}
	st := d.State
	if st == task.Failed && d.Done.Err.Code == errs.CodeCancelled {
		st = task.Cancelled
	}
	if ti.again && st == task.Finished || t.isCreation() && t.actor.logged != nil && t.actor.logged.State == actor.Restarting {
		st = task.PendingArgs // it had run and is to run again
	}
	c.setState(t, st)
	switch {
	case t.nret == wire.Streaming:
		s := t.x.stream
		if d.State == task.Finished {
			s.length = int64(d.Done.Items)
		} else {
			s.err = d.Done.Err
		}
	case t.isCreation() && d.Done.Err == nil:
		id := t.actor.id
		if l := t.actor.logged; l != nil && !l.Alias.IsZero() {
			id = l.Alias
		}
		c.setBuilt(&t.ret0, handleValue(t, id, c.cfg.Job), 0)
	default:
		t.eachReturn(func(o *objRec) {
			if d.Done.Err != nil {
				c.setBuilt(o, errorResult(d.Done.Err), 0)
			} else if int(o.id.Index) < len(d.Done.Results) {
				r := d.Done.Results[o.id.Index]
				c.setBuilt(o, &r, d.Done.Attempt)
			}
		})
	}
}

// setState puts a record into a state that the log or a worker says it has.
func (c *Core) setState(t *taskRec, st task.State) {
	c.byState[t.state]--
	c.byState[st]++
	t.state, t.since = st, c.now
}

// buildLife takes up a task where the log leaves it.
func (c *Core) buildLife(ti *taskImage) {
	t := ti.rec
	parent := c.tasks.task(t.spec.Parent)
	t.inherit(parent)
	if t.state.Terminal() {
		c.breakPromises(t, ti.done.Done.Err)
	}
	if t.isCreation() && t.actor.logged != nil {
		c.buildCreation(t)
		return
	}
	if !t.state.Terminal() {
		c.accept(t, parent)
		return
	}
	if t.isCreation() { // refused: there never was an actor
		t.actor.state = actor.Dead
		if t.ret0.res != nil {
			c.setCause(t.actor, t.ret0.res.Err, nil)
		}
	}
	if t.spec.Kind == wire.TaskNormal {
		t.class = c.classOf(wire.TaskNormal, t.spec.Opts)
	}
	if t.spec.Kind == wire.TaskActorCall {
		t.actor = c.actorFor(t.spec.Actor)
	}
	c.keepLineage(t)
}

// buildCreation takes up an actor's creation: one that ended keeps what it needs to run
// again, one that did not waits for its turn.
func (c *Core) buildCreation(t *taskRec) {
	a := t.actor
	t.class = c.classOf(wire.TaskActorCreate, t.spec.Opts)
	if a.logged.Alias != (ids.ActorID{}) {
		a.alias = c.actorFor(a.logged.Alias)
	}
	if a.over() {
		if !t.state.Terminal() {
			c.fail(t, c.callDied(a))
		}
		c.dropSpec(t)
		return
	}
	c.holdArgs(t)
	if !t.state.Terminal() {
		t.class.live++
		t.flags |= taskCounted
		c.await(t)
	}
}
