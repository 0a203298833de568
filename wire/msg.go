package wire

import (
	"bytes"
	"os"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Kind numbers the messages; it is the field number in the frame of mobula.proto.
type Kind uint8

// Msg is any message below, always a pointer.
type Msg interface{ Kind() Kind }

// Role tells what a client is.
type Role uint8

// The roles.
const (
	RoleDriver Role = iota + 1
	RoleWorker
	RoleTool // the command line: requests only, no job
)

// Session.

// Hello opens a connection: the first frame either way, sent by the client.
type Hello struct {
	Version, MinVersion uint32
	Role                Role
	PID                 int32
	Job                 ids.JobID // of a worker, and of a driver that comes back; 0: a new job
	Token               []byte    // a worker's, from its environment; a returning driver's, from its Welcome
	Functions           []FuncInfo
	Namespace           string
	Client              ids.ClientID // of a client that comes back after the node restarted
	Program             *Program     // of a driver: what its workers run; nil: the driver's own executable
	Others              []Program    // of a driver: what the workers of further languages run, one a language
	Environ             []byte       // a driver's environment, which its workers get; see PackEnviron. Empty: as its process was started
	Straight            bool         // the client takes part in calls that go straight
}

// PackEnviron gives an environment as Hello has it: each NAME=value with a zero byte behind it.
func PackEnviron(environ []string) []byte {
	var b []byte
	for _, kv := range environ {
		b = append(append(b, kv...), 0)
	}
	return b
}

// UnpackEnviron is PackEnviron backwards; what is no NAME=value is left out.
func UnpackEnviron(b []byte) []string {
	out := []string{}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if at := bytes.IndexByte(kv, '='); at > 0 {
			out = append(out, string(kv))
		}
	}
	return out
}

// Program is what workers run that are not the driver's own executable. Where the driver is no Go
// program itself it registers no functions, and its workers find them in the job's directory.
type Program struct {
	Language string // LangGo or LangPython
	Version  string // of the language; workers of another refuse to run
	Args     []string
	Single   bool // a worker has one lease at a time: a task, or an actor
	// Template says that Args start a template, which forks the job's workers when asked
	// (package raylet/pool/proc).
	Template bool
	// Roots are the directories that the driver imports its own modules from. Where they are not, on other nodes, its workers find copies: EnvModules
	// says where.
	Roots []string
}

// EnvModules is a variable of Python workers on another node than their driver's: a JSON object from each of Program.Roots to its copy there.
const EnvModules = "MOBULA_MODULES"

// FuncInfo names a registered function, actor type or method and a hash of its
// signature: two binaries that disagree on it cannot work together.
type FuncInfo struct {
	Name      string
	Signature uint64
}

// Welcome accepts a client. The segment's file descriptor travels with it.
type Welcome struct {
	Version     uint32
	Client      ids.ClientID
	Node        string
	Job         ids.JobID
	Root        ids.TaskID // the client's own implicit task
	SegmentSize uint64
	InlineMax   uint32
	Token       []byte // to come back with
	Namespace   string
	Slots       int32 // a worker's number of lanes at the start, a hint
	// TraceMillionths is the share of tasks without a traced caller that are traced, in
	// millionths; 0: the driver's own default, negative: none.
	TraceMillionths int32
	// JobDir is the job's directory on the node: what its processes share by file, such as the
	// functions of a language that ships code. It goes with the job.
	JobDir string
	// Release is the node's, as "0.2.0"; empty of one before 0.2. A client whose release shares more
	// than this protocol with the node's, as the Python package does, compares it.
	Release string
	// Clock is what the node's clock is ahead of the machine's CLOCK_MONOTONIC, in nanoseconds: times in
	// messages are by that clock, which nobody can set. 0 of a node before 0.4: they are by the wall clock.
	Clock int64
	// Straight says that a client of this process may call actors of others past the owner, and they its own.
	Straight bool
}

// Bye refuses or ends a connection and says why.
type Bye struct{ Err *errs.Error }

// From a client to its job's owner.

// Submit asks for a task. The client holds one handle on each return from now on.
type Submit struct{ Spec *TaskSpec }

// PutValue makes an inline object; the client holds a handle on it.
type PutValue struct {
	ID    ids.ObjectID
	Value Value
}

// Seal says that the client has written the extent it was granted for this object. Of a put
// it also makes the object, of a return it resolves it ahead of Done.
type Seal struct {
	ID      ids.ObjectID
	Attempt uint32
	Size    uint64
	Value   Value // Meta and Refs only
}

