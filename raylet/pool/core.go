package pool

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/queue"
	"mobula/raylet/sched"
	"mobula/wire"
)

// Defaults.
const (
	DefaultStartTimeout = 30 * time.Second // a large binary on a cold, busy disk
	DefaultIdleAfter    = time.Second      // as Ray's idle_worker_killing_time_threshold_ms
	DefaultGrace        = 5 * time.Second
	MaxStartFailures    = 3
	MaxStartKills       = 20 // more than failures: a kill, by a test of faults or for lack of memory, is not the program's fault
)

// Config configures a Core.
type Config struct {
	CPUs        int           // default of Starts and SoftLimit
	Starts      int           // workers that start at once
	SoftLimit   int           // isolated workers kept although idle
	StartTime   time.Duration // 0: DefaultStartTimeout
	IdleAfter   time.Duration // 0: DefaultIdleAfter
	Grace       time.Duration // 0: DefaultGrace
	NewToken    func() []byte // unguessable, different for each call
	FirstWorker ids.WorkerID  // the workers that this core starts have higher ids, all earlier ones lower
}

// Counters count since the core was made.
type Counters struct {
	Started, Exited, Crashed, StartFailures, Idle, Worn, Refused uint64
}

// Core is the pool's state. It is not safe for concurrent use.
type Core struct {
	cfg         Config
	nextID      ids.WorkerID
	jobs        map[ids.JobID]*job
	workers     map[ids.WorkerID]*worker
	byClient    map[ids.ClientID]*worker
	byToken     map[string]*worker
	assignments map[ids.LeaseID]*assignment
	queue       queue.Queue[*worker] // workers to start, in order
	starting    int
	isolated    int // isolated workers that are not draining
	ticking     bool
	stopped     bool
	counters    Counters
	out         []Effect
}

// assignment is the place of a lease: in a worker, or in a group's queue.
type assignment struct {
	lease  ids.LeaseID
	group  *group
	worker *worker // nil: waits
}

// job groups the workers of one job.
type job struct {
	id            ids.JobID
	opening       uint64
	tasks, actors *worker // virtual, if slots are in the driver's process
	system        *worker // virtual: the node's own functions
	isolate       bool
	programs      []Program // the driver's own first
	groups        map[groupKey]*group
}

// program describes the workers of a language; false if the job has no program for it.
func (j *job) program(language string) (Program, bool) {
	for _, p := range j.programs {
		if p.Language == language {
			return p, true
		}
	}
	return Program{}, false
}

// New makes a core.
func New(cfg Config) (*Core, error) {
	if cfg.NewToken == nil || cfg.CPUs < 1 {
		return nil, errs.New(errs.CodeInvalid, "worker pool: CPUs is %d and NewToken given is %v; both are needed", cfg.CPUs, cfg.NewToken != nil)
	}
	set(&cfg.Starts, cfg.CPUs)
	set(&cfg.SoftLimit, cfg.CPUs)
	set(&cfg.StartTime, DefaultStartTimeout)
	set(&cfg.IdleAfter, DefaultIdleAfter)
	set(&cfg.Grace, DefaultGrace)
	return &Core{
		cfg:         cfg,
		nextID:      cfg.FirstWorker,
		jobs:        make(map[ids.JobID]*job),
		workers:     make(map[ids.WorkerID]*worker),
		byClient:    make(map[ids.ClientID]*worker),
		byToken:     make(map[string]*worker),
		assignments: make(map[ids.LeaseID]*assignment),
	}, nil
}

func set[T ~int | ~int64](p *T, def T) {
	if *p <= 0 {
		*p = def
	}
}

// Step takes one event and returns its effects. The core owns the slice; it is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	clear(c.out)
	c.out = c.out[:0]
	switch ev := ev.(type) {
	case FromSched:
		c.onSched(now, ev.Effect)
	case JobStarted:
		c.onJobStarted(ev)
	case JobEnded:
		c.onJobEnded(ev)
	case Registered:
		c.onRegistered(now, ev)
	case StartFailed:
		c.onStartFailed(ev)
	case Exited:
		c.onExited(ev)
	case Disconnected:
		if w := c.byClient[ev.Client]; w != nil && !w.virtual && w.state != Draining {
			w.lost = true
			c.kill(w, nil)
		}
	case Drain:
		c.onDrain(ev.DrainWorker)
	case Worn:
		c.onWorn(ev)
	case Kill:
		if w := c.byClient[ev.Worker]; w != nil && !w.virtual {
			w.peak = ev.Peak
			c.kill(w, ev.Err)
		}
	case Live:
		c.onLive(now, ev)
	case Stop:
		c.onStop()
	case expired:
		c.onExpired(ev)
	case idleTick:
		c.ticking = false
		c.retireIdle(now)
	default:
		panic(fmt.Sprintf("pool: unknown event %T", ev)) // a bug in the program: supervision reports it
	}
	c.startQueued()
	return c.out
}

