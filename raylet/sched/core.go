package sched

import (
	"cmp"
	"container/list"
	"fmt"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/queue"
	"mobula/wire"
)

// Defaults.
const (
	DefaultQuantum       = 10 * time.Millisecond // short compared with what a user notices, long compared with a lease's round trip
	DefaultResyncTimeout = 15 * time.Second      // an owner that is restarted too waits for its clients first, for 10 s at most
	maxIdleSlots         = 1024                  // running leases of a class that asks for no resource
)

// Config configures a Core.
type Config struct {
	Name      string            // of the node, in errors; empty: its home
	Resources []wire.Resource   // of the node, in thousandths; memory in bytes
	Labels    map[string]string // of the node
	Quantum   time.Duration     // 0: DefaultQuantum
	// FirstLease is a number below all leases of this core, and of its home. After a restart of the core it must not be below any
	// earlier lease: numbers are never used twice.
	FirstLease ids.LeaseID

	// After a restart: the jobs whose owners must be asked for their Holdings, under an epoch
	// that was not used before.
	Jobs          []ids.JobID
	Epoch         uint64
	ResyncTimeout time.Duration // 0: DefaultResyncTimeout
}

// Counters count since the core was made.
type Counters struct {
	Requests   uint64 // wants above zero
	Grants     uint64
	Reclaims   uint64
	Returns    uint64
	Revoked    uint64
	Blocks     uint64
	Resumes    uint64
	Infeasible uint64
}

// Core is the scheduler's state. It is not safe for concurrent use.
type Core struct {
	res      *resources
	home     ids.Home
	name     string
	labels   map[string]string
	quantum  int64
	nextID   ids.LeaseID
	leases   map[ids.LeaseID]*lease
	byJob    map[ids.JobID]*job
	jobs     list.List           // of *job with waiting classes, the next to be served first
	resuming queue.Queue[*lease] // in order of their UnblockCPU
	active   leaseList           // leases that can be reclaimed, or were
	head     *class              // the class for which free resources are collected

	waitingNoCPU int // waiting classes that ask for no CPU
	running      int // leases starting or running, without lifetime leases of actors
	paused       bool
	exhausted    []*class // classes whose backlog is used up
	wake         int64    // when the next Tick is due; 0: none
	resync       resync
	pass         pass
	counters     Counters
	out          []Effect
}

// New makes a core and its first effects: Resync to the owners of cfg.Jobs.
func New(cfg Config) (*Core, []Effect, error) {
	if err := checkTotal(cfg.Resources); err != nil {
		return nil, nil, err
	}
	c := &Core{
		res:     newResources(cfg.Resources),
		home:    cfg.FirstLease.Home(),
		name:    cmp.Or(cfg.Name, cfg.FirstLease.Home().String()),
		labels:  cfg.Labels,
		quantum: int64(cfg.Quantum),
		nextID:  cfg.FirstLease,
		leases:  make(map[ids.LeaseID]*lease),
		byJob:   make(map[ids.JobID]*job),
	}
	if c.quantum <= 0 {
		c.quantum = int64(DefaultQuantum)
	}
	c.startResync(cfg)
	return c, c.out, nil
}

func checkTotal(total []wire.Resource) error {
	for i, r := range total {
		if r.Name == "" || r.Amount < 0 {
			return errs.New(errs.CodeInvalid, "node resource %q: amount %s; give a name and an amount that is not negative", r.Name, Amount(r.Name, r.Amount))
		}
		if slices.ContainsFunc(total[:i], func(o wire.Resource) bool { return o.Name == r.Name }) {
			return errs.New(errs.CodeInvalid, "node resource %q is given twice", r.Name)
		}
	}
	return nil
}

// Step takes one event and returns its effects. The core owns the slice; it is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	clear(c.out)
	c.out = c.out[:0]
	switch ev := ev.(type) {
	case Want:
		c.onWant(ev)
	case Return:
		c.onReturn(ev)
	case BlockCPU:
		if l := c.leases[ev.Lease]; l != nil && c.move(now, l, onBlock) {
			c.counters.Blocks++
			c.restore(l.class, false)
		}
	case UnblockCPU:
		c.onUnblock(now, ev)
	case DropJob:
		c.onDropJob(ev.Job)
	case ActorUp:
		if l := c.leases[ev.Lease]; l != nil && l.class.kind == wire.TaskActorCreate && !l.up {
			c.move(now, l, onUp)
		}
	case OwnerRestarted:
		c.onOwnerRestarted(ev)
	case Holdings:
		c.onHoldings(now, ev)
	case WorkerReady:
		c.onWorkerReady(now, ev)
	case NoWorker:
		c.onNoWorker(ev)
	case WorkerGone:
		for _, id := range ev.Leases {
			c.revoke(id, ev)
		}
	case WorkerDraining:
		for _, id := range ev.Leases {
			if l := c.leases[id]; l != nil && l.state != Starting {
				c.reclaimLease(l)
			}
		}
	case SetResources:
		c.onResources(ev)
	case SetPaused:
		c.paused = ev.On
	case Tick:
		c.wake = 0
		c.refill(now)
	case resyncOver:
		if ev == c.resync.over {
			c.resync.noteLate()
		}
	default:
		panic(fmt.Sprintf("sched: unknown event %T", ev)) // a bug in the program: supervision reports it
	}
	c.schedule(now)
	if c.resync.overdrew {
		c.resync.overdrew = slices.ContainsFunc(c.res.free, func(n int64) bool { return n < 0 })
	}
	return c.out
}

