package node

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"mobula/actors"
	"mobula/gcs/directory"
	gcsshell "mobula/gcs/shell"
	runshell "mobula/graph/run/shell"
	"mobula/internal/client"
	"mobula/internal/direct/shell"
	"mobula/internal/errs"
	"mobula/internal/home"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/inbox"
	"mobula/internal/lend"
	"mobula/internal/node/blobs"
	"mobula/internal/node/dealing"
	"mobula/internal/node/enrol"
	"mobula/internal/node/gather"
	"mobula/internal/node/gossip"
	"mobula/internal/node/inspect"
	"mobula/internal/node/jobfile"
	"mobula/internal/node/jobs"
	"mobula/internal/node/link"
	"mobula/internal/node/member"
	"mobula/internal/node/nodeport"
	"mobula/internal/node/observe"
	"mobula/internal/node/outlet"
	"mobula/internal/registry"
	"mobula/internal/steady"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/join"
	"mobula/objectstore/segment"
	storeshell "mobula/objectstore/shell"
	spillshell "mobula/objectstore/spill/shell"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/internode"
	"mobula/raylet/memmon"
	"mobula/raylet/oplog"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/raylet/pool/proc"
	"mobula/remote/clocks"
	"mobula/remote/membership"
	remoteshell "mobula/remote/shell"
	transfershell "mobula/remote/transfer/shell"
	"mobula/wire"
	"mobula/wire/conn"
)

// base is what every part of a node runs with.
type base struct {
	cfg      Config // immutable but for the store's size, which is final once the store is open
	dir      string
	identity string // of all its lives; immutable
	clock    steady.Clock
	since    int64 // when it began; immutable
	limited  *limited
	obs      *observe.Observer
	files    *jobfile.Dir
	sys      *actors.System

	life    context.Context // ends when Close has stopped the tree
	end     context.CancelFunc
	work    sync.WaitGroup // goroutines of sessions and cold requests
	closing atomic.Bool    // Close has begun
}

// place is a directory that the node has.
type place struct {
	dir  string
	lock *os.File     // by which it is ours; nil: it is not
	tidy func() error // removes from it what is not to stay; nil: all is
}

// numbers is where the node gives out ids.
type numbers struct {
	*home.Home // nil until it is open
	limited    *limited
	epochs     atomic.Uint64 // of components that were built anew in this life
}

// injector does what a test's plan of faults says (package chaos). Without one nothing of it runs.
type injector struct {
	*base
	router *router
	delays context.Context // of injected delays: ends when Close begins
	calm   context.CancelFunc
}

// faulty does to one client's messages what the plan says.
type faulty struct {
	to *injector
	s  *session

	mu     sync.Mutex
	queue  []wire.Msg  // guarded by mu: behind a message that is late, which is its first
	timer  *time.Timer // guarded by mu: of that; nil: none is
	closed bool        // guarded by mu

	inMu sync.Mutex
	in   []wire.Msg // guarded by inMu: of a client in this process, what is late or behind that
	late bool       // guarded by inMu: something is
}

// sessions is the table of all clients.
type sessions struct {
	numbers *numbers
	faults  *injector

	mu   sync.RWMutex
	byID map[ids.ClientID]*session // guarded by mu
}

// session is one client as the node knows it.
type session struct {
	id       ids.ClientID
	role     wire.Role
	job      ids.JobID
	pid      int32
	root     ids.TaskID
	nth      int                       // the number of the return that began it, 0: none; immutable
	ref      *actors.Ref[member.Event] // its component; nil for a tool
	system   bool                      // it runs the node's own functions; immutable
	straight bool                      // it is in another process, and takes part in calls that go straight; immutable
	inside   *client.Client            // in this process; nil: it is not. Immutable once it has joined
	parted   atomic.Bool               // it has said goodbye: only what it gives back is heard
	cut      atomic.Bool               // the node has said that it ends the connection
	done     context.Context           // ends when nothing of the client's is read any more
	finish   context.CancelFunc        // of done
	outlet.Outlet
	faults *faulty                    // a test's; nil: none. Immutable
	cold   atomic.Int32               // requests without an answer
	left   atomic.Pointer[errs.Error] // why the session ended; nil: it has not

	mu   sync.Mutex
	met  []ids.JobID          // guarded by mu: whose owners know the client, as the core of jobs says
	asks map[uint64]ids.JobID // guarded by mu: by epoch
}

// members is the shells of clients. A client has a component of its own in the tree, driver/N or worker/N, from when it joins
// until everybody who knew it has been told that it is gone.
type members struct {
	*base
	sessions *sessions
	jobs     *jobShell
	drivers  actors.Sup
	raylet   *rayletShell
}

