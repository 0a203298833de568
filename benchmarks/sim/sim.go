package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"mobula/internal/ids"
	"mobula/internal/vclock"
	"mobula/raylet/cluster"
	"mobula/raylet/sched"
	"mobula/wire"
)

// Config is what a run is of.
type Config struct {
	Nodes, CPUs int
	Owners      int // the first nodes have one each, with as many of the tasks
	Tasks       int
	Median      time.Duration
	Sigma       float64 // of the logarithm of a task's time
	Local       float64 // the share of the tasks that have arguments, each on one node
	ArgBytes    uint64
	Bandwidth   float64 // bytes a second
	Latency     time.Duration
	WorkerStart time.Duration
	LeaseIdle   time.Duration
	Seed        uint64
}

// defaults is the job that make sim runs, but for how many nodes there are.
func defaults() Config {
	return Config{
		CPUs: 4, Owners: 1, Tasks: 1_000_000, Median: 50 * time.Millisecond, Sigma: 0.5, Local: 0.2, ArgBytes: 10 << 20, Bandwidth: 1 << 30,
		Latency: 200 * time.Microsecond, WorkerStart: 10 * time.Millisecond, LeaseIdle: 500 * time.Millisecond, Seed: 1,
	}
}

// Result is what came of it.
type Result struct {
	Makespan, Bound, Greedy time.Duration
	Real                    time.Duration // of the whole simulation
	Choosing                time.Duration // real, in the cores that choose nodes
	Leases                  int           // granted
	Messages                int           // between nodes about leases
	Reports, ReportBytes    float64       // of a node and second
	Local, Moved            int
}

// sim is a cluster.
type sim struct {
	vclock.Clock
	cfg      Config
	rnd      *rand.Rand
	nodes    []*node
	owners   []*owner
	left     int // tasks that have not ended
	leases   int
	messages int
	report   int // size of one as a message, in bytes
	reports  reports
	choosing time.Duration
}

// Run runs all tasks to their end.
func Run(cfg Config) (Result, error) {
	begun := time.Now()
	s := &sim{cfg: cfg, rnd: rand.New(rand.NewPCG(cfg.Seed, 1)), left: cfg.Tasks}
	all := s.draw()
	for i := range cfg.Nodes {
		if err := s.newNode(ids.Home(i+1), i < cfg.Owners); err != nil {
			return Result{}, err
		}
	}
	for i := range cfg.Owners {
		var tasks []task
		for j := i; j < len(all); j += cfg.Owners {
			tasks = append(tasks, all[j])
		}
		o := s.newOwner(s.nodes[i], 1, tasks)
		s.nodes[i].owner = o
		s.owners = append(s.owners, o)
	}
	if err := s.meet(); err != nil {
		return Result{}, err
	}
	for _, o := range s.owners {
		o.want()
	}
	for s.left > 0 {
		if !s.Next() {
			return Result{}, fmt.Errorf("sim: %d of %d tasks are left and nothing is under way", s.left, cfg.Tasks)
		}
	}
	slots := cfg.Nodes * cfg.CPUs
	r := Result{Makespan: time.Duration(s.Now()), Choosing: s.choosing, Leases: s.leases, Messages: s.messages, Real: time.Since(begun),
		Bound: bound(all, slots), Greedy: greedy(all, slots)}
	each := float64(cfg.Nodes) * r.Makespan.Seconds()
	r.Reports, r.ReportBytes = float64(s.reports.told)/each, float64(s.reports.bytes)/each
	for _, o := range s.owners {
		r.Local, r.Moved = r.Local+o.local, r.Moved+o.moved
	}
	return r, nil
}

// draw draws the tasks.
func (s *sim) draw() []task {
	out := make([]task, s.cfg.Tasks)
	for i := range out {
		out[i].runs = time.Duration(float64(s.cfg.Median) * math.Exp(s.cfg.Sigma*s.rnd.NormFloat64()))
		if s.rnd.Float64() < s.cfg.Local {
			out[i].args = ids.Home(1 + s.rnd.IntN(s.cfg.Nodes))
		}
	}
	return out
}

// node is a scheduler, and the core of one that has an owner.
type node struct {
	s        *sim
	id       ids.Home
	sched    *sched.Core
	core     *cluster.Core
	reporter *cluster.Reporter
	owner    *owner
	started  map[ids.JobID]int // workers, of each job
	worker   uint64
}

func (s *sim) newNode(id ids.Home, decides bool) error {
	n := &node{s: s, id: id, reporter: cluster.NewReporter(id, nil, 0), started: map[ids.JobID]int{}}
	var err error
	total := []wire.Resource{{Name: sched.CPU, Amount: int64(s.cfg.CPUs) * sched.OneCPU}}
	if n.sched, _, err = sched.New(sched.Config{Resources: total, FirstLease: ids.LeaseID(id.ID(0))}); err != nil {
		return err
	}
	if decides {
		cfg := cluster.CoreConfig{Config: cluster.DefaultConfig(), Self: id, Random: rand.New(rand.NewPCG(s.cfg.Seed, uint64(id)))}
		if n.core, err = cluster.New(cfg); err != nil {
			return err
		}
	}
	s.nodes = append(s.nodes, n)
	return nil
}

// way is how long a message takes.
func (n *node) way(to ids.Home) time.Duration {
	if to == n.id {
		return 0
	}
	n.s.messages++
	return n.s.cfg.Latency
}

// step steps the core that chooses nodes.
func (n *node) step(ev cluster.Event) {
	begun := time.Now()
	out := n.core.Step(n.s.Now(), ev)
	n.s.choosing += time.Since(begun)
	for _, e := range out {
		switch e := e.(type) {
		case cluster.ToScheduler:
			to := n.s.nodes[e.Node-1]
			n.s.After(n.way(e.Node), func() { to.schedule(e.Event) })
		case cluster.ToOwner:
			n.s.After(0, func() { n.owner.handle(e.Msg) })
		case cluster.CloseJob:
			n.s.After(2*n.way(e.Node), func() { n.step(cluster.JobClosed(e)) })
		case cluster.After:
			n.s.After(e.D, func() { n.step(cluster.Timer{}) })
		}
	}
}

// schedule steps the scheduler.
func (n *node) schedule(ev sched.Event) {
	for _, e := range n.sched.Step(n.s.Now(), ev) {
		switch e := e.(type) {
		case sched.ToOwner:
			if _, ok := e.Msg.(sched.Granted); ok {
				n.s.leases++
			}
			to := n.s.nodes[e.Job.Home()-1]
			n.s.After(n.way(to.id), func() { to.step(cluster.FromScheduler{Node: n.id, Job: e.Job, Msg: e.Msg}) })
		case sched.NeedWorker:
			d := time.Duration(0)
			if n.started[e.Job] < n.s.cfg.CPUs {
				n.started[e.Job]++
				d = n.s.cfg.WorkerStart
			}
			n.worker++
			n.s.After(d, func() { n.schedule(sched.WorkerReady{Lease: e.Lease, Worker: ids.ClientID(n.id.ID(n.worker))}) })
		case sched.After:
			n.s.After(e.D, func() { n.schedule(e.Ev) })
		}
	}
}
