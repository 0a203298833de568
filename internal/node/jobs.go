package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/objectstore"
	"mobula/raylet/memmon"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/wire"
)

// start adds the core of jobs to the tree. Everything that knows of a job comes after it, and ends before.
func (j *jobShell) start() (err error) {
	j.in, j.coming, j.ended = make(map[ids.ClientID]*session), make(map[ids.JobID]*ownerActor), make(map[ids.JobID]*ownerActor)
	j.ref, err = actors.Spawn(j.sys, actors.Spec[jobs.Event, jobs.Effect]{
		Kind: "jobs", Name: "jobs",
		New:      j.build,
		Do:       j.do,
		OnPoison: func(_ *actors.Ref[jobs.Event], ev jobs.Event, err error) { j.asks.end(jobs.AskOf(ev), err) },
		Vital:    jobs.Vital,
		Policy:   actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	return err
}

// build makes the core. One that follows another is told what there is.
func (j *jobShell) build(start actors.Start) (actors.Core[jobs.Event, jobs.Effect], []jobs.Event, error) {
	core := jobs.New(j.cfg.Name)
	if start.Restart == 0 {
		return core, nil, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r := jobs.Rebuild{Found: slices.Clone(j.found), Settled: j.settled}
	for _, o := range j.owners.all() {
		r.Jobs = append(r.Jobs, jobs.Job{ID: o.job, Waits: o.waits.Load(), Alone: o.alone.Load(), Orphan: o.orphan.Load(), Left: o.left.Load(), Here: o.here, Started: j.knows(o.job)})
	}
	for _, id := range j.links.hostedJobs() {
		r.Jobs = append(r.Jobs, jobs.Job{ID: id, Away: true, Started: j.knows(id)})
	}
	for _, id := range slices.Sorted(maps.Keys(j.in)) {
		r.Clients = append(r.Clients, j.in[id].client())
	}
	first := append([]jobs.Event{r}, j.asks.unanswered(start)...)
	return core, append(first, jobs.Rebuilt{}), nil
}

// ask has the core step on an event, and waits for its answer.
func (j *jobShell) ask(s *session, with func(jobs.Ask) jobs.Event) error {
	return j.await(j.send(s, with))
}

// send is ask that does not wait.
func (j *jobShell) send(s *session, with func(jobs.Ask) jobs.Event) *question {
	q := j.asks.add(s, with)
	if err := j.ref.SendRun(j.life, q.ev); err != nil {
		j.asks.end(jobs.AskOf(q.ev), err)
	}
	return q
}

func (j *jobShell) await(q *question) error {
	select {
	case <-q.done:
	case <-j.ref.Done(): // nobody answers any more
		j.asks.end(jobs.AskOf(q.ev), errs.New(errs.CodeComponentFailed, "the component of jobs has ended"))
		<-q.done
	}
	return q.err
}

// do carries out one effect.
func (j *jobShell) do(self *actors.Ref[jobs.Event], e jobs.Effect) {
	switch e := e.(type) {
	case jobs.Answer:
		j.asks.end(e.Ask, asError(e.Err))
	case jobs.Own:
		j.own(e)
	case jobs.LetIn:
		j.letIn(self, e)
	case jobs.Introduce:
		j.member(e.Client).meet(e.Job)
		j.owners.post(e.Job, e.ClientJoined)
	case jobs.TellGone:
		j.forget(e.Client)
		for _, job := range e.Jobs {
			j.owners.post(job, owner.ClientGone{Client: e.Client, Err: e.Err})
		}
	case jobs.WorkerGone:
		j.raylet.ref.Deliver(pool.Disconnected{Client: e.Client})
		j.monitor.ref.Deliver(memmon.WorkerGone{Worker: e.Client})
	case jobs.ForgetDriver:
		j.files.Forget(e.Job)
		if o := j.owners.get(e.Job); o != nil {
			o.left.Store(true)
		}
	case jobs.Dismiss:
		j.members.leave(j.member(e.Client), e.Err)
	case jobs.Expel:
		j.sessions.send(e.Client, &wire.Bye{Err: e.Err})
		j.member(e.Client).Close()
	case jobs.TellOver:
		j.sessions.send(e.Client, &wire.Bye{Err: e.Err})
	case jobs.Resume:
		j.owners.resume(e.Job, e.Orphan)
	case jobs.StartJob:
		j.asks.end(e.Ask, j.startJob(e.JobStarted))
	case jobs.Remove:
		j.remove(e.Job)
	case jobs.EndProcesses:
		j.raylet.procs.EndJob(e.Job)
	case jobs.CleanUp:
		j.cleanUp(e)
	case jobs.Settled:
		j.settle()
	case jobs.ToOwner:
		j.owners.post(e.Job, e.Ev)
	case jobs.ToRaylet:
		j.raylet.ref.Deliver(e.Ev)
	case jobs.ToStore:
		j.store.deliver(e.Ev)
	case jobs.ToDirectory:
		j.directory.deliver(e.Ev)
	default:
		panic(errs.New(errs.CodeInvalid, "the core of jobs asks for a %T, which nobody does", e)) // a fault of the program
	}
}

// begin makes an owner known, before its job is to anybody.
func (j *jobShell) begin(o *ownerActor, with func(jobs.Ask) jobs.Event) error {
	j.mu.Lock()
	j.coming[o.job] = o
	j.mu.Unlock()
	return j.ask(nil, with)
}

func (j *jobShell) own(e jobs.Own) {
	j.mu.Lock()
	o := j.coming[e.Job]
	delete(j.coming, e.Job)
	j.mu.Unlock()
	if o == nil {
		return // it is there
	}
	if e.First != nil {
		o.ref.Deliver(e.First)
	}
	j.owners.put(o)
}

// letIn makes a client a part of the node.
func (j *jobShell) letIn(self *actors.Ref[jobs.Event], e jobs.LetIn) {
	s := j.asks.session(e.Ask)
	if s == nil {
		return // it was answered before
	}
	if s.job != e.Job { // a worker, whose job the pool knew
		s.job, s.root = e.Job, ids.RootTask(e.Job, uint64(e.Client))
	}
	j.mu.Lock()
	done := j.in[s.id] == s
	j.in[s.id] = s
	j.mu.Unlock()
	if done {
		return // for the core before
	}
	if err := j.members.start(s); err != nil {
		j.asks.end(e.Ask, err)
		self.Deliver(jobs.Gone{Client: s.id, Nth: s.nth, Err: errs.From(err)})
		return
	}
	j.sessions.add(s)
	j.store.deliver(objectstore.ClientJoined{Client: s.id, PID: s.pid, Job: s.job})
}

// member is a client that was let in.
func (j *jobShell) member(id ids.ClientID) *session {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.in[id]
}

func (j *jobShell) forget(id ids.ClientID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.in, id)
}

// startJob tells the raylet of a job, and remembers it for the raylet's next core.
func (j *jobShell) startJob(ev pool.JobStarted) error {
	j.mu.Lock()
	j.started = append(j.started, ev)
	j.mu.Unlock()
	return j.raylet.ref.Post(ev)
}

// startedJobs are the jobs as the raylet was told.
func (j *jobShell) startedJobs() []pool.JobStarted {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.started)
}

func (j *jobShell) hasStarted(job ids.JobID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.knows(job)
}

// knows tells whether the raylet was told of a job. j.mu is held.
func (j *jobShell) knows(job ids.JobID) bool {
	return slices.ContainsFunc(j.started, func(s pool.JobStarted) bool { return s.Job == job })
}

// inventory takes what the store has found of a job whose owner is not there.
func (j *jobShell) inventory(inv objectstore.Inventory) {
	f := jobs.Found{Inventory: inv}
	j.mu.Lock()
	if !j.settled {
		j.found = append(j.found, f)
	}
	j.mu.Unlock()
	j.ref.Deliver(f)
}

func (j *jobShell) settle() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.settled, j.found = true, nil
}

