package world

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/objectstore"
	"mobula/raylet/pool"
	"mobula/wire"
)

// jobShell is the shell of the core of jobs. What it has outlives cores, and not the node.
type jobShell struct {
	*jobsPart
	asked   jobs.Ask
	open    map[jobs.Ask]*question
	coming  map[ids.JobID]*ownerShell
	in      map[ids.ClientID]*session
	started []pool.JobStarted
	found   []jobs.Found
	settled bool
	ended   map[ids.JobID]*ownerShell
	returns int
}

// question is somebody who waits for an answer.
type question struct {
	ev   jobs.Event
	s    *session
	then func(err *errs.Error)
}

func (n *Node) startJobs() {
	j := &jobShell{
		open: make(map[jobs.Ask]*question), coming: make(map[ids.JobID]*ownerShell), in: make(map[ids.ClientID]*session), ended: make(map[ids.JobID]*ownerShell),
	}
	n.jobs = j
	j.jobsPart = &jobsPart{vital: jobs.Vital, build: j.buildCore, do: j.carryOut, poisoned: func(ev jobs.Event) { j.answer(jobs.AskOf(ev), errPoisoned) }}
	startPart(n, kindJobs, "jobs", j.jobsPart)
}

func (j *jobShell) buildCore(restart int) (core[jobs.Event, jobs.Effect], []jobs.Event) {
	c := jobs.New(j.n.name)
	if restart == 0 {
		return c, nil
	}
	r := jobs.Rebuild{Found: slices.Clone(j.found), Settled: j.settled}
	for _, id := range slices.Sorted(maps.Keys(j.n.owners)) {
		o := j.n.owners[id]
		r.Jobs = append(r.Jobs, jobs.Job{ID: id, Waits: o.waits, Alone: o.alone, Orphan: o.orphan, Left: o.left, Started: j.knows(id)})
	}
	for _, id := range j.n.links.hosted() {
		r.Jobs = append(r.Jobs, jobs.Job{ID: id, Away: true, Started: j.knows(id)})
	}
	for _, id := range slices.Sorted(maps.Keys(j.in)) {
		r.Clients = append(r.Clients, j.in[id].client())
	}
	first := []jobs.Event{r}
	for _, a := range slices.Sorted(maps.Keys(j.open)) {
		if ev := j.open[a].ev; jobs.Waits(ev) {
			first = append(first, ev)
		}
	}
	return c, append(first, jobs.Rebuilt{})
}

// ask has the core step on an event; then is called with its answer.
func (j *jobShell) ask(s *session, with func(jobs.Ask) jobs.Event, then func(*errs.Error)) {
	j.asked++
	q := &question{ev: with(j.asked), s: s, then: then}
	j.open[j.asked] = q
	j.box.put(q.ev)
}

// askNow is ask of who waits for the answer, and does nothing else before.
func (j *jobShell) askNow(with func(jobs.Ask) jobs.Event) (refused *errs.Error) {
	life, answered := j.n.life, false
	j.ask(nil, with, func(err *errs.Error) { answered, refused = true, err })
	for !answered && j.n.life == life && (j.rests() || j.box.len() > 0) {
		if j.goOn(); j.n.life == life && !answered && j.box.len() > 0 {
			j.n.w.takeNow(j.box)
		}
	}
	return refused
}

func (j *jobShell) answer(a jobs.Ask, err *errs.Error) {
	q := j.open[a]
	delete(j.open, a)
	if q != nil && q.then != nil {
		q.then(err)
	}
}

func (j *jobShell) carryOut(e jobs.Effect) {
	n := j.n
	switch e := e.(type) {
	case jobs.Answer:
		j.answer(e.Ask, e.Err)
	case jobs.Own:
		j.own(e)
	case jobs.LetIn:
		j.letIn(e)
	case jobs.Introduce:
		j.in[e.Client].meet(e.Job)
		n.toOwner(e.Job, e.ClientJoined)
	case jobs.TellGone:
		delete(j.in, e.Client)
		n.tellGone(e)
	case jobs.WorkerGone:
		n.raylet.box.put(pool.Disconnected{Client: e.Client})
	case jobs.ForgetDriver:
		if o := n.owners[e.Job]; o != nil {
			o.left = true
		}
		if f := n.disk.jobs[e.Job]; f != nil {
			f.driver = nil
		}
	case jobs.Dismiss:
		j.in[e.Client].leave(e.Err)
	case jobs.Expel:
		n.send(e.Client, &wire.Bye{Err: e.Err})
	case jobs.TellOver:
		n.send(e.Client, &wire.Bye{Err: e.Err})
	case jobs.Resume:
		j.resume(e)
	case jobs.StartJob:
		j.started = append(j.started, e.JobStarted)
		n.raylet.box.put(e.JobStarted)
		j.answer(e.Ask, nil)
	case jobs.Remove:
		j.remove(e.Job)
	case jobs.EndProcesses: // templates, of which there are none
	case jobs.CleanUp:
		if o := j.ended[e.Job]; o != nil {
			delete(j.ended, e.Job)
			o.stop()
			delete(n.disk.jobs, e.Job)
		}
	case jobs.Settled:
		j.settled, j.found = true, nil
	case jobs.ToOwner:
		n.toOwner(e.Job, e.Ev)
	case jobs.ToRaylet:
		n.raylet.box.put(e.Ev)
	case jobs.ToStore:
		n.store.box.put(e.Ev)
	case jobs.ToDirectory:
		n.directory.box.put(e.Ev)
	default:
		n.w.fail("the core of jobs asks for a %T, which nobody does", e)
	}
}

