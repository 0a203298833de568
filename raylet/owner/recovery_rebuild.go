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

// Rebuild makes the core of a job from its log: the position and bytes of each record, in
// any order. The core keeps every event back until Restored came and each client
// told what it holds. The error names the record that cannot be read.
func Rebuild(cfg Config, records iter.Seq2[uint64, []byte]) (*Core, error) {
	im := &image{
		opts: make(map[uint32]*wire.TaskOptions), optsAt: make(map[uint32]uint64), tasks: make(map[ids.TaskID]*taskImage), objects: make(map[ids.ObjectID]*objectImage),
		borrowers: make(map[ids.JobID]uint64),
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
			im.add(&all[i])
		}
		all[i].r = nil
	}
	if n := len(all); n > 0 {
		c.records = all[n-1].seq
	}
	c.lenient = true
	c.pastLeases = make(map[ids.LeaseID]struct{})
	c.pause, c.recovering = newResyncWait(), true
	c.pause.forgotten = im.forgotten
	c.life.awaitsCalls = cfg.StraightCalls
	c.build(im)
	return c, nil
}

// build makes the records: first every task and object, then what they refer to, then the
// life of the tasks that have not ended.
func (rc *recovery) build(im *image) {
	rc.journal.rebuild(im)
	for job, ck := range im.borrowers {
		rc.peers.borrowers[job] = &ck
	}
	live := slices.DeleteFunc(im.order, func(t *taskImage) bool { return t.gone || !t.resolveOpts(im.opts) })
	for _, ti := range live {
		rc.buildTask(ti)
	}
	for _, o := range im.objList {
		if !o.gone {
			rc.buildObject(o)
		}
	}
	for _, ti := range live {
		rc.buildResults(ti)
	}
	rc.up.eachContainer(func(refs []ids.ObjectID) {
		for _, id := range refs {
			rc.objects.ensure(id).objs++ // placeholders made here have no references of their own
		}
	})
	for _, ti := range live {
		rc.buildLife(ti)
	}
	for _, id := range rc.actors.actorIDs() {
		rc.calls.closeGaps(rc.actors.byID[id])
	}
}

func (rc *recovery) buildTask(ti *taskImage) {
	name := ids.ObjectID{Task: ti.submit.Spec.ID}
	_, at := rc.tasks.findOrPlace(&name)
	rc.tasks.born = max(rc.tasks.born, ti.submit.Born-1) // which an older version did not write down: then it is in its order
	t := rc.life.newTask(ti.submit.Spec, at, ti.adopted())
	ti.rec = t
	t.cookie, t.doneAt = ti.cookie, ti.doneAt
	t.ret0.flags |= objOfDriver // for all that is known
	t.detachedDescendant = ti.submit.DetachedDescendant
	if ti.retryAt != 0 || ti.closedAt != 0 {
		t.ext().retryAt, t.ext().closedAt = ti.retryAt, ti.closedAt
	}
	for _, ck := range ti.ends {
		if ti.endSaysAll() {
			rc.journal.deadLog = append(rc.journal.deadLog, &ck)
		} else {
			t.ext().ends = append(t.ext().ends, &ck)
		}
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
			t.ext().forceAfterGrace = true
		}
		if t.nret == wire.Streaming {
			t.x.stream.length = int64(r.Length) - 1
		}
	}
	if a := ti.actor; a != nil && (a.State == actor.Alive || a.State == actor.Stopping) {
		ti.again = false
		if ti.done == nil { // the log ends between the record that the actor is up and that of its creation's end
			ti.done = &record.Done{State: task.Finished, Done: wire.Done{Task: t.id()}}
		}
	}
	if ti.done != nil {
		t.flags |= taskEnded
		t.start = max(t.start, ti.done.Done.Attempt)
	}
	if t.spec.Kind == wire.TaskActorCreate {
		rc.buildActor(t, ti.actor)
		t.actor.loggedAt = ti.actorAt
		t.actor.parent = ti.submit.Parent
	}
}

// buildActor makes the record of an actor; whether it is still alive its worker says.
func (rc *recovery) buildActor(t *taskRec, r *record.Actor) {
	a := newActor(t)
	t.actor = a
	rc.actors.byID[a.id] = a
	if r == nil {
		return // acceptActorTask begins its life
	}
	a.state, a.restarts, a.resets, a.claimed, a.cause = r.State, r.Restarts, r.Resets, r.Named, r.Err
	if r.Stop {
		a.stop = r.Err
	}
	a.hurt, a.logged = r.Hurt, r
}