// remove takes a job that is over out of the tables.
func (j *jobShell) remove(job ids.JobID) {
	if o := j.owners.remove(job); o != nil {
		j.ended[job] = o
		j.links.ended(job)
		j.links.far.over(job)
	}
	j.mu.Lock()
	j.started = slices.DeleteFunc(j.started, func(s pool.JobStarted) bool { return s.Job == job })
	j.mu.Unlock()
	j.programs.drop(job)
	j.blobs.over(job)
}

// cleanUp ends what is left of a job that was removed, beside everything else: its owner has called this, and cannot wait for its own end.
func (j *jobShell) cleanUp(e jobs.CleanUp) {
	o := j.ended[e.Job] // nil: it is on another node
	delete(j.ended, e.Job)
	j.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), j.cfg.CloseTimeout)
		defer cancel()
		j.locals.close(ctx, e.Job)
		var err error
		if o != nil {
			if err := o.ref.Stop(ctx); err != nil {
				j.cfg.Logger.Warn("the owner of an ended job did not stop", "job", e.Job, "err", err)
			}
			err = o.log.Remove()
		}
		err = errors.Join(err, j.files.Drop(e.Job))
		if e.Unmap {
			err = errors.Join(err, j.mapped.drop(e.Job))
		}
		if err != nil {
			j.cfg.Logger.Warn("what was kept of an ended job could not be removed", "job", e.Job, "err", err)
		}
		j.links.clearing.end(e.Job)
	})
}

// asError is an answer as an error.
func asError(err *errs.Error) error {
	if err == nil {
		return nil
	}
	return err
}
