package mobula

// This file has the rows of the node's lists, its reports, and the queries that ask for them. Times are Unix nanoseconds, sizes are
// bytes, resources are in whole units ("CPU": 0.5). Ids are the text that ID of a Ref or an ActorRef gives.

// Query says which rows of a list are wanted, in the order of the list.
type Query struct {
	Filters []Filter `json:"filters,omitempty"` // a row must pass all
	Limit   int      `json:"limit,omitempty"`   // 0: 100; at most 10,000
	Cursor  string   `json:"cursor,omitempty"`  // Page.Next of the page before
	Node    string   `json:"node,omitempty"`    // the name or home of one node; empty: all of the cluster
}

// Filter compares a field of a row with a value.
type Filter struct {
	Field string `json:"field"` // a row's json name
	Not   bool   `json:"not,omitempty"`
	Value string `json:"value"`
}

// String is the filter as it is written.
func (f Filter) String() string {
	if f.Not {
		return f.Field + "!=" + f.Value
	}
	return f.Field + "=" + f.Value
}

// Page is a part of a list. Truncated and Next tell whether there is more: nothing is left out
// silently.
type Page[T any] struct {
	Rows      []T    `json:"rows"`
	Total     int    `json:"total"`          // rows that match, on all pages
	Truncated bool   `json:"truncated"`      // there are rows after these
	Next      string `json:"next,omitempty"` // their cursor, for Query.Cursor

	Unreachable []Unreachable `json:"unreachable,omitempty"` // nodes whose rows are missing
}

// Unreachable is a node that has not answered: its rows are missing on a page.
type Unreachable struct {
	Node string `json:"node"` // its name, or its home where no name is known
	Why  string `json:"why"`
}

// TaskState is a row of ListTasks: one task.
type TaskState struct {
	ID        string `json:"id"`
	Name      string `json:"name"` // its label, or the function's
	Func      string `json:"func"`
	Kind      string `json:"kind"` // "task", "actor-creation" or "actor-call"
	State     string `json:"state"`
	Job       string `json:"job"`
	Shape     string `json:"shape,omitempty"` // what it asks of the node that runs it: resources, labels, a node; empty for a call of an actor
	Attempt   uint32 `json:"attempt"`         // 1 is the first; 0: none was started
	Submitted int64  `json:"submitted"`       // Unix ns; 0: not known
	Since     int64  `json:"since"`           // in this state, Unix ns
	Worker    string `json:"worker,omitempty"`
	RunsOn    string `json:"runs_on,omitempty"` // the node of its worker, by its id
	Actor     string `json:"actor,omitempty"`
	Parent    string `json:"parent,omitempty"`
	Callsite  string `json:"callsite,omitempty"` // of a sample of the tasks
	Reason    string `json:"reason,omitempty"`   // why it failed, or runs again
	Node      string `json:"node,omitempty"`     // where it is listed; empty: the node that was asked is alone
}

// ActorState is a row of ListActors: one actor.
type ActorState struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	State     string `json:"state"`
	Job       string `json:"job"`
	Detached  bool   `json:"detached"`
	Created   int64  `json:"created"`       // when it was asked for, Unix ns; 0: not known
	Restarts  int    `json:"restarts"`      // those that count against MaxRestarts
	Resets    int    `json:"resets"`        // restarts that do not count: another actor brought the process down
	Due       int64  `json:"due,omitempty"` // when it restarts, Unix ns, if it waits for that
	Pending   int    `json:"pending"`       // calls that wait
	Running   int    `json:"running"`       // calls pushed to it and not done
	Worker    string `json:"worker,omitempty"`
	RunsOn    string `json:"runs_on,omitempty"` // the node of its worker, by its id
	PID       int    `json:"pid,omitempty"`
	Reason    string `json:"reason,omitempty"` // why it is dead, or restarted last
	Node      string `json:"node,omitempty"`   // where it is listed; empty: the node that was asked is alone
}

