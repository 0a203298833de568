package node

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"mobula/gcs/directory"
	"mobula/internal/errs"
	"mobula/internal/home"
	"mobula/internal/ids"
	"mobula/internal/release"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/wire"
)

// newJob starts the owner of a new job.
func (n *Node) newJob() (ids.JobID, error) {
	number, err := n.home.Next(home.Jobs)
	if err != nil {
		return 0, err
	}
	job := ids.JobID(number)
	o, err := n.startOwner(job)
	if err != nil {
		return 0, err
	}
	n.addOwner(o)
	return job, nil
}

// addOwner makes an owner known, before its job is to anybody.
func (n *Node) addOwner(o *ownerActor) {
	n.jobs.put(o)
	n.toDirectory(directory.JobBegan{Job: o.job})
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
		n.addOwner(o)
		restored = append(restored, o)
	}
	for _, o := range restored { // all are there before one goes on, and asks for another's actor
		if err := n.recall(o); err != nil {
			return err
		}
	}
	if n.gcs.kept {
		n.toDirectory(directory.Reconcile{})
	}
	for _, job := range n.jobs.unowned() {
		n.toStore(objectstore.DropJob{Job: job})
	}
	n.sweepJobDirs()
	return nil
}

// startJob tells the raylet of a job, and remembers it for the raylet's next core.
func (n *Node) startJob(ev pool.JobStarted) error {
	n.mu.Lock()
	known := slices.ContainsFunc(n.started, func(j pool.JobStarted) bool { return j.Job == ev.Job })
	n.mu.Unlock()
	if known {
		return nil // it was restored, and its driver is back
	}
	var err error
	if ev.System, err = n.startExecutor(ev.Job, n.systemFunction); err != nil {
		return err
	}
	n.mu.Lock()
	n.started = append(n.started, ev)
	n.mu.Unlock()
	return n.raylet.Post(ev)
}

func (n *Node) startedJobs() []pool.JobStarted {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.started)
}

func (n *Node) forgetJob(job ids.JobID) {
	n.mu.Lock()
	n.started = slices.DeleteFunc(n.started, func(j pool.JobStarted) bool { return j.Job == job })
	delete(n.returns, job)
	n.mu.Unlock()
	n.dropProgram(job)
}

// loggedJobs are the jobs that have a log in the node's directory.
func loggedJobs(dir string) []ids.JobID { return numbered(filepath.Join(dir, "owner")) }

// sayOver tells drivers of a job that it is over: one that came back too late would wait for
// answers.
func (n *Node) sayOver(job ids.JobID) {
	for _, s := range n.clients.all() {
		if s.job == job && s.role == wire.RoleDriver {
			s.Push(n.jobOver(job))
			s.Flush()
		}
	}
}

func (n *Node) jobOver(job ids.JobID) *wire.Bye {
	return &wire.Bye{Err: errs.New(errs.CodeOwnerDied, "job %v has ended: its driver was gone%s", job, n.whyCut(job))}
}

// jobEnded clears up after a job, of which its owner says that nothing is left.
func (n *Node) jobEnded(job ids.JobID) {
	o := n.jobs.remove(job)
	if o == nil {
		return
	}
	n.forgetJob(job)
	n.sayOver(job)
	n.raylet.Deliver(pool.JobEnded{Job: job})
	n.procs.EndJob(job)
	n.toStore(objectstore.DropJob{Job: job})
	n.toDirectory(directory.JobEnded{Job: job})
	for _, other := range n.jobs.all() {
		other.ref.Deliver(owner.FromOwner{Job: job, Msg: owner.JobGone{}})
	}
	n.mu.Lock()
	locals := n.locals[job]
	delete(n.locals, job)
	n.mu.Unlock()
	n.work.Go(func() { // the owner itself calls, and cannot wait for its own end
		ctx, cancel := context.WithTimeout(context.Background(), n.cfg.CloseTimeout)
		defer cancel()
		n.closeLocals(ctx, locals)
		if err := o.ref.Stop(ctx); err != nil {
			n.cfg.Logger.Warn("the owner of an ended job did not stop", "job", job, "err", err)
		}
		if err := errors.Join(o.log.Remove(), n.dropDriver(job), n.mapped.drop(job)); err != nil {
			n.cfg.Logger.Warn("what was kept of an ended job could not be removed", "job", job, "err", err)
		}
	})
}

// newDriver makes the session of a driver, and its job. The session's number comes first: a job is there only for somebody.
func (n *Node) newDriver(pid int32) (*session, error) {
	id, err := n.home.Next(home.Clients)
	if err != nil {
		return nil, err
	}
	job, err := n.newJob()
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