// Get subscribes to an object once: one Resolved answers it. With Fetch a stored
// object is pinned for the client and its extent given.
type Get struct {
	ID    ids.ObjectID
	Fetch bool
}

// Unget withdraws a Get; a Resolved that is on its way may still arrive.
type Unget struct{ ID ids.ObjectID }

// AddRef says that the client now holds a handle it got inside a value.
type AddRef struct{ ID ids.ObjectID }

// Release says that the client's last handle on each of these is gone.
type Release struct{ IDs []ids.ObjectID }

// Cancel cancels a task. With Insist one that has not ended after the owner's grace is then
// cancelled by force.
type Cancel struct {
	Task                     ids.TaskID
	Force, Recursive, Insist bool
}

// KillActor ends an actor. With Restart it comes back as after a crash; with Stop it ends once the calls made
// before have run and its close hook has returned.
type KillActor struct {
	Actor   ids.ActorID
	Restart bool
	Stop    bool
}

// WatchActor asks for an actor's state, now and whenever it changes, until Done.
type WatchActor struct {
	Actor ids.ActorID
	Done  bool
}

// ActorNews answers WatchActor. Err is why the actor died, or restarts.
type ActorNews struct {
	Actor    ids.ActorID
	State    ActorState
	Restarts uint32
	Err      *errs.Error
}

// ActorState is where an actor stands, as its watchers see it.
type ActorState uint8

// The states of an actor.
const (
	ActorUnspecified ActorState = iota
	ActorStarting
	ActorAlive
	ActorRestarting
	ActorDead
)

// Resolved answers Get. Extent is set, and one pin held, where the Get asked to
// fetch and the object is stored.
type Resolved struct {
	ID     ids.ObjectID
	Fetch  bool // echoes the Get
	Result Result
	Extent Extent
	// Elsewhere says of a stored object, without Fetch, that its bytes are on other nodes than the client's as far as the owner knows. An older node does not say so.
	Elsewhere bool
}

// StreamNext asks for the stream's i-th item (or its end) as Get asks for an object; the
// answer is StreamItem, with Result.Kind ResultNone at the end of the stream. A reader that sets Leaves releases Task.Stream() when it has the end or
// an error. The owner keeps the stream until then, so the reader can ask again if the answer is lost with the node. For one that
// does not set it, the owner closes the stream with the answer.
type StreamNext struct {
	Task   ids.TaskID
	Index  uint32
	Leaves bool
}

// From a client to the store, and back.

// Create asks for room for an object. It is answered by one Created, in order, maybe
// after a wait. Task is the task on whose behalf it is (zero: the driver's own code).
type Create struct {
	Req     uint64
	ID      ids.ObjectID
	Attempt uint32
	Size    uint64
	Task    ids.TaskID
}

// Created answers Create: an extent to write, or Err. Exists is not said any more: in release 0.5
// it was that the object is sealed already.
type Created struct {
	Req    uint64
	ID     ids.ObjectID
	Extent Extent
	Exists bool
	Err    *errs.Error
}

// Abort gives a granted, unsealed extent back, or withdraws a Create that waits.
type Abort struct {
	ID      ids.ObjectID
	Attempt uint32
}

// Unpin drops N of the client's pins on an object.
type Unpin struct {
	ID ids.ObjectID
	N  uint32
}

// MapFile announces a file outside the segment; its descriptor travels with it.
type MapFile struct {
	File uint32
	Size uint64
	Path string

	// Opened is not encoded. A connection sets it to the descriptor that came with the
	// message, the receiver's to close; it is nil in process, where Path can be opened.
	Opened *os.File
}

// UnmapFile says that a file outside the segment is gone, and its number is not used again: nothing of it is pinned.
type UnmapFile struct{ File uint32 }

// Collect asks the client to run its garbage collector, so that dropped handles are
// released: the store is short of room.
type Collect struct{}

// Credit lets the client have N more bytes of submits and inline puts under way. From an owner that has asked for the client's holdings, 0 says that it has
// handled what came before them: what came after is all that is under way.
type Credit struct{ Bytes int64 }

// From the node to a worker.

// Exec pushes tasks over a lease; the worker runs the tasks of a lease one after another.
type Exec struct {
	Lease ids.LeaseID
	Tasks []ExecTask
}

// CancelTask cancels an attempt: queued, it never starts; running, its context ends.
// With Abandon the lane gives up on it at once and goes on (the process will be drained).
type CancelTask struct {
	Task    ids.TaskID
	Abandon bool
}

