package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"mobula/actors"
	"mobula/internal/client"
	"mobula/internal/direct/shell"
	"mobula/internal/ids"
	"mobula/internal/inbox"
	"mobula/internal/node/dealing"
	"mobula/internal/node/gather"
	"mobula/internal/node/inspect"
	"mobula/internal/node/jobfile"
	"mobula/internal/node/link"
	"mobula/internal/steady"
	"mobula/internal/trust"
	"mobula/internal/trust/join"
	"mobula/raylet/internode"
	"mobula/remote/clocks"
	"mobula/remote/membership"
	"mobula/wire"
)

// Node is a running node: its parts, each of which has what it uses (compose), and their start and end.
type Node struct {
	*base
	place   place
	numbers numbers
	faults  injector

	sessions sessions // who is connected, and how
	members  members
	door     door
	router   router
	requests requests
	locals   locals
	mapped   memories

	jobs     jobShell // what jobs there are
	owners   owners
	programs programs

	control   control // the components beside them
	directory directoryShell
	store     storeShell
	raylet    rayletShell
	monitor   monitor
	graphs    graphs

	wired     wired     // how it is one of a cluster
	links     links     // what it has with other nodes
	far       farOwners // the owners of jobs of other nodes
	questions questions
	chooser   chooser
	blobs     blobShell

	inspect *inspect.Inspector
	renames bool // it goes on with a name that it was told once, and that another node may have been given since

	once sync.Once
	err  error // of Close; written in once
}

// Start runs a node in this process. It is up when Start returns, except for an embedded control
// plane, which starts when it is first asked for a name.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	n := &Node{base: &base{cfg: cfg}}
	if err == nil {
		err = n.claim()
	}
	if err != nil {
		return nil, errors.Join(err, n.release())
	}
	n.compose()
	if err := n.assemble(ctx); err != nil {
		return nil, errors.Join(err, n.Close(ctx))
	}
	return n, nil
}

// claim takes the directory, and reads what it says of the node's earlier lives.
func (n *Node) claim() (err error) {
	if err = n.place.claim(n.cfg); err != nil {
		return err
	}
	n.dir = n.place.dir
	if n.identity, err = identityOf(n.dir, n.cfg.Keep); err != nil {
		return err
	}
	if err = n.name(); err != nil {
		return err
	}
	if n.clock = n.cfg.Clock; n.clock == (steady.Clock{}) {
		if n.clock, err = clockOf(n.dir, n.cfg.Keep); err != nil {
			return err
		}
	}
	n.door.secret, err = secretOf(n.dir, n.cfg.Keep)
	return err
}

