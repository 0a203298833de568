package node

import (
	"fmt"
	"slices"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/home"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/raylet"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/raylet/sched"
	"mobula/wire"
)

// startRaylet adds the raylet to the tree: scheduler and pool, and beside them the owners
// and the actors of the worker processes.
func (n *Node) startRaylet() error {
	var err error
	if n.rayletSup, err = actors.Supervisor(n.sys, "raylet", "raylet", actors.Policy{MaxRestarts: 10, Window: time.Minute}); err != nil {
		return err
	}
	if err := raylet.CheckResources(n.resources()); err != nil {
		return err
	}
	n.startGraphs()
	n.raylet, err = actors.Spawn(n.rayletSup, actors.Spec[raylet.Event, raylet.Effect]{
		Kind: "scheduler", Name: "scheduler",
		New:    n.buildRaylet,
		Do:     n.doRaylet,
		Policy: actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	if err := n.startProcesses(); err != nil {
		return err
	}
	return n.startMonitor()
}

// resources is what the node has to give.
func (n *Node) resources() []wire.Resource {
	rs := []wire.Resource{{Name: sched.CPU, Amount: int64(n.cfg.CPUs * 1000)}, {Name: "memory", Amount: n.cfg.Memory}}
	if n.cfg.GPUs > 0 {
		rs = append(rs, wire.Resource{Name: "GPU", Amount: int64(n.cfg.GPUs * 1000)})
	}
	for name, amount := range n.cfg.Resources {
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

// buildRaylet makes the core from the jobs and processes there are; the owners tell it of
// their leases.
func (n *Node) buildRaylet(start actors.Start) (actors.Core[raylet.Event, raylet.Effect], []raylet.Event, error) {
	cfg := raylet.Config{
		Resources:  n.resources(),
		FirstLease: n.lastLease(start.Restart),
		Epoch:      n.newEpoch(),
		Pool:       pool.Config{CPUs: int(max(1, n.cfg.CPUs)), StartTime: n.cfg.StartTimeout, NewToken: newToken, FirstWorker: ids.WorkerID(n.home.Last(home.Workers))},
		Jobs:       n.jobs.startedJobs(),
	}
	if n.procs != nil {
		cfg.Live = n.procs.Live()
	}
	core, first, err := raylet.New(cfg)
	return core, first, err
}

func (n *Node) doRaylet(self *actors.Ref[raylet.Event], e raylet.Effect) {
	switch e := e.(type) {
	case raylet.ToOwner:
		if g, ok := e.Msg.(sched.Granted); ok {
			n.granted(g.Lease)
		}
		n.owners.post(e.Job, owner.FromSched{Msg: e.Msg})
	case raylet.SendDrain:
		n.procs.Draining(e.Worker) // the next core must not use it
		n.clients.send(e.Client, &wire.Drain{})
	case raylet.After:
		self.After(e.D, e.Ev)
	case raylet.Admit:
		n.procs.Registered(e.Worker, e.Client)
		n.admitted(e)
	case raylet.Refuse:
		n.jobs.ref.Deliver(jobs.Refuse(e))
	case raylet.StartProcess:
		n.startedWorker(e.Worker)
		n.startProcess(e)
	case raylet.KillProcess:
		if !n.closing.Load() { // else its connection is cut while it closes its actors: Close kills what is left
			n.procs.Kill(e.Worker)
		}
	case raylet.Terminate:
		n.procs.Terminate(e.Worker)
	default:
		panic(errs.New(errs.CodeInvalid, "the raylet asks for a %T, which nobody does", e)) // a fault of the program
	}
}
