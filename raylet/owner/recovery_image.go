package owner

import (
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/owner/record"
	"mobula/wire"
)

// image is what the log says, before it is made into records.
type image struct {
	opts    map[uint32]*wire.TaskOptions
	optsAt  map[uint32]uint64
	tombs   []tomb
	dead    []uint64 // of what was forgotten, or replaced
	tasks   map[ids.TaskID]*taskImage
	order   []*taskImage // by submission
	objects map[ids.ObjectID]*objectImage
	objList []*objectImage

	borrowers map[ids.JobID]uint64 // jobs of other homes
	forgotten [][]ids.ObjectID     // as Forget records name it
}

type taskImage struct {
	submit                     *record.Submit
	cookie                     uint64
	done                       *record.Done
	doneAt                     uint64
	results                    []*record.Done // of the ends before it
	retry                      *record.Retry
	again                      bool // charged after its end: it was being made again
	actor                      *record.Actor
	retryAt, closedAt, actorAt uint64
	ends                       []uint64       // of results
	objects                    []*objectImage // its early seals, items and packed values
	closed                     bool           // a stream that nobody reads
	gone                       bool
	rec                        *taskRec
}

type objectImage struct {
	record.Object
	cookie   uint64
	packed   *record.Packed
	packedAt uint64
	gone     bool
}

// onlyPacked tells whether the object's result is in its task's end, and the log has no more of it than that it was packed.
func (o *objectImage) onlyPacked() bool { return o.packed != nil && o.Result.Kind == wire.ResultNone }

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

func (im *image) add(n *numbered) {
	cookie := n.cookie
	switch r := n.r.(type) {
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
			t.ends = append(t.ends, t.doneAt)
			t.results = append(t.results, t.done)
		}
		t.done, t.doneAt, t.again = r, cookie, false
	case *record.Retry:
		t := im.task(r.Task)
		t.retry, t.again = r, t.done != nil
		im.replace(&t.retryAt, cookie)
	case *record.Closed:
		t := im.task(r.Task)
		t.closed = true
		im.replace(&t.closedAt, cookie)
	case *record.Actor:
		t := im.task(ids.TaskID(r.Actor))
		t.actor = r
		im.replace(&t.actorAt, cookie)
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
	case *record.Borrower:
		im.dead = append(im.dead, im.borrowers[r.Job]) // the one before it was freed
		im.borrowers[r.Job] = cookie
	case *record.Forget:
		im.tombs = append(im.tombs, tomb{at: &cookie, seq: n.seq})
		im.forgotten = append(im.forgotten, r.IDs)
		for _, id := range r.IDs {
			im.forget(id)
		}
	}
}

// replace notes the position of a record that says all that the one before it said.
func (im *image) replace(at *uint64, cookie uint64) {
	im.dead = append(im.dead, *at)
	*at = cookie
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
	im.dead = append(append(im.dead, t.cookie, t.doneAt, t.retryAt, t.closedAt, t.actorAt), t.ends...)
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

// adopted is what is known of a call that is elsewhere; nil: it is not.
func (t *taskImage) adopted() *adoptedCall {
	if !t.submit.Elsewhere || t.done != nil || t.retry != nil && !t.retry.Elsewhere {
		return nil
	}
	return &adoptedCall{elsewhere: true, logged: true}
}

// result gives the last result of a return, and of which attempt it is; nil: none is in an end of the task.
func (t *taskImage) result(i uint32) (*wire.Result, uint32) {
	for _, d := range slices.Backward(append(t.results, t.done)) {
		if int(i) < len(d.Done.Results) && d.Done.Results[i].Kind != wire.ResultNone {
			r := d.Done.Results[i]
			return &r, d.Done.Attempt
		}
	}
	return nil, 0
}

// endSaysAll tells whether the last end of a task has all that those before it have.
func (t *taskImage) endSaysAll() bool {
	spec := t.submit.Spec
	if spec.Kind == wire.TaskActorCreate || spec.Opts.NumReturns == wire.Streaming {
		return true
	}
	n := 0
	for i := range t.done.Done.Results {
		if t.done.Done.Results[i].Kind != wire.ResultNone {
			n++
		}
	}
	return n >= int(spec.Opts.NumReturns)
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

// rebuild takes over the options and tombstones of a log, and the records in it that nothing needs.
func (j *journal) rebuild(im *image) {
	for no, o := range im.opts {
		j.optByNo[no], j.optNo[o] = o, no
		ck := im.optsAt[no]
		j.optCookies[no] = &ck
		j.optKeys[string(record.EncodeOptions(nil, o))] = no
	}
	for _, t := range im.tombs {
		j.tombs.Push(t)
	}
	for _, ck := range im.dead {
		j.deadLog = append(j.deadLog, &ck)
	}
}