// JobOf gives the job that has a lease, 0 if there is no such lease.
func (c *Core) JobOf(id ids.LeaseID) ids.JobID {
	if l := c.leases[id]; l != nil {
		return l.class.key.Job
	}
	return 0
}

// Counters gives the counters.
func (c *Core) Counters() Counters { return c.counters }

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }

func (c *Core) tell(j ids.JobID, m OwnerMsg) { c.emit(ToOwner{Job: j, Msg: m}) }

func (c *Core) onWant(ev Want) {
	cl := c.find(ev.Key)
	if cl == nil {
		if ev.Backlog <= 0 {
			return
		}
		cl = c.classOf(ev.Key, ev.Opts, ev.Kind)
	}
	c.want(cl, max(ev.Backlog, 0))
	if cl.lastWant == 0 {
		c.cancelStarting(cl)
		c.forget(cl)
	}
}

// cancelStarting ends the leases that wait for a worker: nobody wants them any more.
func (c *Core) cancelStarting(cl *class) {
	for _, l := range slices.Clone(cl.leases) {
		if l.state == Starting {
			c.emit(ReleaseWorker{Lease: l.id})
			c.end(l)
		}
	}
}

func (c *Core) onReturn(ev Return) {
	l := c.leases[ev.Lease]
	if l == nil || l.state == Starting {
		return
	}
	c.counters.Returns++
	cl, reclaimed := l.class, l.reclaimed
	c.emit(ReleaseWorker{Lease: l.id})
	c.end(l)
	if reclaimed {
		c.toBack(cl)
	}
	c.restore(cl, reclaimed)
	c.forget(cl)
}

// restore adds one to the backlog of a class that still wants: the lease that ended or blocked had taken one off,
// and the owner does not repeat its Want.
func (c *Core) restore(cl *class, takenAway bool) {
	if cl.lastWant > 0 && (takenAway || cl.running == 0 && cl.backlog == 0) {
		cl.backlog++
		cl.refillAt = 0
		c.place(cl)
	}
}

func (c *Core) onUnblock(now int64, ev UnblockCPU) {
	l := c.leases[ev.Lease]
	if l == nil {
		return
	}
	if l.state == Running { // it has given nothing back
		c.counters.Resumes++
		c.tell(l.class.key.Job, Resumed{Lease: l.id, Ask: ev.Ask})
		return
	}
	first := l.state == Blocked
	if !slices.Contains(l.asks, ev.Ask) && c.move(now, l, onUnblock) {
		l.asks = append(l.asks, ev.Ask)
		if first {
			c.resuming.Push(l)
		}
	}
}

func (c *Core) onDropJob(id ids.JobID) {
	c.resynced(id)
	j := c.byJob[id]
	if j == nil {
		return
	}
	for _, cl := range sortedClasses(j) {
		c.unqueue(cl)
		for _, l := range slices.Clone(cl.leases) {
			c.emit(ReleaseWorker{Lease: l.id})
			c.end(l)
		}
	}
	delete(c.byJob, id)
}

func (c *Core) onWorkerReady(now int64, ev WorkerReady) {
	l := c.leases[ev.Lease]
	if l == nil || !c.move(now, l, onWorker) {
		return // the lease has ended meanwhile; its release is on its way to the pool
	}
	l.worker = ev.Worker
	if cl := l.class; cl.refillAt != 0 {
		cl.refillAt = now + c.quantum // in which the owner may say that this was the last one
		c.wakeAt(now, cl.refillAt)
	}
	c.counters.Grants++
	c.tell(l.class.key.Job, Granted{Key: l.class.key, Lease: l.id, Worker: ev.Worker})
}

func (c *Core) onNoWorker(ev NoWorker) {
	l := c.leases[ev.Lease]
	if l == nil || l.state != Starting {
		return
	}
	cl := l.class
	c.end(l)
	if cl.lastWant > 0 {
		cl.lastWant, cl.backlog, cl.refillAt = 0, 0, 0
		c.place(cl)
		c.tell(cl.key.Job, Infeasible{Key: cl.key, Err: ev.Err})
		c.counters.Infeasible++
	}
	c.forget(cl)
}

func (c *Core) revoke(id ids.LeaseID, ev WorkerGone) {
	l := c.leases[id]
	if l == nil {
		return
	}
	cl := l.class
	if l.state != Starting {
		c.counters.Revoked++
		c.tell(cl.key.Job, Revoked{Lease: id, Worker: ev.Worker, Err: ev.Err, Peak: ev.Peak})
	}
	c.end(l)
	c.restore(cl, true)
	c.forget(cl)
}

func (c *Core) onResources(ev SetResources) {
	if checkTotal(ev.Total) != nil {
		return // the node checks its configuration before it sends this
	}
	c.res.setTotal(ev.Total)
	c.recheckAll()
}

// end removes a lease from every table.
func (c *Core) end(l *lease) {
	c.move(0, l, onEnd)
	if len(l.asks) > 0 {
		c.resuming.DeleteFunc(func(o *lease) bool { return o == l })
	}
	ls := l.class.leases
	last := ls[len(ls)-1]
	ls[l.at], last.at = last, l.at
	ls[len(ls)-1] = nil
	l.class.leases = ls[:len(ls)-1]
	delete(c.leases, l.id)
}
