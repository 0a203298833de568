package node

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/guard"
	"mobula/internal/home"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/raylet/pool/proc"
	"mobula/raylet/sched"
	"mobula/wire"
)

// open adds the supervisor of what belongs to the raylet to the tree: beside scheduler and pool the memory monitor, the owners, task graphs, and the
// components of the workers.
func (r *rayletShell) open() (err error) {
	if r.sup, err = actors.Supervisor(r.sys, "raylet", "raylet", actors.Policy{MaxRestarts: 10, Window: time.Minute}); err != nil {
		return err
	}
	if r.cfg.Wires != nil && r.cfg.CPUs == 0 {
		return nil // a node of a cluster may have none: a driver's, or a control-plane server that is to run nobody's code
	}
	return raylet.CheckResources(r.cfg.resources())
}

// start adds scheduler and pool to the tree.
func (r *rayletShell) start() (err error) {
	r.ref, err = actors.Spawn(r.sup, actors.Spec[raylet.Event, raylet.Effect]{
		Kind: "scheduler", Name: "scheduler",
		New:    r.build,
		Do:     r.do,
		Vital:  raylet.Vital,
		Policy: actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	return r.startLauncher()
}

// resources is what the node has to give.
func (c Config) resources() []wire.Resource {
	rs := []wire.Resource{{Name: sched.CPU, Amount: int64(c.CPUs * 1000)}, {Name: "memory", Amount: c.Memory}}
	if c.GPUs > 0 {
		rs = append(rs, wire.Resource{Name: "GPU", Amount: int64(c.GPUs * 1000)})
	}
	for name, amount := range c.Resources {
		rs = append(rs, wire.Resource{Name: name, Amount: amount})
	}
	slices.SortFunc(rs, func(a, b wire.Resource) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	})
	return rs
}

// build makes the core from the jobs and processes there are; the owners tell it of
// their leases.
func (r *rayletShell) build(start actors.Start) (actors.Core[raylet.Event, raylet.Effect], []raylet.Event, error) {
	cfg := raylet.Config{
		Name:       r.cfg.Name,
		Resources:  r.cfg.resources(),
		Labels:     r.cfg.labels(r.numbers.Row().Home),
		FirstLease: r.numbers.lastLease(start.Restart),
		Epoch:      r.numbers.newEpoch(),
		Pool:       pool.Config{CPUs: int(max(1, r.cfg.CPUs)), StartTime: r.cfg.StartTimeout, NewToken: newToken, FirstWorker: ids.WorkerID(r.numbers.Last(home.Workers))},
		Jobs:       r.jobs.startedJobs(),
	}
	if r.procs != nil {
		cfg.Live = r.procs.Live()
	}
	core, first, err := raylet.New(cfg)
	if err != nil || r.links.alone() {
		return core, first, err
	}
	return waking{core, r.chooser.wake}, first, nil
}

func (r *rayletShell) do(self *actors.Ref[raylet.Event], e raylet.Effect) {
	switch e := e.(type) {
	case raylet.ToOwner:
		if g, ok := e.Msg.(sched.Granted); ok {
			r.numbers.granted(g.Lease)
		}
		r.toOwner(e)
	case raylet.Refused:
		r.limited.warn("a message of another node was refused", "node", e.Job.Home(), "err", e.Err)
	case raylet.SendDrain:
		r.procs.Draining(e.Worker) // the next core must not use it
		r.sessions.send(e.Client, &wire.Drain{})
	case raylet.After:
		self.After(e.D, e.Ev)
	case raylet.Admit:
		r.procs.Registered(e.Worker, e.Client)
		r.admitted(e)
	case raylet.Refuse:
		r.jobs.ref.Deliver(jobs.Refuse(e))
	case raylet.StartProcess:
		r.numbers.startedWorker(e.Worker)
		r.procs.Start(e)
		r.monitor.started(e)
	case raylet.KillProcess:
		if !r.closing.Load() { // else its connection is cut while it closes its actors: Close kills what is left
			r.procs.Kill(e.Worker)
		}
	case raylet.Terminate:
		if !r.closing.Load() { // else the node has said goodbye, and the end of its job must not cut short how it closes its actors
			r.procs.Terminate(e.Worker)
		}
	default:
		panic(errs.New(errs.CodeInvalid, "the raylet asks for a %T, which nobody does", e)) // a fault of the program
	}
}

// toOwner passes on what the scheduler says to a job's owner; in a cluster by way of who chooses the node, if the owner is here. What it says of a job
// of another node that was opened again meanwhile is for nobody.
func (r *rayletShell) toOwner(e raylet.ToOwner) {
	m := owner.FromSched{Msg: e.Msg}
	switch self := r.numbers.Row().Home; {
	case r.links.alone():
		r.owners.post(e.Job, m)
	case e.Job.Home() == self:
		r.chooser.deliver(cluster.FromScheduler{Node: self, Job: e.Job, Msg: e.Msg})
	default:
		if a := r.links.agent(e.Job); a != nil && a.opening == e.Opening {
			a.post(m)
		}
	}
}

// admitted lets a worker in that we started. From now on it can be sent to; what is sent waits for the Welcome.
func (r *rayletShell) admitted(e pool.Admit) {
	if err := r.jobs.ask(nil, func(a jobs.Ask) jobs.Event { return jobs.Admit{Ask: a, Client: e.Client, Job: e.Job} }); err != nil {
		r.ref.Deliver(pool.Disconnected{Client: e.Client})
	}
}

// startLauncher makes the launcher of worker processes. Its thread costs nothing until
// the first start.
func (r *rayletShell) startLauncher() (err error) {
	if r.cfg.Keep {
		if k := guard.Sweep(r.identity); k > 0 {
			r.cfg.Logger.Warn("processes that tasks had started, and that an earlier life of this node left, were killed", "processes", k)
		}
	}
	r.procs, err = proc.New(proc.Config{
		Exe: r.cfg.Executable, Args: r.cfg.Args, More: r.cfg.Env,
		Program: r.programs.executable,
		Socket:  r.Address(),
		Node:    r.identity, Log: r.cfg.Logger,
		Mirror: r.cfg.WorkerOutput, MirrorOf: r.links.mirrorOf,
		LogDir: filepath.Join(r.dir, "logs"),
		Post:   func(ev pool.Event) { r.ref.Deliver(ev) },
		Chaos:  r.faults.address(),
	})
	return err
}

// closeProcesses ends the workers: they leave, and those that do not are killed.
func (r *rayletShell) closeProcesses(ctx context.Context) error {
	if r.procs == nil {
		return nil
	}
	leave, cancel := context.WithTimeout(ctx, r.cfg.CloseTimeout*3/4)
	r.procs.Leave(leave)
	cancel()
	return r.killProcesses(ctx)
}

// killProcesses kills the workers that are left.
func (r *rayletShell) killProcesses(ctx context.Context) error {
	if r.procs == nil {
		return nil
	}
	return r.procs.Close(ctx)
}
