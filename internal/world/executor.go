package world

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// executor runs the tasks that a worker is sent: a lane for each lease, and one for each actor.
type executor struct {
	lanes    map[ids.LeaseID]*lane
	actors   map[ids.ActorID]*instance
	ran      map[begun]int
	left     []*call // abandoned, and not returned yet
	draining bool
}

// begun is an attempt that has begun. A task that was forgotten and is submitted again counts its attempts anew: it runs once for each submission, which may
// long have been sent.
type begun struct {
	task    ids.TaskID
	attempt uint32
	lease   ids.LeaseID
}

// lane runs tasks one after another, in the order of their arrival.
type lane struct {
	queue   []item
	call    *call // that runs
	actor   *instance
	blocked bool // its task waits in a get, and has given its CPU back
	held    bool // its actor is not constructed yet
}

// item is a task in a lane.
type item struct {
	wire.ExecTask
	lease ids.LeaseID
}

// instance is an actor in its worker.
type instance struct {
	id      ids.ActorID
	lane    *lane
	number  uint64 // among all instances
	count   uint64 // its state
	closing bool
}

func (x *executor) init() {
	x.lanes, x.actors, x.ran = make(map[ids.LeaseID]*lane), make(map[ids.ActorID]*instance), make(map[begun]int)
}

// exec puts tasks on their lane: a lease's, or for calls their actor's.
func (p *process) exec(m *wire.Exec) {
	for i := range m.Tasks {
		t := item{m.Tasks[i], m.Lease}
		l := p.lanes[m.Lease]
		switch t.Spec.Kind {
		case wire.TaskActorCall:
			a := p.actors[t.Spec.Actor]
			if a == nil || a.closing {
				p.refuse(t, errs.New(errs.CodeActorUnavailable, "actor %v is not in this worker any more", t.Spec.Actor))
				continue
			}
			l = a.lane
		case wire.TaskActorCreate:
			p.newInstance(t.Spec)
		}
		if l == nil {
			l = &lane{}
			p.lanes[m.Lease] = l
		}
		if l.blocked { // its task may wait for this one
			p.send(&wire.Blocked{Lease: m.Lease, Returned: []ids.TaskID{t.Spec.ID}})
			continue
		}
		l.queue = append(l.queue, t)
		p.startNext(l)
	}
}

// startNext begins the next task of a lane, if none runs.
func (p *process) startNext(l *lane) {
	if l.call != nil || l.held || len(l.queue) == 0 || p.dead {
		p.maybeDrained()
		return
	}
	t := l.queue[0]
	l.queue = l.queue[1:]
	c := &call{p: p, task: t.Spec.ID, item: t, lane: l, started: p.w.now}
	l.call = c
	k := begun{c.task, t.Attempt, t.lease}
	if p.ran[k]++; p.ran[k] > p.w.model.submits[c.task] && !p.w.model.forgotten[c.task.Job()] {
		p.w.fail("%s runs attempt %d of task %v, which was submitted %d times, for the %dth time", p.name, t.Attempt, brief(c.task), p.w.model.submits[c.task], p.ran[k])
	}
	p.w.model.begins(p.w, c)
	c.thread = p.spawn(c.run)
}

// returned reports that a task which was abandoned has returned.
func (p *process) returned(c *call) {
	p.left = slices.DeleteFunc(p.left, func(x *call) bool { return x == c })
	p.send(&wire.Done{Task: c.task, Attempt: c.item.Attempt, Lease: c.item.lease, Err: c.cancelled})
}

// finished takes a call off its lane and reports it.
func (p *process) finished(c *call, d *wire.Done) {
	p.w.model.ends(p.w, c)
	c.lane.blocked = false
	c.over = true
	d.Task, d.Attempt, d.Lease = c.item.Spec.ID, c.item.Attempt, c.item.lease
	d.Times = wire.Times{Received: c.started, Started: c.started, Ended: p.w.now}
	p.send(d)
	if l := c.lane; l.call == c {
		if l.call = nil; l.actor == nil && len(l.queue) == 0 {
			delete(p.lanes, c.item.lease)
		}
		p.startNext(l)
	}
}

// refuse reports a task that is not run.
func (p *process) refuse(t item, err *errs.Error) {
	p.send(&wire.Done{Task: t.Spec.ID, Attempt: t.Attempt, Lease: t.lease, Err: err, Times: wire.Times{Received: p.w.now, Ended: p.w.now}})
}

// everyLane gives the lanes, in an order that is the same in each run.
func (p *process) everyLane() []*lane {
	var out []*lane
	for _, id := range slices.Sorted(maps.Keys(p.lanes)) {
		out = append(out, p.lanes[id])
	}
	for _, id := range p.instances() {
		out = append(out, p.actors[id].lane)
	}
	return out
}

func (p *process) instances() []ids.ActorID {
	return slices.SortedFunc(maps.Keys(p.actors), func(a, b ids.ActorID) int { return bytes.Compare(a[:], b[:]) })
}

