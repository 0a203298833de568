package node

import (
	"context"
	"errors"
	"time"

	"mobula/internal/home"
	"mobula/internal/ids"
	"mobula/internal/node/jobfile"
	"mobula/internal/node/jobs"
	"mobula/internal/pidfd"
	"mobula/objectstore"
	"mobula/raylet/pool"
	"mobula/wire"
)

// newJob starts the owner of a new job, whose driver is in this process or not.
func (j *jobShell) newJob(here bool) (ids.JobID, error) {
	number, err := j.numbers.Next(home.Jobs)
	if err != nil {
		return 0, err
	}
	job := ids.JobID(number)
	o, err := j.owners.start(job, false)
	if err != nil {
		return 0, err
	}
	o.here = here
	if err := j.begin(o, func(a jobs.Ask) jobs.Event { return jobs.Began{Ask: a, Job: job, Here: here} }); err != nil {
		j.notBegun(o)
		return 0, err
	}
	return job, nil
}

// notBegun ends a new job that was refused. A core that was lost may have made it known before.
func (j *jobShell) notBegun(o *ownerActor) {
	j.mu.Lock()
	_, coming := j.coming[o.job]
	delete(j.coming, o.job)
	j.mu.Unlock()
	if !coming {
		j.ref.Deliver(jobs.Over{Job: o.job})
		return
	}
	j.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), j.cfg.CloseTimeout)
		defer cancel()
		if err := errors.Join(o.ref.Stop(ctx), o.log.Remove()); err != nil {
			j.cfg.Logger.Warn("the owner of a job that did not begin could not be removed", "job", o.job, "err", err)
		}
	})
}

// restore starts the owners of the jobs that an earlier life of the node left.
func (j *jobShell) restore() error {
	var restored []*ownerActor
	for _, job := range j.files.Logged() {
		_, _, err := j.files.Read(job)
		var o *ownerActor
		if err == nil {
			o, err = j.owners.start(job, true)
		}
		if err != nil && jobfile.IsDamage(err) {
			if err = j.setAside(job, err); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := j.begin(o, func(a jobs.Ask) jobs.Event { return jobs.Restored{Ask: a, Job: job} }); err != nil {
			return err
		}
		restored = append(restored, o)
	}
	for _, o := range restored { // all are there before one goes on, and asks for another's actor
		if err := j.recall(o); err != nil {
			return err
		}
	}
	if err := j.ask(nil, func(a jobs.Ask) jobs.Event { return jobs.AllRestored{Ask: a, Names: j.control.kept} }); err != nil {
		return err
	}
	j.files.Sweep(func(job ids.JobID) bool { return j.owners.get(job) != nil })
	return nil
}

// setAside puts away what is left of a job that cannot come back.
func (j *jobShell) setAside(job ids.JobID, why error) error {
	dir, err := j.files.SetAside(job, why, j.clock.Now())
	if err != nil {
		return err
	}
	j.programs.drop(job)
	j.store.deliver(objectstore.DropJob{Job: job})
	j.cfg.Logger.Error("a job cannot come back and was set aside: its state is damaged, or of a newer version; its objects and actors are lost",
		"job", job, "err", why, "path", dir)
	return nil
}

// returnGrace is how long the owner of a job waits for its driver after the node's restart:
// as long as the driver looks for the node.
const returnGrace = rejoinTimeout + 5*time.Second

// recall lets a restored job's owner go on when its driver is back; at the latest, without it, when the
// driver's process is gone or has not come in time. The raylet knows the job before: it refuses workers to a job that
// it does not know.
func (j *jobShell) recall(o *ownerActor) error {
	f, ok, _ := j.files.Read(o.job) // one that cannot be read has been set aside
	if ok {
		p := program{args: f.Args, said: f.Said, others: f.Others, functions: f.Functions, namespace: f.Namespace, environ: wire.UnpackEnviron(f.Environ)}
		if p.hold(f.Exe) == nil {
			j.programs.set(o.job, p)
		}
	}
	if err := j.locals.startJob(pool.JobStarted{Job: o.job, Programs: j.programs.of(o.job).languages()}); err != nil {
		return err
	}
	j.work.Go(func() {
		if ok && f.Alive() {
			pidfd.Await(j.life, int(f.PID), returnGrace)
		}
		if j.life.Err() == nil {
			o.alone.Store(true)
			j.ref.Deliver(jobs.Alone{Job: o.job})
		}
	})
	return nil
}

// newDriver makes the session of a driver, and its job. The session's number comes first: a job is there only for somebody.
func (j *jobShell) newDriver(pid int32, here bool) (*session, error) {
	id, err := j.numbers.Next(home.Clients)
	if err != nil {
		return nil, err
	}
	job, err := j.newJob(here)
	if err != nil {
		return nil, err
	}
	return j.sessions.of(ids.ClientID(id), wire.RoleDriver, job, pid), nil
}