// door is the node's socket, and lets clients in.
type door struct {
	*base
	secret   secret // immutable
	sessions *sessions
	members  *members
	owners   *owners
	jobs     *jobShell
	programs *programs
	locals   *locals
	raylet   *rayletShell
	store    *storeShell
	router   *router

	l  *conn.Listener
	wg sync.WaitGroup
}

// router passes on what clients and owners say. It reads tables and decides nothing but whom a message is for.
type router struct {
	*base
	numbers   *numbers
	owners    *owners
	store     *storeShell
	raylet    *rayletShell
	jobs      *jobShell
	members   *members
	requests  *requests
	links     *links
	far       *farOwners
	crossings atomic.Uint64 // of references, from job to job
}

// links is what the node has with the other nodes of its cluster. A node alone has none.
type links struct {
	*base
	numbers  *numbers
	sessions *sessions
	owners   *owners
	router   *router
	jobs     *jobShell
	programs *programs
	store    *storeShell
	raylet   *rayletShell
	chooser  *chooser
	blobs    *blobShell
	wired    *wired
	far      *farOwners
	lives    *lives

	questions *questions

	lender   *lend.Lender     // the locals'
	hub      *remoteshell.Hub // nil until it is open
	clearing *clearing        // of jobs of other nodes that were closed

	mu       sync.Mutex
	clocks   *clocks.Core                    // guarded by mu
	names    map[ids.Home]string             // guarded by mu: of the nodes that have said theirs
	boxes    map[ids.Home]*link.Box          // guarded by mu
	decoders map[ids.Home]*internode.Decoder // guarded by mu; each is used by the one goroutine that delivers the node's messages
	agents   map[ids.JobID]*agent            // guarded by mu: of jobs of other nodes
	openings uint64                          // guarded by mu: the number of the agent made last

	opening sync.Mutex               // held while a job is opened or closed on another node, until that is said
	opened  map[ids.JobID][]ids.Home // guarded by opening: where jobs of this node are open
}

// farOwners is the owners of jobs of other homes, as the owners of this node's jobs talk with them.
type farOwners struct {
	*base
	numbers  *numbers
	control  *control
	owners   *owners
	links    *links
	dealings *dealing.Table // of this node's jobs with those of others
	early    earlyWords     // until the hub is open

	mu     sync.Mutex
	sought map[ids.Home]bool            // guarded by mu: nodes of which the control plane is being asked
	unmet  map[ids.Home][]internode.Msg // guarded by mu: what is to be said to nodes that this one has not talked with yet
}

// wired is the node's place in a cluster whose nodes talk over a network: how it got in, its port, and what it hears of the others.
type wired struct {
	*base
	numbers  *numbers
	control  *control
	links    *links
	requests *requests
	lives    *lives

	at        addresses            // immutable once it is open
	member    *enrol.Member        // likewise
	claim     register.Claim       // likewise, once the node has a home
	authority *authority.Authority // of a control-plane server, once it has the tables
	listener  *net.TCPListener
	port      *nodeport.Port                   // nil until the node has a home
	gossip    atomic.Pointer[gossip.Gossip]    // nil until it has begun
	bundles   *inbox.Inbox[trust.SignedBundle] // that the control plane has shown

	mu      sync.Mutex
	nodes   map[ids.Home]membership.Node // guarded by mu: alive, or not known to be over
	alive   map[ids.Home]uint64          // guarded by mu: which life of each the membership has alive, without a doubt
	beats   map[ids.Home]membership.Beat // guarded by mu: the last row of each in the control plane's table
	servers map[ids.Home]join.Addresses  // guarded by mu: of the control plane
	reports map[ids.Home]bool            // guarded by mu: who has said what it has free
	news    chan struct{}                // guarded by mu: is closed at the next change of beats or reports, or verdict; nil: nobody waits for it
}

// questions are what nodes ask one another about themselves.
type questions struct {
	*base
	links     *links
	requests  *requests
	answering chan struct{} // tokens of the other nodes' questions that are answered at once

	mu    sync.Mutex
	last  uint64                                // guarded by mu
	open  map[uint64]*inbox.Inbox[gather.Event] // guarded by mu: this node's, not answered yet
	asked map[ids.Home]int                      // guarded by mu: how many each other node has asked that are not answered yet
}

