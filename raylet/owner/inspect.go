package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// TaskView is a task as lists show it. What it points at is not to be changed.
type TaskView struct {
	ID      ids.TaskID
	Opts    *wire.TaskOptions
	Spec    *wire.TaskSpec // nil when it was given up after the task's end, or paged out
	Kind    wire.TaskKind
	State   task.State
	Attempt uint32 // attempt numbers given out
	Born    int64  // when it was submitted, Unix ns; no two tasks of a job have the same
	Since   int64  // of its state, Unix ns
	Due     int64  // of a task that waits before it runs again: when, Unix ns
	Lease   ids.LeaseID
	Worker  ids.ClientID
	Actor   ids.ActorID
	Reason  *errs.Error
}

func (t *taskRec) view() TaskView {
	v := TaskView{ID: t.id(), Spec: t.spec, State: t.displayState(), Attempt: t.start, Born: t.born, Since: t.since, Due: t.retryAt()}
	switch {
	case t.spec != nil:
		v.Opts, v.Kind = t.spec.Opts, t.spec.Kind
	case t.class != nil:
		v.Opts, v.Kind = t.class.opts, t.class.kind
	default:
		v.Opts = &noOptions
	}
	if t.lease != nil {
		v.Lease, v.Worker = t.lease.id, t.lease.worker.id
	}
	if t.actor != nil {
		v.Actor = t.actor.id
	}
	switch {
	case t.x != nil && t.x.err != nil:
		v.Reason = t.x.err
	case t.state == task.Failed && t.ret0.res != nil:
		v.Reason = t.ret0.res.Err
	}
	return v
}

var noOptions = wire.TaskOptions{Func: "unknown"}

// HasOpts tells whether Opts are the task's own: they may have been given up after its end.
func (v *TaskView) HasOpts() bool { return v.Opts != &noOptions }

// ObjectView is an object as lists show it.
type ObjectView struct {
	ID      ids.ObjectID
	State   object.State
	Size    uint64
	Task    TaskView // that makes it; zero for a put
	Holders int      // clients with a handle
	Tasks   int      // unfinished tasks that use it
	Within  int      // live objects that contain it, and streams that hold it
	Waiting int      // tasks and gets that wait for it
	Err     *errs.Error
	On      []ids.Home // nodes that have a copy, the one that keeps it first; none: the job's own node, if it is stored
}

func (c *Core) objectView(o *objRec) ObjectView {
	v := ObjectView{ID: o.id, State: o.state, Tasks: int(o.tasks), Within: int(o.objs)}
	if o.rec != nil {
		v.Task = o.rec.view()
	}
	if o.holder != nil {
		v.Holders = 1
	}
	if o.more != nil {
		v.Holders += len(*o.more)
	}
	if o.waits != nil {
		v.Waiting = len(o.waits.tasks) + len(o.waits.gets)
	}
	if o.flags&objGet != 0 {
		v.Waiting++
	}
	if o.res != nil {
		v.Size, v.Err = o.res.Size, o.res.Err
	}
	if set := c.copies.byID[o.id]; set != nil {
		v.On = slices.Clone(set.on)
	}
	return v
}

// ActorView is an actor as lists show it.
type ActorView struct {
	ID       ids.ActorID
	Opts     *wire.TaskOptions
	State    actor.State
	Born     int64 // when its creation was submitted, Unix ns; 0: it is another job's
	Foreign  bool  // another job's, to which calls are made from here
	Shared   bool  // it may have calls that the owner does not know
	Restarts int   // that were charged to it
	Resets   int   // restarts that were not: another actor brought its process down
	Due      int64 // when it restarts, Unix ns; 0: now, or it does not
	Pending  int   // calls that have not ended
	Queued   int   // of these, not pushed
	Worker   ids.ClientID
	Cause    *errs.Error
}

func (a *actorRec) view() ActorView {
	v := ActorView{ID: a.id, Opts: a.opts, State: a.state, Foreign: a.rec == nil, Restarts: int(a.restarts), Resets: int(a.resets), Pending: a.pending,
		Queued: a.queue.n, Cause: a.cause}
	if v.Opts == nil {
		v.Opts = &noOptions
	}
	v.Shared = v.Foreign || v.Opts.Detached || a.passed
	if a.rec != nil {
		v.Due, v.Born = a.rec.retryAt(), a.rec.born
	}
	if a.lease != nil {
		v.Worker = a.lease.worker.id
	}
	return v
}

