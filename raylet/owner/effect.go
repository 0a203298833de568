package owner

import (
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// EffectKind tells the effects apart.
type EffectKind uint8

// The kinds of effect, and the fields each uses.
const (
	// ToClient sends Wire to Client.
	ToClient EffectKind = iota + 1
	// ToStore sends Msg, an objectstore.Event.
	ToStore
	// ToSched sends Msg, a sched.Event.
	ToSched
	// ToRegistry sends Msg, a message of registry.go.
	ToRegistry
	// Log appends Record to the owner log and writes the position it got to *Cookie, where
	// that is not nil. Record is valid until the next Step.
	Log
	// LogFree frees the positions in Cookies: those records will not be asked for again and
	// need not survive. A zero is to be skipped.
	LogFree
	// Fetch reads the record at N back and answers with Fetched{Token}.
	Fetch
	// After steps Timer when N nanoseconds have passed. Only the last one counts.
	After
	// Transitions gives Changes to telemetry; valid until the next Step.
	Transitions
	// JobEnded says that nothing of the job is left: the owner may stop.
	JobEnded
)

// Effect is one thing that the core asks for. The order in the slice is the order of
// execution. Record, Cookies and Changes are the core's, valid until its next Step.
type Effect struct {
	Kind    EffectKind
	Client  ids.ClientID
	Wire    wire.Msg
	Msg     any
	Record  []byte
	Cookie  *uint64
	N       int64
	Token   uint64
	Cookies *[]*uint64
	Changes *[]Transition
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
	At      int64       // Unix ns; of RUNNING and what ends it, the worker's clock where it told
	Times   *wire.Times // of an ended attempt
	Reason  *errs.Error // why it failed, or runs again
}

func (c *Core) toClient(cl *clientRec, m wire.Msg) {
	if cl.gone {
		return
	}
	c.effects = append(c.effects, Effect{Kind: ToClient, Client: cl.id, Wire: m})
}

func (c *Core) toStore(m any) {
	c.effects = append(c.effects, Effect{Kind: ToStore, Msg: m})
}

func (c *Core) toSched(m any) {
	c.effects = append(c.effects, Effect{Kind: ToSched, Msg: m})
}

func (c *Core) toRegistry(m any) {
	c.effects = append(c.effects, Effect{Kind: ToRegistry, Msg: m})
}

// logged emits what was appended to the log buffer since start.
func (c *Core) logged(start int, cookie *uint64) {
	b := c.logbuf
	c.effects = append(c.effects, Effect{Kind: Log, Record: b[start:len(b):len(b)], Cookie: cookie})
}
