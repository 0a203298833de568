package raylet

import (
	"fmt"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/pool"
	"mobula/raylet/sched"
	"mobula/wire"
)

// Event is a sched.Event or a pool.Event, by value.
type Event any

// Effect is one of the types below.
type Effect any

// Effects that the node carries out, besides After; their packages describe them.
type (
	// ToOwner is the scheduler's.
	ToOwner = sched.ToOwner
	// SendDrain is the pool's.
	SendDrain = pool.SendDrain
	// StartProcess is the pool's.
	StartProcess = pool.StartProcess
	// KillProcess is the pool's.
	KillProcess = pool.KillProcess
	// Terminate is the pool's.
	Terminate = pool.Terminate
	// Admit is the pool's.
	Admit = pool.Admit
	// Refuse is the pool's.
	Refuse = pool.Refuse
)

// After asks for Ev once D has passed.
type After struct {
	D  time.Duration
	Ev Event
}

// Config configures a Core.
type Config struct {
	Name      string            // of the node, in errors; empty: its home
	Resources []wire.Resource   // what the node has; CPU is needed
	Labels    map[string]string // of the node
	Quantum   time.Duration     // see sched.Config
	Pool      pool.Config       // with CPUs 0: taken from Resources

	FirstLease ids.LeaseID // above every lease ever granted, and of the node's home

	// After a restart.
	Epoch uint64 // new with each restart
	Jobs  []pool.JobStarted
	Live  []pool.Live
}

// Core is the scheduler and the pool. It is not safe for concurrent use.
type Core struct {
	sched  *sched.Core
	pool   *pool.Core
	opened map[ids.JobID]uint64 // pool.JobStarted's Opening of the jobs that have one
	first  []sched.Effect       // effects of the scheduler before the first event
	queue  []any                // effects of either, not yet passed on
	out    []Effect
}

// begin makes a new core emit its first effects.
type begin struct{}

// OfJob is what the owner of a job on another node says to the scheduler. About a lease or a worker of another job it is refused.
type OfJob struct {
	Job   ids.JobID
	Event sched.Event
}

// Refused gives back what an owner may not say.
type Refused struct {
	OfJob
	Err *errs.Error
}

// Inspect runs a function where the core is stepped: for Explain, Workers, Usage and Counters. It
// must change nothing.
type Inspect struct{ Do func(*Core) }

// New makes a core, and the events that must be stepped before any other.
func New(cfg Config) (*Core, []Event, error) {
	if cfg.Pool.CPUs == 0 {
		for _, r := range cfg.Resources {
			if r.Name == sched.CPU {
				cfg.Pool.CPUs = int(max(1, r.Amount/sched.OneCPU))
			}
		}
	}
	sc := sched.Config{Name: cfg.Name, Resources: cfg.Resources, Labels: cfg.Labels, Quantum: cfg.Quantum, FirstLease: cfg.FirstLease, Epoch: cfg.Epoch}
	for _, j := range cfg.Jobs {
		sc.Jobs = append(sc.Jobs, j.Job)
	}
	c := &Core{opened: make(map[ids.JobID]uint64)}
	var err error
	if c.pool, err = pool.New(cfg.Pool); err != nil {
		return nil, nil, err
	}
	if c.sched, c.first, err = sched.New(sc); err != nil {
		return nil, nil, err
	}
	var events []Event
	for _, j := range cfg.Jobs {
		j.Restored = true
		events = append(events, j)
	}
	for _, l := range cfg.Live {
		events = append(events, l)
	}
	return c, append(events, begin{}), nil
}

// Step takes one event and returns its effects. The core owns the slice; it is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	clear(c.out)
	c.out = c.out[:0]
	c.handle(now, ev)
	c.settle(now)
	return c.out
}

func (c *Core) handle(now int64, ev Event) {
	switch ev := ev.(type) {
	case begin:
		c.push(c.first)
		c.first = nil
	case Inspect:
		ev.Do(c)
	case OfJob:
		if err := c.mayNot(ev); err != nil {
			c.out = append(c.out, Refused{ev, err})
		} else {
			c.handle(now, ev.Event)
		}
	case sched.DrainWorker:
		c.pushPool(now, pool.Drain{DrainWorker: ev})
	case sched.KillWorker:
		c.pushPool(now, pool.Kill{KillWorker: ev})
	case pool.JobStarted:
		if ev.Opening > 0 {
			c.opened[ev.Job] = ev.Opening
		}
		c.pushPool(now, ev)
	case pool.JobEnded:
		if ev.Opening < c.opened[ev.Job] {
			break
		}
		delete(c.opened, ev.Job)
		c.push(c.sched.Step(now, sched.DropJob{Job: ev.Job}))
		c.settle(now)
		c.pushPool(now, ev)
	case sched.Event:
		c.push(c.sched.Step(now, ev))
	case pool.Event:
		c.pushPool(now, ev)
	default:
		panic(fmt.Sprintf("raylet: unknown event %T", ev)) // a bug in the program: supervision reports it
	}
}