func (rc *recovery) buildObject(im *objectImage) {
	o := rc.objects.object(im.ID)
	if o == nil || o.flags&objPlaceholder != 0 {
		if o = rc.values.sealTarget(im.ID); o == nil {
			return
		}
	}
	if o.rec == nil {
		o.flags |= objOfDriver
	} else {
		o.rec.start = max(o.rec.start, im.Attempt) // the number is used: a new attempt of it would pass for the one that made this
	}
	if !im.onlyPacked() {
		o.cookie = im.cookie
		o.flags |= objLogged
		rc.setBuilt(o, &im.Result, im.Attempt)
		if im.Elsewhere != 0 && o.state == object.Stored {
			rc.copies.made(o, ids.Home(im.Elsewhere-1))
		}
	}
	if im.packed != nil {
		*rc.journal.packedPlace(o) = im.packedAt
	}
	if im.packed != nil && o.state == object.Inline {
		rc.setPacked(o, im.packed.Size)
	} else if im.packed != nil {
		o.flags |= objPacked // its value comes with the record of the task's end
	}
}

// setBuilt gives an object the outcome that the log has. A value that was packed is not
// kept in memory again.
func (rc *recovery) setBuilt(o *objRec, r *wire.Result, attempt uint32) {
	if o.state != object.Pending {
		return
	}
	switch r.Kind {
	case wire.ResultInline:
		o.state, o.res = object.Inline, r
		rc.objects.budget.add(o)
		if o.flags&objPacked != 0 {
			rc.setPacked(o, uint64(len(r.Value.Data)))
		}
	case wire.ResultStored:
		o.state, o.res, o.attempt = object.Stored, r, attempt
	case wire.ResultError:
		o.state, o.res = object.Failed, errorResult(r.Err)
	default: // what the log has of an object without a result is that it was freed
		o.state, o.attempt = object.Freed, attempt
	}
}

func (rc *recovery) setPacked(o *objRec, size uint64) {
	rc.objects.budget.drop(o)
	o.state = object.Stored
	o.flags |= objPacked
	o.res = &wire.Result{Kind: wire.ResultStored, Value: wire.Value{Meta: o.res.Value.Meta}, Size: size}
}

// buildResults ends a task as its record of the end says.
func (rc *recovery) buildResults(ti *taskImage) {
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
	rc.tasks.setState(t, st)
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
		rc.setBuilt(&t.ret0, handleValue(t, id, rc.cfg.Job), 0)
	default:
		t.eachReturn(func(o *objRec) {
			switch r, attempt := ti.result(o.id.Index); {
			case r != nil && (d.Done.Err == nil || r.Kind != wire.ResultStored): // also of a task that failed as it ran again for another return
				rc.setBuilt(o, r, attempt)
			case d.Done.Err != nil:
				rc.setBuilt(o, errorResult(d.Done.Err), 0)
			case st.Terminal():
				rc.setBuilt(o, errorResult(notLogged(o.id)), 0)
			}
		})
	}
}

// notLogged is the error of a result that was made, and of which the log has no record: it could not take one before the owner was restarted.
func notLogged(id ids.ObjectID) *errs.Error {
	return errs.New(errs.CodeObjectLost, "object %v: the log of its job could not take the record of it before its owner was restarted", id)
}

// buildLife takes up a task where the log leaves it.
func (rc *recovery) buildLife(ti *taskImage) {
	t := ti.rec
	parent := rc.tasks.task(t.spec.Parent)
	t.markDetached(parent)
	if t.state.Terminal() {
		rc.promises.breakPromises(t, ti.done.Done.Err)
	}
	if t.isCreation() && t.actor.logged != nil {
		rc.buildCreation(t)
		return
	}
	switch {
	case t.isElsewhere():
		rc.straight.built(t, parent)
		return
	case !t.state.Terminal():
		rc.life.accept(t, parent)
		return
	}
	if t.isCreation() { // refused: there never was an actor
		t.actor.state = actor.Dead
		if t.ret0.res != nil {
			rc.actors.setCause(t.actor, t.ret0.res.Err, nil)
		}
	}
	if t.spec.Kind == wire.TaskNormal {
		t.class = rc.leases.classOf(wire.TaskNormal, t.spec.Opts)
	}
	if t.spec.Kind == wire.TaskActorCall {
		t.actor = rc.actors.actorFor(t.spec.Actor)
		rc.calls.passed(t.spec)
	}
	rc.lineage.keepLineage(t)
}

// buildCreation takes up an actor's creation: one that ended keeps what it needs to run
// again, one that did not waits for its turn.
func (rc *recovery) buildCreation(t *taskRec) {
	a := t.actor
	t.class = rc.leases.classOf(wire.TaskActorCreate, t.spec.Opts)
	if a.logged.Alias != (ids.ActorID{}) {
		a.alias = rc.actors.actorFor(a.logged.Alias)
	}
	if a.ended() {
		if !t.state.Terminal() {
			rc.life.fail(t, rc.calls.callDied(a))
		}
		rc.lineage.dropSpec(t)
		return
	}
	rc.objects.holdArgs(t)
	if !t.state.Terminal() {
		t.class.live++
		t.flags |= taskCounted
		rc.life.await(t)
	}
}
