package node

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"mobula/actors"
	"mobula/gcs/directory"
	runshell "mobula/graph/run/shell"
	"mobula/internal/errs"
	"mobula/internal/home"
	"mobula/internal/ids"
	"mobula/internal/node/inspect"
	"mobula/internal/node/observe"
	"mobula/internal/registry"
	"mobula/internal/steady"
	"mobula/objectstore"
	storeshell "mobula/objectstore/shell"
	spillshell "mobula/objectstore/spill/shell"
	"mobula/raylet"
	"mobula/raylet/memmon"
	"mobula/raylet/pool/proc"
	"mobula/raylet/sched"
	"mobula/wire"
	"mobula/wire/conn"
)

// Node is a running node.
type Node struct {
	cfg      Config
	dir      string
	lock     *os.File      // by which the directory is ours
	tidy     func() error  // removes from it what is not to stay; nil: all is
	identity string        // of all its lives; immutable
	home     *home.Home    // where the node gives out ids; immutable
	epochs   atomic.Uint64 // of components that were built anew in this life
	clock    steady.Clock  // immutable
	since    int64         // when it began; immutable
	secret   []byte        // of the tokens

	sys       *actors.System
	gcs       *control
	drivers   actors.Sup
	rayletSup actors.Sup
	raylet    *actors.Ref[raylet.Event]
	monitor   *actors.Ref[memmon.Event]
	sampleNow chan struct{} // one token: memory is sampled at once
	procs     *proc.Launcher
	shm       *storeshell.Memory
	asked     uint64 // bytes that the store was to have; immutable once it runs
	spiller   *spillshell.Spiller
	store     *storeshell.Store
	mapped    memories // of the clients in this process
	clients   sessions
	jobs      jobShell
	owners    owners
	directory *actors.Ref[directory.Event]
	socket    *server
	limited   *limited
	lender    conn.Lender // of the workers' connections, to drivers in this process
	obs       *observe.Observer
	requests  requests
	inspect   *inspect.Inspector
	crossings atomic.Uint64 // of references, from job to job

	life    context.Context // ends when Close has stopped the tree
	end     context.CancelFunc
	faults  context.Context // of injected delays: ends when Close begins
	calm    context.CancelFunc
	work    sync.WaitGroup // goroutines of sessions and cold requests
	once    sync.Once
	closing atomic.Bool // Close has begun
	err     error       // of Close; written in once

	mu       sync.Mutex
	system   map[string]*registry.Function // the node's own functions; immutable
	graphs   *runshell.Host                // immutable
	heaped   atomic.Int64                  // bytes of the processes' heaps, lately; counted where there is a memory limit
	programs map[ids.JobID]program         // guarded by mu: what the jobs' workers run
	locals   map[ids.JobID][]closer        // guarded by mu: executors and clients in this process
	stuck    error                         // guarded by mu: what in this process would not end
}

type closer interface {
	Close(ctx context.Context) error
}

// Start runs a node in this process. It is up when Start returns, except for an embedded control
// plane, which starts when it is first asked for a name.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, errors.Join(err, (&Node{cfg: cfg}).release())
	}
	n := &Node{
		cfg: cfg, sampleNow: make(chan struct{}, 1),
		programs: make(map[ids.JobID]program), locals: make(map[ids.JobID][]closer),
		requests: requests{running: make(chan struct{}, maxColdRunning)},
	}
	if err = n.claim(); err != nil {
		return nil, errors.Join(err, n.release())
	}
	if n.identity, err = identityOf(n.dir, cfg.Keep); err != nil {
		return nil, errors.Join(err, n.release())
	}
	if n.clock, err = clockOf(n.dir, cfg.Keep); err != nil {
		return nil, errors.Join(err, n.release())
	}
	if n.secret, err = secretOf(n.dir, cfg.Keep); err != nil {
		return nil, errors.Join(err, n.release())
	}
	n.since = n.clock.Now()
	n.life, n.end = context.WithCancel(context.Background())
	n.obs = n.newObserver()
	n.cfg.Logger = n.obs.Log()
	n.inspect = n.newInspector()
	n.faults, n.calm = context.WithCancel(n.life)
	n.limited = &limited{log: n.cfg.Logger, every: 10 * time.Second}
	n.sys = actors.NewSystem(actors.Config{Clock: actors.RealClock(n.clock), Logger: n.cfg.Logger, Faults: n.kitFaults(), OnEvent: n.componentEvent})
	if err := n.assemble(ctx); err != nil {
		return nil, errors.Join(err, n.Close(ctx))
	}
	return n, nil
}