// blobShell is the shell of the core that brings here what jobs of other nodes run, and has what jobs of this node run for other nodes. What is unanswered, and what
// jobs use, outlives cores. A node alone has no such core.
type blobShell struct {
	*base
	numbers  *numbers
	links    *links
	owners   *owners
	programs *programs

	ref *actors.Ref[blobs.Event]

	mu      sync.Mutex
	waiting map[blobs.Key]*awaited       // guarded by mu
	offered map[blobs.Place][]chan error // guarded by mu: functions that wait until their job's home has them
	parts   map[uint64]*blobPart         // guarded by mu: being written, by the number of the fetch
	last    uint64                       // guarded by mu: number of the last fetch
	checked map[blobs.Hash]bool          // guarded by mu: lies in the cache, and its hash is right
	using   map[blobs.Hash][]ids.JobID   // guarded by mu: of the cache
	has     map[blobs.Key]blobs.Hash     // guarded by mu: which blob of the cache, of the jobs that use it
	sums    map[fileIdentity]blobs.Hash  // guarded by mu: of executables, by file
	packed  map[ids.JobID]*packed        // guarded by mu: modules of this node's jobs
}

// chooser is the core that chooses nodes, as the node has it. A node alone has none: owners and scheduler talk with one another.
type chooser struct {
	*base
	numbers *numbers
	owners  *owners
	links   *links
	raylet  *rayletShell
	store   *storeShell
	ref     *actors.Ref[cluster.Event]
	known   known
	tells   audience

	news     chan struct{}     // the scheduler may have something to report; nil: there is nobody to tell
	reporter *cluster.Reporter // of the raylet's goroutine
}

// requests are the cold ones under way.
type requests struct {
	*base
	numbers   *numbers
	control   *control
	graphs    *graphs
	wired     *wired
	inspect   *inspect.Inspector
	links     *links
	questions *questions
	blobs     *blobShell

	running chan struct{} // tokens of those that run at once
	stop    atomic.Pointer[chan struct{}]
	failed  atomic.Pointer[errs.Error] // a component has, for good

	mu sync.Mutex // of closing what stop points to
}

// locals is the clients in this process: drivers, and the executors of jobs.
type locals struct {
	*base
	faults   *injector
	sessions *sessions
	members  *members
	router   *router
	jobs     *jobShell
	programs *programs
	mapped   *memories
	graphs   *graphs
	lender   lend.Lender      // of the connections by which answers come, to drivers in this process
	boxes    *shell.Mailboxes // the actors in this process; nil: their calls go by the owner

	mu      sync.Mutex
	running map[ids.JobID][]closer // guarded by mu: executors and their clients; nil: Close has begun
	stuck   error                  // guarded by mu: what would not end
}

// memories are what the clients in this process see of the store: for each job its file, and the fallback files that were announced to it.
type memories struct {
	segment func(ids.JobID) (*segment.Segment, error)

	mu     sync.Mutex
	jobs   map[ids.JobID]*memory // guarded by mu
	closed bool                  // guarded by mu
}

// jobShell is the shell of the core of jobs. What it has outlives cores.
type jobShell struct {
	*base
	numbers   *numbers
	sessions  *sessions
	members   *members
	owners    *owners
	programs  *programs
	mapped    *memories
	locals    *locals
	control   *control
	directory *directoryShell
	store     *storeShell
	raylet    *rayletShell
	monitor   *monitor
	links     *links
	blobs     *blobShell

	ref     *actors.Ref[jobs.Event]
	asks    asks
	returns atomic.Int64 // of drivers, counted

	mu      sync.Mutex
	coming  map[ids.JobID]*ownerActor // guarded by mu: owners that the table is to have
	in      map[ids.ClientID]*session // guarded by mu: let in, and not gone
	started []pool.JobStarted         // guarded by mu: the jobs as the raylet was told
	found   []jobs.Found              // guarded by mu: by the store, before settled
	settled bool                      // guarded by mu: no job of an earlier life comes back any more
	ended   map[ids.JobID]*ownerActor // of the component's goroutine: removed, and not yet cleaned up
}

// asks is who waits for an answer of the core of jobs. It outlives cores.
type asks struct {
	mu   sync.Mutex
	last jobs.Ask               // guarded by mu
	open map[jobs.Ask]*question // guarded by mu
}

// question is one ask.
type question struct {
	ev   jobs.Event
	s    *session      // that is to be let in; nil: none is
	done chan struct{} // closed behind err
	err  error

	blamed int // how many cores it has brought down that were given it as they began; of the component's goroutine
}

// owners is the table of the jobs' owners: who has a message for one finds it here, beside the core of jobs, which has owners put in and removed.
type owners struct {
	*base
	numbers   *numbers
	sessions  *sessions
	router    *router
	store     *storeShell
	raylet    *rayletShell
	directory *directoryShell
	jobs      *jobShell
	links     *links
	chooser   *chooser

	mu    sync.RWMutex
	byJob map[ids.JobID]*ownerActor // guarded by mu
}

