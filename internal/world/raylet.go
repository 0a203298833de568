package world

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/raylet/sched"
	"mobula/wire"
)

// rayletShell is the shell of scheduler and pool, and the launcher of processes, which outlives their core.
type rayletShell struct {
	*rayletPart
	core   *raylet.Core
	procs  map[ids.WorkerID]*launched
	tokens uint64
}

// launched is a process that the launcher has started and whose end it has not told yet.
type launched struct {
	pool.Live
	proc *process // nil: it is being started
}

func (n *Node) startRaylet() {
	r := &rayletShell{procs: make(map[ids.WorkerID]*launched)}
	n.raylet = r
	r.rayletPart = &rayletPart{vital: raylet.Vital, build: r.buildCore, do: r.carryOut, check: func() error { return r.core.Validate() }}
	startPart(n, kindRaylet, "raylet", r.rayletPart)
}

func (r *rayletShell) buildCore(restart int) (core[raylet.Event, raylet.Effect], []raylet.Event) {
	n := r.n
	if restart > 0 {
		n.numbers.leases += spareNumbers
	}
	cfg := raylet.Config{
		Resources:  []wire.Resource{{Name: sched.CPU, Amount: int64(n.w.cfg.CPUs) * sched.OneCPU}, {Name: "memory", Amount: 1 << 40}},
		FirstLease: ids.LeaseID(n.home.ID(n.numbers.leases)), Epoch: n.numbers.newEpoch(), Jobs: slices.Clone(n.jobs.started),
		Pool: pool.Config{CPUs: n.w.cfg.CPUs, NewToken: r.newToken, FirstWorker: ids.WorkerID(n.home.ID(n.numbers.workers))},
	}
	for _, id := range slices.Sorted(maps.Keys(r.procs)) {
		cfg.Live = append(cfg.Live, r.procs[id].Live)
	}
	c, first, err := raylet.New(cfg)
	if err != nil {
		n.w.fail("no scheduler: %v", err)
	}
	r.core = c
	return c, first
}

func (r *rayletShell) newToken() []byte {
	r.tokens++
	return binary.BigEndian.AppendUint64(nil, r.n.life<<32|r.tokens)
}

func (r *rayletShell) carryOut(e raylet.Effect) {
	n := r.n
	switch e := e.(type) {
	case raylet.ToOwner:
		if g, ok := e.Msg.(sched.Granted); ok {
			n.numbers.leases = max(n.numbers.leases, uint64(g.Lease)&ids.MaxNumber)
		}
		if !n.alone() && e.Job.Home() == n.home {
			n.chooser.box.put(cluster.FromScheduler{Node: n.home, Job: e.Job, Msg: e.Msg})
			return
		}
		if e.Opening == n.links.agents[e.Job] { // else the job has been opened again meanwhile
			n.toOwner(e.Job, owner.FromSched{Msg: e.Msg})
		}
	case raylet.Refused:
		n.w.fail("%v", e.Err)
	case raylet.SendDrain:
		if l := r.procs[e.Worker]; l != nil {
			l.Draining = true
		}
		n.send(e.Client, &wire.Drain{})
	case raylet.After:
		r.after(e.D, e.Ev)
	case raylet.Admit:
		if l := r.procs[e.Worker]; l != nil {
			l.Client = e.Client
		}
		if err := n.jobs.askNow(func(a jobs.Ask) jobs.Event { return jobs.Admit{Ask: a, Client: e.Client, Job: e.Job} }); err != nil {
			r.box.put(pool.Disconnected{Client: e.Client})
		}
	case raylet.Refuse:
		n.jobs.box.put(jobs.Refuse(e))
	case raylet.StartProcess:
		n.numbers.workers = max(n.numbers.workers, uint64(e.Worker)&ids.MaxNumber)
		r.launch(e)
	case raylet.KillProcess:
		if l := r.procs[e.Worker]; l != nil && l.proc != nil {
			l.proc.kill("it was killed by its node")
		} else if l != nil {
			r.exited(l, pool.Exit{Signal: "killed"})
		}
	case raylet.Terminate:
		if l := r.procs[e.Worker]; l != nil && l.proc != nil {
			l.proc.exit()
		} else if l != nil {
			r.exited(l, pool.Exit{})
		}
	default:
		n.w.fail("the raylet asks for a %T, which nobody does", e)
	}
}

// overdrawn tells whether more CPUs may be in use than there are, since the node's scheduler could not wait for an owner: that one has named what it has late, or is yet to.
func (n *Node) overdrawn() bool {
	_, free, _ := n.raylet.core.Usage()
	return n.raylet.rests() || n.raylet.core.Unheard() || slices.ContainsFunc(free, func(r wire.Resource) bool { return r.Name == sched.CPU && r.Amount < 0 })
}

// launch starts a process, which takes a while. A start may come to nothing.
func (r *rayletShell) launch(s pool.StartProcess) {
	w, life := r.n.w, r.n.life
	l := &launched{Live: pool.Live{StartProcess: s}}
	r.procs[s.Worker] = l
	fails := w.plan.startFails()
	w.after(w.between(200*time.Microsecond, 20*time.Millisecond), func() {
		switch {
		case r.procs[s.Worker] != l, r.n.life != life: // killed meanwhile, or with its node
		case fails:
			r.exited(l, pool.Exit{Signal: "killed"})
		default:
			l.proc = newWorker(w, r.n, s)
			l.PID = l.proc.pid
			l.proc.watch(0, func() { r.exited(l, l.proc.end) })
		}
	})
}

// exited tells the pool of a process' end.
func (r *rayletShell) exited(l *launched, e pool.Exit) {
	if r.procs[l.Worker] != l || r.gone {
		return
	}
	delete(r.procs, l.Worker)
	e.PID = int(l.PID)
	r.box.put(pool.Exited{Worker: l.Worker, Exit: e})
}

// outOfMemory has the raylet end a worker, as the memory monitor does.
func (n *Node) outOfMemory(p *process) {
	n.raylet.box.put(sched.KillWorker{Worker: p.id, Err: errs.New(errs.CodeOutOfMemory, "worker %v was killed: the node is short of memory", p.worker), Peak: 1 << 20})
}
