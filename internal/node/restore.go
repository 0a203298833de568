package node

import (
	"path/filepath"

	"mobula/internal/home"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/internal/pidfd"
	"mobula/internal/release"
	"mobula/raylet/pool"
	"mobula/wire"
)

// newJob starts the owner of a new job, whose driver is in this process or not.
func (n *Node) newJob(here bool) (ids.JobID, error) {
	number, err := n.home.Next(home.Jobs)
	if err != nil {
		return 0, err
	}
	job := ids.JobID(number)
	o, err := n.startOwner(job)
	if err != nil {
		return 0, err
	}
	o.here = here
	return job, n.jobs.begin(o, func(a jobs.Ask) jobs.Event { return jobs.Began{Ask: a, Job: job, Here: here} })
}

// restoreJobs starts the owners of the jobs that an earlier life of the node left.
func (n *Node) restoreJobs() error {
	var restored []*ownerActor
	for _, job := range loggedJobs(n.dir) {
		_, _, err := n.driverOf(job)
		var o *ownerActor
		if err == nil {
			o, err = n.startOwner(job)
		}
		if err != nil && isDamage(err) {
			if err = n.setAside(job, err); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := n.jobs.begin(o, func(a jobs.Ask) jobs.Event { return jobs.Restored{Ask: a, Job: job} }); err != nil {
			return err
		}
		restored = append(restored, o)
	}
	for _, o := range restored { // all are there before one goes on, and asks for another's actor
		if err := n.recall(o); err != nil {
			return err
		}
	}
	if err := n.jobs.ask(nil, func(a jobs.Ask) jobs.Event { return jobs.AllRestored{Ask: a, Names: n.gcs.kept} }); err != nil {
		return err
	}
	n.sweepJobDirs()
	return nil
}

// recall lets a restored job's owner go on when its driver is back; at the latest, without it, when the
// driver's process is gone or has not come in time. The raylet knows the job before: it refuses workers to a job that
// it does not know.
func (n *Node) recall(o *ownerActor) error {
	f, ok, _ := n.driverOf(o.job) // one that cannot be read has been set aside
	if ok {
		p := program{args: f.Args, said: f.Said, others: f.Others, functions: f.Functions, namespace: f.Namespace, environ: wire.UnpackEnviron(f.Environ)}
		if p.hold(f.Exe) == nil {
			n.setProgram(o.job, p)
		}
	}
	if err := n.startJob(pool.JobStarted{Job: o.job, Programs: n.programOf(o.job).languages()}); err != nil {
		return err
	}
	n.work.Go(func() {
		if ok && f.alive() {
			pidfd.Await(n.life, int(f.PID), returnGrace)
		}
		if n.life.Err() == nil {
			o.alone.Store(true)
			n.jobs.ref.Deliver(jobs.Alone{Job: o.job})
		}
	})
	return nil
}

// startJob makes a job known to the raylet, if it is not: one that was restored is, when its driver is back.
func (n *Node) startJob(ev pool.JobStarted) error {
	if n.jobs.hasStarted(ev.Job) {
		return nil
	}
	var err error
	if ev.System, err = n.startExecutor(ev.Job, n.systemFunction); err != nil {
		return err
	}
	return n.jobs.ask(nil, func(a jobs.Ask) jobs.Event { return jobs.Start{Ask: a, JobStarted: ev} })
}

// loggedJobs are the jobs that have a log in the node's directory.
func loggedJobs(dir string) []ids.JobID { return numbered(filepath.Join(dir, "owner")) }

// newDriver makes the session of a driver, and its job. The session's number comes first: a job is there only for somebody.
func (n *Node) newDriver(pid int32, here bool) (*session, error) {
	id, err := n.home.Next(home.Clients)
	if err != nil {
		return nil, err
	}
	job, err := n.newJob(here)
	if err != nil {
		return nil, err
	}
	return n.sessionOf(ids.ClientID(id), wire.RoleDriver, job, pid), nil
}

func (n *Node) newSession(role wire.Role, job ids.JobID, pid int32) (*session, error) {
	id, err := n.home.Next(home.Clients)
	if err != nil {
		return nil, err
	}
	return n.sessionOf(ids.ClientID(id), role, job, pid), nil
}

func (n *Node) sessionOf(id ids.ClientID, role wire.Role, job ids.JobID, pid int32) *session {
	s := makeSession(id, role, job, pid)
	s.faults = n.faultsOf(s)
	return s
}

func (n *Node) welcomeFor(s *session, namespace string) *wire.Welcome {
	return &wire.Welcome{
		Version: wire.Version, Client: s.id, Node: n.cfg.Name, Job: s.job, Root: s.root,
		SegmentSize: n.cfg.StoreBytes, InlineMax: uint32(n.cfg.InlineMax), Namespace: namespace, Slots: int32(max(1, n.cfg.CPUs)),
		TraceMillionths: n.cfg.traceMillionths(), JobDir: n.jobDir(s.job), Release: release.Version,
		Clock: n.clock.Offset(),
	}
}