// Counters gives the counters.
func (c *Core) Counters() Counters { return c.counters }

// JobOf gives the job that a worker runs tasks of, 0 if there is no such worker.
func (c *Core) JobOf(client ids.ClientID) ids.JobID {
	if w := c.byClient[client]; w != nil {
		return w.group.job.id
	}
	return 0
}

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }

func (c *Core) onSched(now int64, e sched.Effect) {
	switch e := e.(type) {
	case sched.NeedWorker:
		c.need(e)
	case sched.ReleaseWorker:
		c.release(now, e.Lease)
	case sched.AdoptLease:
		c.adopt(e)
	default:
		panic(fmt.Sprintf("pool: unknown effect of the scheduler %T", e))
	}
}

func (c *Core) onJobStarted(ev JobStarted) {
	if c.stopped || c.jobs[ev.Job] != nil {
		return
	}
	j := &job{id: ev.Job, opening: ev.Opening, isolate: ev.Isolate, programs: ev.Programs, groups: make(map[groupKey]*group)}
	if len(j.programs) == 0 {
		j.programs = []Program{{Language: wire.LangGo}}
	}
	c.jobs[ev.Job] = j
	if ev.System != 0 {
		j.system = c.virtual(j, groupKey{slot: sched.SlotTask, system: true}, ev.System)
	}
	if ev.Tasks != 0 || ev.Actors != 0 {
		own := j.programs[0].Language
		j.tasks = c.virtual(j, groupKey{language: own, slot: sched.SlotTask}, ev.Tasks)
		j.actors = c.virtual(j, groupKey{language: own, slot: sched.SlotActor}, ev.Actors)
		return
	}
	if !ev.Restored {
		c.enqueue(c.groupIn(j, j.programs[0], sched.NeedWorker{Slot: sched.SlotTask}))
	}
}

// virtual makes the worker that stands for slots in a process that the pool did not start.
func (c *Core) virtual(j *job, k groupKey, client ids.ClientID) *worker {
	g := j.group(k)
	w := &worker{group: g, state: Ready, client: client, virtual: true, assignments: make(map[ids.LeaseID]*assignment)}
	g.workers = append(g.workers, w)
	c.byClient[client] = w
	return w
}

func (c *Core) onJobEnded(ev JobEnded) {
	id := ev.Job
	j := c.jobs[id]
	if j == nil {
		return
	}
	delete(c.jobs, id)
	for _, g := range j.sorted() {
		for _, s := range g.waiting.All() {
			delete(c.assignments, s.lease)
		}
		g.waiting = queue.Queue[*assignment]{}
		for _, w := range g.copyWorkers() {
			busy := ev.Away || len(w.assignments) > 0
			for lease := range w.assignments {
				delete(c.assignments, lease)
			}
			clear(w.assignments)
			if busy {
				c.finish(w) // at once: its CPU counts as free
			} else {
				c.dismiss(w)
			}
		}
	}
}

func (c *Core) onStop() {
	c.stopped = true
	for _, id := range slices.Sorted(maps.Keys(c.jobs)) {
		for _, g := range c.jobs[id].sorted() {
			c.failAll(g, errs.New(errs.CodeShutdown, "the node is stopping"))
		}
	}
	for _, w := range c.sortedWorkers() {
		c.finish(w)
	}
}

// dismiss ends a worker without a lease whose job has ended. It ends by itself, once it is told or its connection has ended, and runs what the program has
// registered for the end of the process. One that still does something for a call that was given up does not hear that: after a while it is asked as finish does.
func (c *Core) dismiss(w *worker) {
	if w.virtual || w.client == 0 || w.state == Queued || w.killed || w.leaving {
		c.finish(w)
		return
	}
	c.setState(w, Draining)
	if !w.exitSent {
		w.exitSent = true
		c.emit(SendDrain{Worker: w.id, Client: w.client})
	}
	w.leaving = true
	c.timer(w, LeaveAlone)
}

// LeaveAlone is how long a worker has to end by itself after its job, or when its node ends.
const LeaveAlone = 100 * time.Millisecond

// finish ends a worker whose work nobody wants: it is asked first, and killed after the grace.
func (c *Core) finish(w *worker) {
	switch {
	case w.virtual:
		delete(c.byClient, w.client)
		w.group.drop(w)
	case w.state == Queued:
		c.unqueue(w)
	default:
		c.setState(w, Draining)
		c.emit(Terminate{Worker: w.id})
		c.timer(w, c.cfg.Grace)
	}
}