// ObjectState is a row of ListObjects: one object that something refers to.
type ObjectState struct {
	ID       string `json:"id"`
	Type     string `json:"type"`  // "return", "put" or "item"
	State    string `json:"state"` // as the owner knows it: PENDING, INLINE, STORED, ERROR, FREED
	Where    string `json:"where"` // "message", "memory", "spilled", ... as the store says
	Size     uint64 `json:"size"`
	Job      string `json:"job"`
	Func     string `json:"func,omitempty"`
	Callsite string `json:"callsite,omitempty"`
	Holders  int    `json:"holders"` // processes with a handle
	Tasks    int    `json:"tasks"`   // unfinished tasks that use it
	Within   int    `json:"within"`  // live objects that contain it
	Pins     int    `json:"pins"`
	Error    string `json:"error,omitempty"`
	Node     string `json:"node,omitempty"` // where it is listed; empty: the node that was asked is alone
}

// WorkerState is a row of ListWorkers: one process, or the slots of an embedded node, that runs tasks.
type WorkerState struct {
	ID         string   `json:"id"` // of its connection
	PID        int      `json:"pid"`
	Job        string   `json:"job"`
	Language   string   `json:"language"` // of the functions that it knows: "go", "python"
	Slot       string   `json:"slot"`     // "task host", "actor host", "isolated", "embedded"
	Func       string   `json:"func,omitempty"`
	State      string   `json:"state"`
	Leases     int      `json:"leases"`
	Running    int      `json:"running"`
	Heap       uint64   `json:"heap"` // bytes, as it last reported
	Goroutines int      `json:"goroutines"`
	RSS        uint64   `json:"rss"` // bytes, as the kernel counts
	LeaseIDs   []uint64 `json:"lease_ids,omitempty"`
	Node       string   `json:"node,omitempty"` // where it is listed; empty: the node that was asked is alone
}

// JobState is a row of ListJobs: one program's work.
type JobState struct {
	ID        string         `json:"id"`
	Namespace string         `json:"namespace,omitempty"`
	PID       int            `json:"pid,omitempty"` // of the driver
	Tasks     map[string]int `json:"tasks"`
	Submitted uint64         `json:"submitted"`
	Finished  uint64         `json:"finished"`
	Failed    uint64         `json:"failed"`
	Retried   uint64         `json:"retried"`
	Objects   int            `json:"objects"`
	Node      string         `json:"node,omitempty"` // its home; empty: the node that was asked is alone
}

// GraphState is a row of ListGraphs: one task graph that runs. Its tasks are waiting, queued, processing, done or failed; the others are not
// needed.
type GraphState struct {
	ID         string `json:"id"`   // of the task that the graph is
	Name       string `json:"name"` // of the component that schedules it
	Job        string `json:"job"`
	Tasks      int    `json:"tasks"`
	Waiting    int    `json:"waiting"`    // for their arguments
	Queued     int    `json:"queued"`     // root tasks that could run and are withheld
	Processing int    `json:"processing"` // with the job's owner, or in line to it
	InLine     int    `json:"in_line"`    // of Processing: in line to the owner
	Done       int    `json:"done"`
	Failed     int    `json:"failed"` // by an error of their own
	Bytes      uint64 `json:"bytes"`  // of results that are held
	Peak       uint64 `json:"peak"`   // the highest value of Bytes
	Started    int64  `json:"started"`
	Node       string `json:"node,omitempty"` // where it is listed; empty: the node that was asked is alone
}

// NodeState is a row of ListNodes: one node of the cluster. Of one that is dead, or does not answer (Page.Unreachable), Free and the store's figures are missing.
type NodeState struct {
	ID         string             `json:"id"` // for OnNode and PreferNode
	Name       string             `json:"name"`
	Role       string             `json:"role,omitempty"`    // in its cluster: "data", "control-plane" or "driver"; empty: it is of none
	State      string             `json:"state"`             // "ALIVE", "SILENT" (several heartbeats were missed), or "DEAD" (its life was ended)
	Address    string             `json:"address"`           // of its socket, on its own machine
	Reached    string             `json:"reached,omitempty"` // HOST:PORT where other nodes reach it; empty: it is on no network
	PID        int                `json:"pid"`
	Version    string             `json:"version"`
	Epoch      uint64             `json:"epoch"`     // number of its present life
	Started    int64              `json:"started"`   // Unix ns, by its own clock
	Heard      int64              `json:"heard"`     // ns since its last heartbeat; 0: it is the node that was asked
	Resources  map[string]float64 `json:"resources"` // that tasks may ask for
	Labels     map[string]string  `json:"labels"`    // by which tasks may choose it
	Free       map[string]float64 `json:"free,omitempty"`
	StoreLimit uint64             `json:"store_limit,omitempty"`
	StoreHeld  uint64             `json:"store_held,omitempty"`
}

