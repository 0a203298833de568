package owner

import (
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// EffectKind tells the effects apart.
type EffectKind uint8

// The kinds of effect, and the fields each uses.
const (
	// ToClient sends Wire to Client.
	ToClient EffectKind = iota + 1
	// Receipt asks for ClientRead{Client, N} when all that was sent to Client before is on its way to it, or would be if it read.
	Receipt
	// ToStore sends Store() to the store of Node.
	ToStore
	// ToSched sends Sched().
	ToSched
	// ToCluster sends Cluster(), a Heard, Holds or Locality, to whoever chooses among the nodes. A Heard or a Locality comes before the sched.Want that it is for.
	ToCluster
	// ToDirectory sends Directory().
	ToDirectory
	// ToOwner sends Peer() to the owner of Job. Where there is none, JobGone answers an AddRef, a Get and a Resync.
	ToOwner
	// Log appends Records to the owner log, in order, tells each the position that it got (Appended), and frees what that replaces. It is the first
	// effect of a step, and the only one of its kind: what the others allow is in the log before.
	Log
	// LogFree frees the positions in Cookies: those records will not be asked for again and
	// need not survive. A zero is to be skipped.
	LogFree
	// LogLapse says of the positions in Cookies that those records are needed only as long as there are records before them. A zero is to be skipped.
	LogLapse
	// Fetch reads the record at Position() back and answers with Fetched{Token}.
	Fetch
	// After steps Timer when N nanoseconds have passed. Only the last one counts.
	After
	// Transitions gives Changes to telemetry; valid until the next Step.
	Transitions
	// JobEnded says that nothing of the job is left: the owner may stop.
	JobEnded
	// Abandon says that the job has nothing on Node any more: what that node has of it is to be closed, when it answers.
	Abandon
)

// Effect is one thing that the core asks for. The order in the slice is the order of
// execution. Records, Cookies and Changes are the core's, valid until its next Step.
type Effect struct {
	Kind    EffectKind
	Client  ids.ClientID
	Job     ids.JobID
	Node    ids.Home
	Wire    wire.Msg
	N       int64
	Token   uint64
	Records *[]LogRecord
	Cookies *[]*uint64
	Changes *[]Transition

	msg any // of the type that the accessor of its kind has
}

// Store is what a ToStore sends.
func (e *Effect) Store() objectstore.Event { return e.msg.(objectstore.Event) }

// Sched is what a ToSched sends.
func (e *Effect) Sched() sched.Event { return e.msg.(sched.Event) }

// Cluster is what a ToCluster sends.
func (e *Effect) Cluster() cluster.Event { return e.msg.(cluster.Event) }

// Directory is what a ToDirectory sends.
func (e *Effect) Directory() DirectoryAsk { return e.msg.(DirectoryAsk) }

// Peer is what a ToOwner sends.
func (e *Effect) Peer() PeerMsg { return e.msg.(PeerMsg) }

// Position is where the record of a Fetch is once the effects before it are carried out: those may have moved it.
func (e *Effect) Position() uint64 { return *e.msg.(*uint64) }

// LogRecord is one record to be logged.
type LogRecord struct {
	Bytes    []byte
	Cookie   *uint64 // where its position goes
	Replaces bool    // it says all that the record said whose position Cookie has
}

// Appended takes note of where the record went, 0 where it could not be appended. It gives the position of the record that it replaces, which is to be
// freed then; 0: none.
func (r *LogRecord) Appended(at uint64) (replaced uint64) {
	if r.Cookie == nil || r.Replaces && at == 0 {
		return 0 // what it was to replace stays
	}
	if r.Replaces {
		replaced = *r.Cookie
	}
	*r.Cookie = at
	return replaced
}

// Delay is the time of an After.
func (e *Effect) Delay() time.Duration { return time.Duration(e.N) }

// Transition is one change of a task's state. Reason is nil where the state says it all.
type Transition struct {
	Spec    *wire.TaskSpec
	State   task.State
	Attempt uint32
	Lease   ids.LeaseID
	Worker  ids.ClientID
	At      int64         // Unix ns; of RUNNING and what ends it, the worker's clock where it told
	Times   *wire.Times   // of an ended attempt
	Reason  *errs.Error   // why it failed, or runs again
	Took    time.Duration // of what has ended: since it came, to 10 µs, modulo half a day; negative: not known
	Restart bool          // of an actor's creation: it runs again since the actor is restarted
	Count   uint64        // of calls of one function that are known only by their number: Spec has no more than that; 0: it is one task
}