func (p *process) busy() bool {
	for _, l := range p.everyLane() {
		if l.call != nil || len(l.queue) > 0 {
			return true
		}
	}
	return false
}

// cancelTask drops a task that is queued, or ends the context of one that runs.
func (p *process) cancelTask(m *wire.CancelTask) {
	for _, l := range p.everyLane() {
		if i := slices.IndexFunc(l.queue, func(t item) bool { return t.Spec.ID == m.Task }); i >= 0 {
			t := l.queue[i]
			l.queue = slices.Delete(slices.Clone(l.queue), i, i+1)
			p.refuse(t, cancelledError(m.Task))
			return
		}
		c := l.call
		if c == nil || c.task != m.Task {
			continue
		}
		c.cancelled = cancelledError(m.Task)
		if m.Abandon { // the lane goes on without it
			p.left = append(p.left, c)
			p.finished(c, &wire.Done{Err: c.cancelled, StillRuns: true})
		}
		return
	}
}

func cancelledError(id ids.TaskID) *errs.Error {
	return &errs.Error{Code: errs.CodeCancelled, Task: id.String()}
}

// drain ends the process when its tasks have ended.
func (p *process) drain() {
	p.draining = true
	p.maybeDrained()
}

// maybeDrained ends a process that is to end and has nothing left to do; not within a thread of it.
func (p *process) maybeDrained() {
	if p.draining && !p.busy() {
		p.w.after(0, func() {
			if !p.busy() {
				p.exit()
			}
		})
	}
}

// resume gives a task its CPU back.
func (p *process) resume(id ids.TaskID) {
	for _, l := range p.everyLane() {
		if c := l.call; c != nil && c.task == id && c.cpu == cpuAsked {
			c.cpu, l.blocked = cpuHeld, false
			p.w.model.resumes(p.w, c)
		}
	}
}

// holdings adds what the worker runs to the answer to a Resync.
func (p *process) holdings(h *wire.Holdings) {
	for _, l := range p.everyLane() {
		if c := l.call; c != nil {
			h.Tasks = append(h.Tasks, wire.Attempt{
				Task: c.task, Attempt: c.item.Attempt, Lease: c.item.lease, Blocked: c.cpu == cpuReturned || c.cpu == cpuAsked, Asks: c.cpu == cpuAsked,
			})
		}
		for _, t := range l.queue {
			h.Tasks = append(h.Tasks, wire.Attempt{Task: t.Spec.ID, Attempt: t.Attempt, Lease: t.lease})
		}
	}
	for _, c := range p.left {
		h.Tasks = append(h.Tasks, wire.Attempt{Task: c.task, Attempt: c.item.Attempt, Lease: c.item.lease})
	}
	h.Actors = p.instances()
}

// newInstance makes an actor's mailbox when its creation arrives: calls wait there for the constructor.
func (p *process) newInstance(s *wire.TaskSpec) {
	id := ids.ActorID(s.ID)
	p.dropInstance(id, errs.CodeActorUnavailable)
	p.w.model.instances++
	a := &instance{id: id, number: p.w.model.instances}
	a.lane = &lane{actor: a, held: true}
	p.actors[id] = a
}

// dropInstance ends an instance at once: its calls fail.
func (p *process) dropInstance(id ids.ActorID, code errs.Code) {
	a := p.actors[id]
	if a == nil {
		return
	}
	delete(p.actors, id)
	why := errs.New(code, "actor %v was killed", id)
	p.refuseAll(a.lane, why)
}

// refuseAll fails what waits on a lane, and ends the context of what runs.
func (p *process) refuseAll(l *lane, why *errs.Error) {
	queue := l.queue
	l.queue = nil
	for _, t := range queue {
		p.refuse(t, why)
	}
	if l.call != nil {
		l.call.cancelled = why
	}
}

// stopActor ends an instance, at once or when its calls have run.
func (p *process) stopActor(m *wire.StopActor) {
	a := p.actors[m.Actor]
	switch {
	case !m.Close && m.Restarts:
		p.dropInstance(m.Actor, errs.CodeActorUnavailable)
	case !m.Close:
		p.dropInstance(m.Actor, errs.CodeActorDied)
	case a == nil || a.lane.held:
		p.dropInstance(m.Actor, errs.CodeActorDied)
		p.send(&wire.ActorStopped{Actor: m.Actor})
	case !a.closing:
		a.closing = true
		if !m.Drain {
			p.refuseAll(a.lane, errs.New(errs.CodeActorDied, "actor %v was stopped", m.Actor))
		}
		p.spawn(func(t *thread) {
			t.await("an actor's calls", func() bool { return a.lane.call == nil && len(a.lane.queue) == 0 })
			t.work(time.Millisecond)
			if p.actors[m.Actor] == a {
				delete(p.actors, m.Actor)
				p.send(&wire.ActorStopped{Actor: m.Actor})
			}
		})
	}
}