// ComponentState is a row of ListComponents: one part of the node in its supervision tree.
type ComponentState struct {
	Path        string `json:"path"` // its id: names from the root
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Restarts    int    `json:"restarts"`
	Escalations int    `json:"escalations"`
	Poisoned    int    `json:"poisoned"` // messages dropped after two panics
	Depth       int    `json:"depth"`    // messages that wait
	Bound       int    `json:"bound"`    // of the mailbox; 0: it has none
	Handled     uint64 `json:"handled"`
	Waiting     bool   `json:"waiting"` // for its restart
	Error       string `json:"error,omitempty"`
	Node        string `json:"node,omitempty"` // where it is listed; empty: the node that was asked is alone
}

// NodeStatus is the node at a glance: what Status gives.
type NodeStatus struct {
	Node      string                   `json:"node"`
	Address   string                   `json:"address"`
	PID       int                      `json:"pid"`
	Version   string                   `json:"version"`
	Started   int64                    `json:"started"`
	Now       int64                    `json:"now"`
	Dir       string                   `json:"dir"`
	Metrics   string                   `json:"metrics,omitempty"` // URL
	Control   string                   `json:"control"`           // "up", "starting", "asleep" until it is first asked for a name, "off", or why it does not work
	Copies    int                      `json:"copies,omitempty"`  // of each of the control plane's tables that are in step, on a control-plane server
	Cluster   string                   `json:"cluster,omitempty"` // id of the cluster that the node is of on a network
	Role      string                   `json:"role,omitempty"`    // in it: data, control-plane or driver
	Reached   string                   `json:"reached,omitempty"` // HOST:PORT where other nodes reach it
	Resources map[string]ResourceState `json:"resources"`
	Labels    map[string]string        `json:"labels"` // of the node, by which tasks may choose it
	Leases    int                      `json:"leases"`
	Jobs      []JobState               `json:"jobs"`
	Tasks     map[string]int           `json:"tasks"` // by state, of those that are remembered
	Actors    map[string]int           `json:"actors"`
	Graphs    []GraphState             `json:"graphs"` // that run
	Workers   int                      `json:"workers"`
	Clients   int                      `json:"clients"`
	Store     StoreState               `json:"store"`
	Restarts  map[string]uint64        `json:"restarts"` // of components, by kind
	Events    EventsState              `json:"events"`
	Export    ExportState              `json:"export"`
	Lost      []LostJob                `json:"lost,omitempty"`   // jobs that could not come back
	Silent    []string                 `json:"silent,omitempty"` // components that did not answer in time
}

// ResourceState is what a node has of one resource, in whole units; memory in bytes.
type ResourceState struct {
	Total float64 `json:"total"`
	Free  float64 `json:"free"`
}