// Actor gives one actor of this job, or that of the name it found taken.
func (c *Core) Actor(id ids.ActorID) (ActorView, bool) {
	a := c.actors.byID[id]
	if a == nil {
		return ActorView{}, false
	}
	v := a.real().view()
	return v, !v.Foreign
}

// Uncounted gives the places of those actors of which this core has no number of a call to go on from: they have ended, or are unknown. While it
// recovers it names none: it does not know yet.
func (c *Core) Uncounted(of []ids.ActorID) (places []int) {
	if c.recovering {
		return nil
	}
	for i, id := range of {
		if a := c.actors.byID[id]; a == nil || a.real().ended() {
			places = append(places, i)
		}
	}
	return places
}

// Actors gives every actor, in no order.
func (c *Core) Actors(yield func(ActorView) bool) {
	for _, a := range c.actors.byID {
		if !yield(a.view()) {
			return
		}
	}
}

// States counts the tasks in each state, as lists show it.
func (c *Core) States(count func(task.State, int)) {
	by := c.byState
	by[task.PendingArgs] -= c.tasks.elsewhere
	by[task.PendingActor] += c.tasks.elsewhere
	for _, a := range c.actors.byID {
		if a.lease != nil && a.pending > 0 {
			n := a.lease.started()
			by[task.Submitted] -= n
			by[task.Running] += n
		}
	}
	for s, n := range by {
		if n > 0 {
			count(task.State(s), n)
		}
	}
}

// Scan goes through every task or object in parts, between which the core may be stepped: it
// holds up its owner for no longer than a part takes. What is there from the begin to the end of the
// scan is seen once; what comes or goes meanwhile is seen once or not at all.
type Scan struct {
	core        *Core
	size        int
	tasks, puts cursor
	buf         []*objRec
}

// ScanTasks begins a scan of tasks.
func (c *Core) ScanTasks(part int) *Scan {
	return &Scan{core: c, size: part, puts: cursor{done: true}}
}

// ScanObjects begins a scan of objects: the returns and items of tasks, and what was put.
func (c *Core) ScanObjects(part int) *Scan {
	s := c.ScanTasks(part)
	s.puts.done = false
	return s
}

// part gives the next records of a table; the slice is used again.
func (s *Scan) part(t *table, c *cursor) []*objRec {
	clear(s.buf)
	s.buf = t.scan(c, s.size, s.buf[:0])
	return s.buf
}

// Of tells whether the scan is of this core; one that was discarded is not to be scanned on.
func (s *Scan) Of(c *Core) bool { return s.core == c }

// NextTasks visits the next tasks, and is false when there were none. Call it where the core is
// stepped, between two steps. keep, where it is not nil, tells which tasks to visit: views are made of those only,
// and a million that are not wanted cost 50 ms in all.
func (s *Scan) NextTasks(keep func(id *ids.TaskID, born int64, st task.State) bool, visit func(TaskView)) bool {
	ts := s.part(&s.core.tasks.table, &s.tasks)
	for _, o := range ts {
		t := o.rec
		if keep == nil || keep(&t.ret0.id.Task, t.born, t.displayState()) {
			visit(t.view())
		}
	}
	return len(ts) > 0
}

// NextObjects visits the next objects, and is false when there were none.
func (s *Scan) NextObjects(visit func(ObjectView)) bool {
	if ts := s.part(&s.core.tasks.table, &s.tasks); len(ts) > 0 {
		for _, o := range ts {
			o.rec.eachReturn(func(o *objRec) {
				if o.flags&objDead == 0 {
					visit(s.core.objectView(o))
				}
			})
		}
		return true
	}
	os := s.part(&s.core.puts, &s.puts)
	for _, o := range os {
		visit(s.core.objectView(o))
	}
	return len(os) > 0
}

// Stop ends the scan; from anywhere, when no Next is under way.
func (s *Scan) Stop() { s.tasks.done, s.puts.done = true, true }