// ownerActor is the shell of one job's owner: it keeps the log, which outlives the core.
type ownerActor struct {
	owners *owners
	job    ids.JobID
	ref    *actors.Ref[owner.Event]
	log    *oplog.Log

	shown *inspect.Owner // as inspection sees it; immutable

	here     bool        // its driver is in this process; immutable once the core of jobs knows it
	ofBefore bool        // of a job of before the node's restart
	waits    atomic.Bool // of such a job: until the core of jobs lets it go on
	alone    atomic.Bool // of such a job: its driver is gone, or has not come in time
	orphan   atomic.Bool // of such a job: it went on without its driver
	left     atomic.Bool // its driver has gone since

	// Of the actor's goroutine.
	dirty    []*session
	cancel   func() // of the core's timer
	core     *owner.Core
	met      bool             // a client has joined
	hand     owner.Event      // stepped last
	before   int              // how many events the core had kept back before it: one of a client that has to go is not kept
	first    []owner.Event    // that the core was given as it was built, from the one that it steps on
	tending  bool             // an upkeep is on its way
	rest     owner.Rest       // records that the log could not take
	later    bool             // it is to be tried again, after a while
	poisoned []owner.Poisoned // dropped for all cores to come
	blamed   int              // index, from 1, of the kept-back event that brought the last core down; 0: none
}

// programs is what the workers of each job run.
type programs struct {
	mu    sync.Mutex
	byJob map[ids.JobID]program // guarded by mu
}

// program is what a job's workers run: the driver's executable, held open so that it
// stays the same when its file is replaced, or what the driver said; and of further languages what it said. On another node than the driver's
// exe is a copy of the Go program.
type program struct {
	exe       *os.File // nil: the node's own
	args      []string
	said      *wire.Program  // of the driver's own language; nil: exe
	others    []wire.Program // of further languages
	functions []wire.FuncInfo
	namespace string   // of actor names, for whom names none
	environ   []string // of the driver: its workers have it too
	local     bool     // the driver is in this process, and so is its environment
	modules   string   // on another node: where the driver's own Python modules are, as wire.EnvModules has it
}

// control is the control plane as the node uses it. An embedded one starts when it is first asked for something, or where an earlier life of
// the node has left its tables: its server has clocks of its own, and a node without named actors has no need of it. What is
// asked before it is up waits. One that is elsewhere is joined before anything else of the node starts: it says which home the node has.
type control struct {
	*base
	numbers *numbers
	wired   *wired

	kept  bool      // an earlier life may have left names in its tables; immutable
	once  sync.Once // of the start
	begun atomic.Bool
	ready chan struct{} // closed when g or err is set
	g     *gcsshell.GCS
	err   error
}

// directoryShell is the directory of actors as the node has it.
type directoryShell struct {
	*base
	numbers *numbers
	control *control
	owners  *owners
	jobs    *jobShell
	ref     *actors.Ref[directory.Event]
}

// storeShell is the object store and its spillers, as the node has them.
type storeShell struct {
	*base
	numbers  *numbers
	links    *links
	faults   *injector
	sessions *sessions
	owners   *owners
	jobs     *jobShell

	shm     *storeshell.Memory
	asked   uint64 // bytes that the store was to have; immutable once it runs
	spiller *spillshell.Spiller
	objects *transfershell.Transfer // between nodes; nil: the node is alone
	actor   *storeshell.Store
}

// rayletShell is the raylet as the node has it: scheduler and pool, the launcher of worker processes, and the place in the tree of all that is below.
type rayletShell struct {
	*base
	faults   *injector
	numbers  *numbers
	sessions *sessions
	owners   *owners
	jobs     *jobShell
	programs *programs
	monitor  *monitor
	links    *links
	chooser  *chooser

	sup   actors.Sup
	ref   *actors.Ref[raylet.Event]
	procs *proc.Launcher
}

// monitor is the memory monitor as the node has it.
type monitor struct {
	*base
	sessions *sessions
	owners   *owners
	raylet   *rayletShell
	store    *storeShell

	ref    *actors.Ref[memmon.Event]
	now    chan struct{} // one token: memory is sampled at once
	heaped atomic.Int64  // bytes of the processes' heaps, lately; counted where there is a memory limit
}

// graphs is the task graphs that run, and the node's own functions.
type graphs struct {
	*base
	raylet  *rayletShell
	monitor *monitor
	chooser *chooser

	host   *runshell.Host                // immutable
	system map[string]*registry.Function // the node's own functions; immutable
}

// limited logs each message at most once in every, and says how often it was left out.
type limited struct {
	log   *slog.Logger
	every time.Duration

	mu   sync.Mutex
	last map[string]time.Time // guarded by mu
	left map[string]int       // guarded by mu
}