// StoreState is the object store's state, in bytes and objects. Held never exceeds Limit.
type StoreState struct {
	Limit        uint64        `json:"limit"`
	Asked        uint64        `json:"asked,omitempty"`     // the limit that the node was started with, if objects from before keep it at another
	WhyLimit     string        `json:"why_limit,omitempty"` // why Limit is not Asked
	Held         uint64        `json:"held"`                // allocated
	Backed       uint64        `json:"backed"`              // of the segment, with memory behind it
	Sealed       uint64        `json:"sealed"`              // of Held
	Writing      uint64        `json:"writing"`             // of Held: granted and not sealed
	Pinned       uint64        `json:"pinned"`              // of Sealed
	Args         uint64        `json:"args"`                // of running tasks
	Spilled      uint64        `json:"spilled"`             // in spill storage
	SpillGarbage uint64        `json:"spill_garbage"`       // in spill files that have other objects: bytes of those that are gone
	Fallback     uint64        `json:"fallback"`
	Objects      int           `json:"objects"`
	InMemory     int           `json:"in_memory"`
	OnlySpilled  int           `json:"only_spilled"`
	Waiting      int           `json:"waiting"` // creates that wait for room
	WaitingArgs  int           `json:"waiting_args"`
	Restoring    int           `json:"restoring"`
	SpilledEver  uint64        `json:"spilled_ever"`  // bytes since the start
	RestoredEver uint64        `json:"restored_ever"` // bytes since the start
	Reclaimed    uint64        `json:"reclaimed"`     // bytes of garbage given back by writing spill files anew
	SpillErrors  uint64        `json:"spill_errors"`
	Spills       uint64        `json:"spills"`       // writes since the start, of many objects each
	Restores     uint64        `json:"restores"`     // since the start
	SpillTime    int64         `json:"spill_time"`   // ns in spill storage, summed over all at once
	RestoreTime  int64         `json:"restore_time"` // as SpillTime
	Lost         uint64        `json:"lost"`
	SpillTargets []SpillTarget `json:"spill_targets,omitempty"`
	Age          int64         `json:"age"` // of these figures, ns
}

// SpillTarget is a place to spill to.
type SpillTarget struct {
	URL    string `json:"url"`
	Health string `json:"health"`
	Error  string `json:"error,omitempty"`
	Bytes  uint64 `json:"bytes"`
}

// EventsState is the record of task events.
type EventsState struct {
	Recorded uint64 `json:"recorded"` // since the start
	Kept     int    `json:"kept"`     // of Recorded, still remembered
	Dropped  uint64 `json:"dropped"`  // never recorded, because more came than events.rate
	Unfiled  uint64 `json:"unfiled"`  // recorded, but not written to files in time
}

// ExportState counts what the node has sent to its OTLP collector, and what it dropped because the collector
// did not take it in time.
type ExportState struct {
	Spans          uint64 `json:"spans"`
	SpansDropped   uint64 `json:"spans_dropped"`
	Metrics        uint64 `json:"metrics"` // exports, each of all metrics
	MetricsDropped uint64 `json:"metrics_dropped"`
	Logs           uint64 `json:"logs"` // records
	LogsDropped    uint64 `json:"logs_dropped"`
}

// LostJob is a job that did not come back when the node restarted, because its files are damaged or of a newer version.
type LostJob struct {
	ID    string `json:"id"`
	Why   string `json:"why"`
	Path  string `json:"path"`  // of its files, which the node does not remove
	Since int64  `json:"since"` // Unix ns
}

// Explanation is the answer of Explain: why a task is in its state, or who holds an object.
type Explanation struct {
	ID      string       `json:"id"`
	Kind    string       `json:"kind"` // "task" or "object"
	State   string       `json:"state"`
	Summary string       `json:"summary"` // the answer in one line
	Details []string     `json:"details,omitempty"`
	Task    *TaskState   `json:"task,omitempty"`
	Object  *ObjectState `json:"object,omitempty"`
	// TaskClass is by which number schedulers know the task and its like, of one that waits for a slot.
	TaskClass uint64 `json:"task_class,omitempty"`
	// Next explains what it waits for in turn: the producer of an argument, and so on.
	Next *Explanation `json:"next,omitempty"`
}

// LogStream is what one worker process wrote to one of its outputs. It outlives the worker.
type LogStream struct {
	Worker  string `json:"worker"` // "worker/3"
	Stream  string `json:"stream"` // "out" or "err"
	Path    string `json:"path"`   // of the current file; older parts lie beside it
	Size    int64  `json:"size"`   // bytes, of all parts that are kept
	Changed int64  `json:"changed"`
	Omitted int64  `json:"omitted,omitempty"` // bytes before Text that were left out, or not searched
	Text    string `json:"text,omitempty"`
	Node    string `json:"node,omitempty"`  // where Path is; empty: the node that was asked is alone
	Error   string `json:"error,omitempty"` // why the logs of the node are missing; all else but Node is empty then
}