// compose makes the parts, and gives each what it uses. None runs yet.
func (n *Node) compose() {
	b := n.base
	b.since = b.clock.Now()
	b.life, b.end = context.WithCancel(context.Background())
	b.obs = n.newObserver()
	b.cfg.Logger = b.obs.Log()
	b.limited = &limited{log: b.cfg.Logger, every: 10 * time.Second}
	b.files = &jobfile.Dir{Path: b.dir, Keep: b.cfg.Keep, Warn: b.limited.warn}
	n.faults = injector{base: b, router: &n.router}
	n.faults.delays, n.faults.calm = context.WithCancel(b.life)
	b.sys = actors.NewSystem(actors.Config{Clock: actors.RealClock(b.clock), Logger: b.cfg.Logger, Faults: n.faults.ofKit(), OnEvent: n.component})

	n.inspect = n.newInspector()
	n.numbers = numbers{limited: b.limited}
	n.sessions = sessions{numbers: &n.numbers, faults: &n.faults}
	n.members = members{base: b, sessions: &n.sessions, jobs: &n.jobs, raylet: &n.raylet}
	n.door = door{
		base: b, secret: n.door.secret, sessions: &n.sessions, members: &n.members, owners: &n.owners, jobs: &n.jobs, programs: &n.programs, locals: &n.locals,
		raylet: &n.raylet, store: &n.store, router: &n.router,
	}
	n.router = router{
		base: b, numbers: &n.numbers, owners: &n.owners, store: &n.store, raylet: &n.raylet, jobs: &n.jobs, members: &n.members, requests: &n.requests, links: &n.links, far: &n.far,
	}
	n.requests = requests{
		base: b, numbers: &n.numbers, control: &n.control, graphs: &n.graphs, wired: &n.wired, inspect: n.inspect, links: &n.links, questions: &n.questions, blobs: &n.blobs,
		running: make(chan struct{}, maxColdRunning),
	}
	n.questions = questions{
		base: b, links: &n.links, requests: &n.requests, answering: make(chan struct{}, maxColdRunning), open: make(map[uint64]*inbox.Inbox[gather.Event]),
		asked: make(map[ids.Home]int),
	}
	n.locals = locals{
		base: b, faults: &n.faults, sessions: &n.sessions, members: &n.members, router: &n.router, jobs: &n.jobs, programs: &n.programs, mapped: &n.mapped,
		graphs: &n.graphs, running: make(map[ids.JobID][]closer),
	}
	if !b.cfg.CallsByOwner && (!b.cfg.Processes || b.cfg.Channels) {
		n.locals.boxes = new(shell.Mailboxes)
	}
	n.mapped = memories{segment: n.store.segment}
	n.jobs = jobShell{
		base: b, numbers: &n.numbers, sessions: &n.sessions, members: &n.members, owners: &n.owners, programs: &n.programs, mapped: &n.mapped, locals: &n.locals,
		control: &n.control, directory: &n.directory, store: &n.store, raylet: &n.raylet, monitor: &n.monitor, links: &n.links, blobs: &n.blobs,
	}
	n.owners = owners{
		base: b, numbers: &n.numbers, sessions: &n.sessions, router: &n.router, store: &n.store, raylet: &n.raylet, directory: &n.directory, jobs: &n.jobs,
		links: &n.links, chooser: &n.chooser,
	}
	n.control = control{base: b, numbers: &n.numbers, wired: &n.wired, ready: make(chan struct{})}
	n.directory = directoryShell{base: b, numbers: &n.numbers, control: &n.control, owners: &n.owners, jobs: &n.jobs}
	n.store = storeShell{base: b, numbers: &n.numbers, links: &n.links, faults: &n.faults, sessions: &n.sessions, owners: &n.owners, jobs: &n.jobs}
	n.raylet = rayletShell{
		base: b, faults: &n.faults, numbers: &n.numbers, sessions: &n.sessions, owners: &n.owners, jobs: &n.jobs, programs: &n.programs, monitor: &n.monitor,
		links: &n.links, chooser: &n.chooser,
	}
	known := newLives()
	n.links = links{
		base: b, numbers: &n.numbers, sessions: &n.sessions, owners: &n.owners, router: &n.router, jobs: &n.jobs, programs: &n.programs, store: &n.store,
		raylet: &n.raylet, chooser: &n.chooser, wired: &n.wired, far: &n.far, questions: &n.questions, blobs: &n.blobs, lender: &n.locals.lender, boxes: make(map[ids.Home]*link.Box), decoders: make(map[ids.Home]*internode.Decoder),
		agents: make(map[ids.JobID]*agent), clearing: newClearing(), clocks: clocks.New(), names: make(map[ids.Home]string),
		opened: make(map[ids.JobID][]ids.Home), lives: known,
	}
	n.far = farOwners{base: b, numbers: &n.numbers, control: &n.control, owners: &n.owners, links: &n.links, dealings: dealing.New(), sought: make(map[ids.Home]bool), unmet: make(map[ids.Home][]internode.Msg)}
	n.wired = wired{
		base: b, numbers: &n.numbers, control: &n.control, links: &n.links, requests: &n.requests, lives: known,
		nodes: make(map[ids.Home]membership.Node), alive: make(map[ids.Home]uint64), beats: make(map[ids.Home]membership.Beat), reports: make(map[ids.Home]bool),
		servers: make(map[ids.Home]join.Addresses), bundles: inbox.New[trust.SignedBundle](),
	}
	n.blobs = blobShell{base: b, numbers: &n.numbers, links: &n.links, owners: &n.owners, programs: &n.programs}
	n.chooser = chooser{base: b, numbers: &n.numbers, owners: &n.owners, links: &n.links, raylet: &n.raylet, store: &n.store}
	n.monitor = monitor{base: b, sessions: &n.sessions, owners: &n.owners, raylet: &n.raylet, store: &n.store, now: make(chan struct{}, 1)}
	n.graphs = graphs{base: b, raylet: &n.raylet, monitor: &n.monitor, chooser: &n.chooser}
}

