package state

// The requests. The comment gives the shapes of body and reply.
const (
	MethodPing       = "node.ping"       // nothing; Pong
	MethodStatus     = "node.status"     // StatusRequest; Status
	MethodStop       = "node.stop"       // StopRequest; Stopping, before the node ends
	MethodMetrics    = "node.metrics"    // nothing; Text in Prometheus' format
	MethodTasks      = "list.tasks"      // Query; Page[Task]
	MethodActors     = "list.actors"     // Query; Page[Actor]
	MethodObjects    = "list.objects"    // Query; Page[Object]
	MethodWorkers    = "list.workers"    // Query; Page[Worker]
	MethodGraphs     = "list.graphs"     // Query; Page[Graph]
	MethodJobs       = "list.jobs"       // Query; Page[Job]
	MethodNodes      = "list.nodes"      // Query; Page[Node]
	MethodComponents = "list.components" // Query; Page[Component]
	MethodMemory     = "node.memory"     // Query on objects; Memory
	MethodUsage      = "node.usage"      // nothing; Usage
	MethodExplain    = "explain"         // ExplainRequest; Explanation
	MethodTimeline   = "timeline"        // TimelineRequest; TimelinePart
	MethodActorGet   = "actor.get"       // ActorRequest; ActorReply
	MethodUncounted  = "actor.uncounted" // UncountedRequest; Uncounted
	MethodLogs       = "logs"            // LogsRequest; Logs
	MethodSpans      = "trace.spans"     // SpansRequest; SpansReply
	MethodSecede     = "task.secede"     // SecedeRequest; nothing
	MethodFetch      = "function.fetch"  // FunctionRequest; nothing, once the function is in the job's directory here
	MethodOffer      = "function.offer"  // FunctionRequest; nothing, once the job's home has the function
	MethodCancel     = "task.cancel"     // CancelRequest; Cancelling
	MethodKill       = "actor.kill"      // KillRequest; Killed
)

// Pong answers a ping.
type Pong struct {
	Node string `json:"node"`
	PID  int    `json:"pid"`
	Time int64  `json:"time"`
}

// Usage is the memory in use now, in bytes. Private plus Backed is what a node and its programs take: the segment is in no
// process' private memory, and pages that forked processes share count in each.
type Usage struct {
	Time      int64  `json:"time"`      // Unix ns
	Processes int    `json:"processes"` // the node, its drivers and workers
	Private   uint64 `json:"private"`   // of these, without files and shared memory
	Backed    uint64 `json:"backed"`    // of the segment, with memory behind it
	Held      uint64 `json:"held"`      // of the segment, allocated to objects
	Spilled   uint64 `json:"spilled"`   // in spill storage
}

// StatusRequest asks for the status of a node.
type StatusRequest struct {
	Node string `json:"node,omitempty"` // its name or home; empty: the node that is asked
}

// StopRequest asks the node to end.
type StopRequest struct {
	Reason string `json:"reason,omitempty"` // for the log
}

// Stopping says that the node is about to end.
type Stopping struct {
	Node string `json:"node"`
	PID  int    `json:"pid"` // which is gone when it has ended
}

// Text is a document.
type Text struct {
	Body []byte `json:"body"`
}

// TimelineRequest asks for task events in Chrome's trace format. The document is read in parts:
// Token and Offset are the Token and Next of the part before; with them the other fields are ignored.
type TimelineRequest struct {
	Job    string `json:"job,omitempty"`   // empty: of all
	Since  int64  `json:"since,omitempty"` // Unix ns; 0: all that the node remembers
	Node   string `json:"node,omitempty"`  // as in Query
	Token  string `json:"token,omitempty"`
	Offset int64  `json:"offset,omitempty"`
}

// TimelinePart is a part of a document.
type TimelinePart struct {
	Token string `json:"token"`
	Body  []byte `json:"body"`
	Next  int64  `json:"next,omitempty"` // where the rest begins; 0: this is the last part

	Unreachable []Unreachable `json:"unreachable,omitempty"` // with the first part: nodes whose events are missing
}

// ExplainRequest names a task or an object.
type ExplainRequest struct {
	ID string `json:"id"`
}

// CancelRequest cancels a task, or the task that makes an object. With Force it does not wait for a running task; with Recursive it
// also cancels what the task has submitted.
type CancelRequest struct {
	ID        string `json:"id"`
	Force     bool   `json:"force,omitempty"`
	Recursive bool   `json:"recursive,omitempty"`
}

// Cancelling answers a CancelRequest. A task that runs and is not forced ends when it notices.
type Cancelling struct {
	Task  string `json:"task"`
	Name  string `json:"name"`
	Was   string `json:"was"`   // its state at the request
	State string `json:"state"` // its state now
	Ended bool   `json:"ended"` // it had ended before: only what it submitted is cancelled, with Recursive
}

// KillRequest ends an actor at once: its calls fail and its close hook is not called. With Restart it comes back as after a crash.
type KillRequest struct {
	Actor     string `json:"actor"`               // its id, or its name
	Namespace string `json:"namespace,omitempty"` // of the name; empty: the node's
	Restart   bool   `json:"restart,omitempty"`
}

// Killed answers a KillRequest.
type Killed struct {
	Actor string `json:"actor"`
	Type  string `json:"type"`
	Name  string `json:"name,omitempty"`
	Was   string `json:"was"`   // its state at the request
	State string `json:"state"` // its state now
}

// SecedeRequest says that a task no longer counts against its graph's slots, or with Back that it counts again. The ids have 20 bytes.
type SecedeRequest struct {
	Task   []byte `json:"task"`
	Parent []byte `json:"parent"`
	Back   bool   `json:"back,omitempty"`
}

// FunctionRequest is about a function of a job that a Python process has pickled, on another node than the job's home.
type FunctionRequest struct {
	Job  uint64 `json:"job"`
	Hash []byte `json:"hash"` // SHA-256 of the pickle
}

// ActorRequest asks for a named actor.
type ActorRequest struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// ActorReply answers an ActorRequest. With the type's name and the job's directory, a program that has only the id can read there
// what the actor's program wrote about the type, without a call of the actor.
type ActorReply struct {
	Actor  []byte `json:"actor"` // its id, as TaskID.Bytes gives it
	Type   string `json:"type,omitempty"`
	JobDir string `json:"job_dir,omitempty"`
	// MaxPendingCalls is how many calls of it may be under way; 0: without bound, or the node does not say.
	MaxPendingCalls int `json:"max_pending_calls,omitempty"`
}

// UncountedRequest asks which of some actors a program may number its calls to from 1 again.
type UncountedRequest struct {
	Job    uint64   `json:"job"`    // the program's
	Actors [][]byte `json:"actors"` // ids, as TaskID.Bytes gives them; at most MaxUncounted
}

// MaxUncounted is how many actors one UncountedRequest may name.
const MaxUncounted = 4096

// Uncounted answers an UncountedRequest: the places in it of the actors that have ended, and of those of which the job's owner does not know, so that it
// does not know what numbers their calls had.
type Uncounted struct {
	Actors []int `json:"actors"`
}
