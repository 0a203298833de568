package inspect

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"mobula/actors"
	"mobula/gcs"
	"mobula/gcs/directory"
	"mobula/internal/direct/talk"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/internal/steady"
	storeshell "mobula/objectstore/shell"
	spillshell "mobula/objectstore/spill/shell"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/owner"
	"mobula/raylet/pool/proc"
	"mobula/remote"
	"mobula/telemetry/events"
	"mobula/telemetry/metrics"
	"mobula/wire"
)

// Node is what is read of the node besides its components.
type Node interface {
	Parts() Parts
	Outline(*metrics.Snapshot) // fills in what is known without asking a component

	Owners() []*Owner            // of the jobs that have not ended
	Owner(ids.JobID) *Owner      // nil: the job has none here
	Namespace(ids.JobID) string  // of the actor names of a job that names none
	Clients() []*Client          // in order of id
	Client(ids.ClientID) *Client // nil: it is gone
	Report(ids.ClientID) (said wire.Stats, ok bool)
	Graphs() []state.Graph // that run

	// Of calls that go past their job's owner: see calls.go.
	TellEnded(ids.JobID)
	Underway(ids.JobID) []talk.Underway
	Came(ids.TaskID) (at talk.Came, known bool)
	Cancel(by ids.ClientID, m wire.Cancel) error

	Listed() string         // the node's name, as rows have it; empty: it is of no cluster
	NameOf(ids.Home) string // of another node

	Nameless() bool // there is no control plane
	Named(ctx context.Context, namespace, name string) (ids.ActorID, error)
	Nodes(ctx context.Context) (Nodes, error)
}

// Nodes are the nodes that share a control plane, as its table of nodes has them.
type Nodes struct {
	Self   gcs.NodeRecord
	Others []gcs.NodeRecord

	// Away names who carries the table and does not answer now: it is as it was last told. Hears tells then whether this node itself hears a life.
	Away  []string
	Hears func(remote.Life) bool
}

// Parts are the node's components. They are all there before anybody can ask.
type Parts struct {
	System    *actors.System
	Raylet    *actors.Ref[raylet.Event]
	Cluster   *actors.Ref[cluster.Event] // nil: the node is of no cluster
	Store     *storeshell.Store
	Memory    *storeshell.Memory
	Asked     uint64 // bytes that the store was to have
	Spiller   *spillshell.Spiller
	Directory *actors.Ref[directory.Event]
	Procs     *proc.Launcher
	Events    *events.Recorder
	Classes   *metrics.Actors // names the classes that actors are counted by
}

// Owner is a job's.
type Owner struct {
	Job ids.JobID
	Ref *actors.Ref[owner.Event]
}

// Client is a connected one.
type Client struct {
	ID     ids.ClientID
	Role   wire.Role
	Job    ids.JobID
	PID    int32
	Local  bool // in this process
	System bool // it runs the node's own functions
}

// Config says which node it is.
type Config struct {
	Name, Dir, Namespace string
	Clock                steady.Clock
	Log                  *slog.Logger
}

// Inspector answers questions about a node. Its methods may be called from several goroutines.
type Inspector struct {
	Config
	node     Node
	scanning chan struct{} // one token: one scan of an owner at a time

	mu        sync.Mutex
	documents map[string]*document // guarded by mu: timelines being read
	store     state.Store          // guarded by mu: the last figures
	storeAt   time.Time            // guarded by mu
}

// Empty is the body of a request that says nothing.
type Empty struct{}

// New makes a node's inspector.
func New(cfg Config, n Node) *Inspector {
	return &Inspector{Config: cfg, node: n, scanning: make(chan struct{}, 1)}
}