// mayNot says why an owner may not say something: it is about what another job has. What is about a lease or a worker that is not there any more is ignored later.
func (c *Core) mayNot(ev OfJob) *errs.Error {
	var of ids.JobID
	switch x := ev.Event.(type) {
	case sched.Return:
		of = c.sched.JobOf(x.Lease)
	case sched.BlockCPU:
		of = c.sched.JobOf(x.Lease)
	case sched.UnblockCPU:
		of = c.sched.JobOf(x.Lease)
	case sched.ActorUp:
		of = c.sched.JobOf(x.Lease)
	case sched.DrainWorker:
		of = c.pool.JobOf(x.Worker)
	case sched.KillWorker:
		of = c.pool.JobOf(x.Worker)
	}
	if of == 0 || of == ev.Job {
		return nil
	}
	return errs.New(errs.CodePermission, "the owner of job %v says %T of what job %v has", ev.Job, ev.Event, of)
}

func (c *Core) push(es []sched.Effect) {
	for _, e := range es {
		c.queue = append(c.queue, e)
	}
}

func (c *Core) pushPool(now int64, ev pool.Event) {
	for _, e := range c.pool.Step(now, ev) {
		c.queue = append(c.queue, e)
	}
}

// settle passes the effects of each core to the other until both have none.
func (c *Core) settle(now int64) {
	for i := 0; i < len(c.queue); i++ {
		switch e := c.queue[i].(type) {
		case sched.NeedWorker:
			c.pushPool(now, pool.FromSched{Effect: e})
		case sched.ReleaseWorker:
			c.pushPool(now, pool.FromSched{Effect: e})
		case sched.AdoptLease:
			c.pushPool(now, pool.FromSched{Effect: e})
		case ToOwner:
			if e.Opening = c.opened[e.Job]; e.Opening == 0 {
				c.out = append(c.out, c.queue[i]) // as it is: no copy of it is made
			} else {
				c.out = append(c.out, e)
			}
		case sched.After:
			c.out = append(c.out, After{D: e.D, Ev: e.Ev})
		case pool.ToSched:
			c.push(c.sched.Step(now, e.Event))
		case pool.After:
			c.out = append(c.out, After{D: e.D, Ev: e.Ev})
		default: // for the node
			c.out = append(c.out, e)
		}
	}
	clear(c.queue)
	c.queue = c.queue[:0]
}

// Explain says why a class waits.
func (c *Core) Explain(key sched.ClassKey) sched.Explanation { return c.sched.Explain(key) }

// Workers lists the worker processes.
func (c *Core) Workers() []pool.Info { return c.pool.List() }

// Usage gives what the node has, what is free, and the number of leases.
func (c *Core) Usage() (total, free []wire.Resource, leases int) { return c.sched.Usage() }

// Load writes the node's load over what l has.
func (c *Core) Load(l *sched.Load) { c.sched.Load(l) }

// Counters gives the counters of both.
func (c *Core) Counters() (sched.Counters, pool.Counters) {
	return c.sched.Counters(), c.pool.Counters()
}

// Validate has the scheduler compute its totals again. It looks at every lease: for tests and simulations, between two steps.
func (c *Core) Validate() error { return c.sched.Validate() }

// Unheard tells whether an owner that the scheduler waits for no more is yet to say what it holds: for simulations.
func (c *Core) Unheard() bool { return c.sched.Unheard() }

// CheckResources tells whether amounts given for a node are usable.
func CheckResources(total []wire.Resource) error {
	if _, _, err := sched.New(sched.Config{Resources: total}); err != nil {
		return err
	}
	for _, r := range total {
		if r.Name == sched.CPU && r.Amount > 0 {
			return nil
		}
	}
	return errs.New(errs.CodeInvalid, "a node needs some CPU; give {%q, thousandths}", sched.CPU)
}