// assemble starts the parts, in the order in which Close stops the tree backwards.
func (n *Node) assemble(ctx context.Context) error {
	for _, start := range []func() error{
		n.wired.open,
		n.control.join,
		func() error { return n.numbers.open(ctx, n.base, n.register(), n.store.claim) },
		func() error { return n.rename(ctx) },
		n.wired.prepare,
		n.jobs.start,
		n.directory.start,
		n.control.prepare,
		n.members.open,
		n.store.start,
		n.raylet.open,
		n.chooser.start,
		n.blobs.start,
		n.graphs.open,
		n.raylet.start,
		n.monitor.start,
		n.jobs.restore,
		func() error { return n.control.announce(ctx) },
		n.links.start,
		n.wired.serve,
		func() error { return n.wired.await(ctx) },
		n.door.listen,
	} {
		if err := start(); err != nil {
			return err
		}
	}
	return nil
}

// Close stops the node: clients are told, workers end, nothing is left behind but what a
// kept node keeps.
func (n *Node) Close(ctx context.Context) error {
	n.once.Do(func() { n.err = n.close(ctx, n.part) })
	return n.err
}

// close ends the node, which first has part end what others have with it.
func (n *Node) close(ctx context.Context, part func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.CloseTimeout)
	defer cancel()
	n.closing.Store(true)
	n.faults.calm()
	all := []error{part(ctx)}
	keep := n.cfg.Keep && !n.store.isEmpty(ctx)
	all = append(all, n.sys.StopTree(ctx))
	n.end()
	all = append(all, n.wired.close())
	n.control.close()
	for _, s := range n.sessions.all() {
		s.Close()
	}
	n.work.Wait()
	all = append(all, n.store.closeSpiller(ctx))
	stuck := n.locals.errStuck()
	if all = append(all, stuck); stuck == nil { // else something in this process may read the memory still: to pull it away would end the process
		all = append(all, n.mapped.close())
	}
	all = append(all, n.store.closeMemory(keep))
	if err := n.numbers.close(); err != nil {
		n.cfg.Logger.Warn("ids that were not used could not be given back", "err", err)
	}
	return errors.Join(append(all, n.release())...)
}

// part ends in order what clients and other nodes have with this one.
func (n *Node) part(ctx context.Context) error {
	n.sessions.sayBye(n.errStopping(), func(r wire.Role) bool { return r != wire.RoleWorker })
	n.owners.stop(ctx) // before workers end
	n.sessions.sayBye(n.errStopping(), func(r wire.Role) bool { return r == wire.RoleWorker })
	n.door.close()
	n.locals.closeAll(ctx)
	return errors.Join(n.raylet.closeProcesses(ctx), n.wired.leave(ctx), n.links.end(ctx))
}

// release lets the next node have the directory.
func (n *Node) release() error {
	err := n.place.release()
	if n.obs != nil {
		n.obs.Close()
	}
	if n.cfg.closeLog != nil {
		err = errors.Join(err, n.cfg.closeLog())
	}
	return err
}

// Attach joins this process' program as the driver of a new job. others are what workers of further languages run.
func (n *Node) Attach(_ context.Context, namespace string, others ...wire.Program) (*client.Client, error) {
	return n.locals.attach(namespace, others...)
}

// StopRequested is closed when a tool asks the node to stop. A node that nobody calls it of,
// one inside a program, refuses to be stopped from elsewhere.
func (n *Node) StopRequested() <-chan struct{} { return n.requests.requested() }