// StopActor ends an actor instance. With Close its close hook is called when no call of it runs, and ActorStopped
// answers; what waits and runs is cancelled before, or with Drain has run.
type StopActor struct {
	Actor    ids.ActorID
	Restarts bool // another instance follows
	Close    bool
	Drain    bool
}

// ActorStopped says that an actor's instance has ended. Without a Lease that answers StopActor with Close: the close hook has returned, with
// its error, or there was none. With one nobody had asked: a call of the instance that was made over that lease has panicked, with Err. The
// reports of all calls that the instance had come before it.
type ActorStopped struct {
	Actor ids.ActorID
	Err   *errs.Error
	Lease ids.LeaseID
}

// Drain tells a worker to finish what it runs and exit.
type Drain struct{}

// Resume gives a task that reported Unblocked its CPU back.
type Resume struct{ Task ids.TaskID }

// StreamAck tells a producer how many items its consumer has taken.
type StreamAck struct {
	Task     ids.TaskID
	Consumed uint32
}

// Unneeded tells a task that promised results (TaskSpec.Promises) which of them nobody can ask for any
// more: they need not be made.
type Unneeded struct {
	Task    ids.TaskID
	Numbers []uint32
}

// From a worker to the owner.

// Times are Unix nanoseconds of an attempt in the worker. Started is 0 of one that has not begun.
type Times struct{ Received, Started, Ended int64 }

// Done ends an attempt. Results has one entry a return; of a stream none, and Items
// says how many were produced. Err is the failure of the whole attempt.
type Done struct {
	Task    ids.TaskID
	Attempt uint32
	Lease   ids.LeaseID
	Results []Result
	Items   uint32
	Err     *errs.Error
	Times   Times
	Final   bool // Err is none of those that the options' RetryOnly names

	// StillRuns says that the worker gave the task up, which has not returned: it may read its arguments, and another Done follows.
	StillRuns bool

	// Broke says that the call's panic has ended the instance of its actor.
	Broke bool
}

// StreamItem is one item of a stream, from the worker to the owner and, as the answer to
// StreamNext, from the owner to a client.
type StreamItem struct {
	Task    ids.TaskID
	Attempt uint32
	Index   uint32
	Result  Result
}

// Blocked says that a task waits in a get or wait, and gives back the tasks queued
// behind it on its lease, unstarted. With a zero Task it only gives tasks back.
type Blocked struct {
	Task     ids.TaskID
	Lease    ids.LeaseID
	Returned []ids.TaskID
	WaitsFor []ids.ObjectID // the task goes on when it has them all, and not before; empty: not said
}

// Unblocked asks for the CPU back; the task waits for Resume.
type Unblocked struct {
	Task  ids.TaskID
	Lease ids.LeaseID
}

// Stats is a worker's regular report. Worn says that tasks which have ended left it with so much memory that a
// new one is to take its place.
type Stats struct {
	HeapBytes, Goroutines uint64
	Running               uint32
	Worn                  bool
}

// Cold requests: everything that is not on a task's path.

// Request asks for a method by name; the body is CBOR, its shape the method's.
type Request struct {
	Req    uint64
	Method string
	Body   []byte
	Trace  TraceContext
}

// Reply answers a Request.
type Reply struct {
	Req  uint64
	Body []byte
	Err  *errs.Error
}

// After a restart.

// Component is a part of the node that asks its clients what they hold.
type Component uint8

// The components that resynchronise.
const (
	ComponentOwner Component = iota + 1
	ComponentStore
)

// Resync asks a client what it holds, after the component lost its volatile state.
type Resync struct {
	Component Component
	Epoch     uint64
}

// Holdings answers Resync. Of the owner: Handles, among them the streams that it reads (TaskID.Stream), Gets, Tasks,
// Streams. Of the store: Pins; Creates that still wait are sent again after it.
type Holdings struct {
	Component Component
	Epoch     uint64
	Handles   []ids.ObjectID
	Gets      []Get
	Streams   []StreamNext
	Tasks     []Attempt
	Actors    []ids.ActorID // instances alive in this worker
	Pins      []Unpin       // what the client holds pinned, as the Unpin that would drop it
}

// Attempt names a task that a worker holds, running or queued on a lease.
type Attempt struct {
	Task    ids.TaskID
	Attempt uint32
	Lease   ids.LeaseID
	Blocked bool // it has given its CPU back
	Asks    bool // and asks for it again
}