// assemble starts the tree, in the order in which Close stops it backwards.
func (n *Node) assemble(ctx context.Context) (err error) {
	if len(n.cfg.GCS) > 0 {
		if n.gcs, err = joinControl(n); err != nil {
			return err
		}
	}
	if n.home, err = n.openHome(ctx); err != nil {
		return err
	}
	if err := n.startJobs(); err != nil {
		return err
	}
	if err := n.startDirectory(); err != nil {
		return err
	}
	if n.gcs == nil {
		n.gcs = startControl(n)
	}
	if n.drivers, err = actors.Supervisor(n.sys, "drivers", "drivers", actors.Policy{MaxRestarts: 10, Window: time.Minute}); err != nil {
		return err
	}
	if err := n.startStore(); err != nil {
		return err
	}
	if err := n.startRaylet(); err != nil {
		return err
	}
	if err := n.restoreJobs(); err != nil {
		return err
	}
	if len(n.cfg.GCS) > 0 {
		n.gcs.g.Announce(n.nodeRecord(), n.cfg.Beat)
	}
	return n.listen()
}

// Close stops the node: clients are told, workers end, nothing is left behind but what a
// kept node keeps.
func (n *Node) Close(ctx context.Context) error {
	n.once.Do(func() { n.err = n.close(ctx) })
	return n.err
}

func (n *Node) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.CloseTimeout)
	defer cancel()
	n.closing.Store(true)
	n.calm()
	n.sayBye(func(r wire.Role) bool { return r != wire.RoleWorker })
	n.stopOwners(ctx) // before workers end
	n.sayBye(func(r wire.Role) bool { return r == wire.RoleWorker })
	if n.socket != nil {
		n.socket.close()
	}
	var all []error
	n.mu.Lock()
	locals := n.locals
	n.locals = nil
	n.mu.Unlock()
	for _, cs := range locals {
		n.closeLocals(ctx, cs)
	}
	if n.procs != nil {
		leave, cancel := context.WithTimeout(ctx, n.cfg.CloseTimeout*3/4)
		n.procs.Leave(leave)
		cancel()
		all = append(all, n.procs.Close(ctx))
	}
	keep := n.cfg.Keep && !n.isEmpty(ctx)
	all = append(all, n.sys.StopTree(ctx))
	n.end()
	n.gcs.close()
	for _, s := range n.clients.all() {
		s.Close()
	}
	n.work.Wait()
	if n.spiller != nil {
		all = append(all, n.spiller.Close(ctx))
	}
	n.mu.Lock()
	stuck := n.stuck
	n.mu.Unlock()
	all = append(all, stuck, n.closeStore(stuck == nil, keep))
	if n.home != nil {
		if err := n.home.Close(); err != nil {
			n.cfg.Logger.Warn("ids that were not used could not be given back", "err", err)
		}
	}
	return errors.Join(append(all, n.release())...)
}

// sayBye tells clients that the node stops.
func (n *Node) sayBye(to func(wire.Role) bool) {
	for _, s := range n.clients.all() {
		if to(s.role) {
			s.Push(&wire.Bye{Err: errs.New(errs.CodeShutdown, "node %s is stopping", n.cfg.Name)})
			s.Flush()
		}
	}
}

func (n *Node) toSched(ev sched.Event)         { n.raylet.Deliver(ev) }
func (n *Node) toStore(ev objectstore.Event)   { n.store.Deliver(ev) }
func (n *Node) inlineBudget() int64            { return int64(float64(n.cfg.StoreBytes) * n.cfg.InlineFraction) }
func (n *Node) componentEvent(ev actors.Event) { n.obs.Component(ev) }