func (j *jobShell) knows(job ids.JobID) bool {
	return slices.ContainsFunc(j.started, func(s pool.JobStarted) bool { return s.Job == job })
}

// begin makes an owner known, before its job is to anybody.
func (j *jobShell) begin(o *ownerShell, with func(jobs.Ask) jobs.Event, then func(*errs.Error)) {
	j.coming[o.job] = o
	j.ask(nil, with, then)
}

func (j *jobShell) own(e jobs.Own) {
	o := j.coming[e.Job]
	delete(j.coming, e.Job)
	if o == nil {
		return // it is there
	}
	if e.First != nil {
		o.box.put(e.First)
	}
	j.n.owners[e.Job] = o
}

// letIn makes a client a part of the node.
func (j *jobShell) letIn(e jobs.LetIn) {
	q := j.open[e.Ask]
	if q == nil || q.s == nil {
		return // it was answered before
	}
	s := q.s
	s.job = e.Job
	done := j.in[s.id] == s
	j.in[s.id] = s
	if done {
		return // for the core before
	}
	s.begin()
	j.n.sessions[s.id] = s
	j.n.store.box.put(objectstore.ClientJoined{Client: s.id, PID: s.pid, Job: s.job})
}

func (j *jobShell) resume(e jobs.Resume) {
	if o := j.n.owners[e.Job]; o != nil {
		o.orphan, o.waits = e.Orphan, false
		o.box.put(o.restored(nil)) // other nodes drop what they had of the job's home when it starts again
	}
}

func (j *jobShell) remove(job ids.JobID) {
	if o := j.n.owners[job]; o != nil {
		delete(j.n.owners, job)
		j.ended[job] = o
		j.n.links.ended(job)
		j.n.links.peersOver(job)
	}
	j.started = slices.DeleteFunc(j.started, func(s pool.JobStarted) bool { return s.Job == job })
}

// inventory takes what the store has found of a job whose owner is not there.
func (j *jobShell) inventory(inv objectstore.Inventory) {
	f := jobs.Found{Inventory: inv}
	if !j.settled {
		j.found = append(j.found, f)
	}
	j.box.put(f)
}

// startJob tells the raylet of a job, once.
func (j *jobShell) startJob(job ids.JobID, then func(*errs.Error)) {
	j.ask(nil, func(a jobs.Ask) jobs.Event { return jobs.Start{Ask: a, JobStarted: pool.JobStarted{Job: job}} }, then)
}

// restore starts the owners of the jobs that the last life left, then lets each go on, and opens the door.
func (j *jobShell) restore() {
	n := j.n
	left := n.disk.logged()
	for _, job := range left {
		n.disk.jobs[job].log.reopen()
	}
	var next func(i int)
	next = func(i int) {
		if i < len(left) {
			o := n.startOwner(left[i], true)
			j.begin(o, func(a jobs.Ask) jobs.Event { return jobs.Restored{Ask: a, Job: o.job} }, func(*errs.Error) { next(i + 1) })
			return
		}
		j.recall(left, func() {
			j.ask(nil, func(a jobs.Ask) jobs.Event { return jobs.AllRestored{Ask: a, Names: n.w.tables.used} }, func(*errs.Error) { n.open() })
		})
	}
	next(0)
}

// The patience of a node that has started again.
const (
	rejoinTimeout = 30 * time.Second
	returnGrace   = rejoinTimeout + 5*time.Second
)

// recall lets the owners of restored jobs go on when their drivers are back, or gone.
func (j *jobShell) recall(left []ids.JobID, then func()) {
	if len(left) == 0 {
		then()
		return
	}
	job, life := left[0], j.n.life
	j.startJob(job, func(*errs.Error) {
		alone := func() {
			if o := j.n.owners[job]; o != nil && j.n.life == life {
				o.alone = true
				j.box.put(jobs.Alone{Job: job})
			}
		}
		if d := j.n.disk.jobs[job].driver; d != nil {
			d.watch(returnGrace, alone)
		} else {
			alone()
		}
		j.recall(left[1:], then)
	})
}

// explain says what the core's shell waits for.
func (j *jobShell) explain() string {
	return fmt.Sprintf("%d unanswered asks, %d owners, %d clients", len(j.open), len(j.n.owners), len(j.in))
}
