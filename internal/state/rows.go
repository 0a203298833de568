package state

// Task is one task.
type Task struct {
	ID        string `json:"id"`
	Name      string `json:"name"` // its label, or the function's
	Func      string `json:"func"`
	Kind      string `json:"kind"` // KindTask, KindCreation or KindCall
	State     string `json:"state"`
	Job       string `json:"job"`
	Shape     string `json:"shape,omitempty"` // what it asks of the node that runs it; empty: nothing is known of it, or it runs where its actor is
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

// The kinds of task.
const (
	KindTask     = "task"
	KindCreation = "actor-creation"
	KindCall     = "actor-call"
)

// Actor is one actor.
type Actor struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	State     string `json:"state"`
	Job       string `json:"job"`
	Detached  bool   `json:"detached"`
	Created   int64  `json:"created"`       // when it was asked for, Unix ns; 0: not known
	Restarts  int    `json:"restarts"`      // that MaxRestarts counts
	Resets    int    `json:"resets"`        // restarts that it does not count: another actor brought the process down
	Due       int64  `json:"due,omitempty"` // of one that waits before it restarts: when, Unix ns
	Pending   int    `json:"pending"`       // calls that wait
	Running   int    `json:"running"`       // calls pushed to it and not done
	Worker    string `json:"worker,omitempty"`
	RunsOn    string `json:"runs_on,omitempty"` // the node of its worker, by its id
	PID       int    `json:"pid,omitempty"`
	Reason    string `json:"reason,omitempty"` // why it is dead, or was made anew last
	Node      string `json:"node,omitempty"`   // where it is listed; empty: the node that was asked is alone
}

// Object is one object that something refers to.
type Object struct {
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

// Worker is one process, or the slots of an embedded node, that runs tasks.
type Worker struct {
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

// Graph is one task graph that runs. Its tasks are waiting, queued, processing, done or failed; the rest is not needed.
type Graph struct {
	ID         string `json:"id"`   // of the task that it is
	Name       string `json:"name"` // of the component that schedules it
	Job        string `json:"job"`
	Tasks      int    `json:"tasks"`
	Waiting    int    `json:"waiting"`    // for what they take
	Queued     int    `json:"queued"`     // root tasks that could run and are withheld
	Processing int    `json:"processing"` // with the job's owner, or in line to it
	InLine     int    `json:"in_line"`    // of them
	Done       int    `json:"done"`
	Failed     int    `json:"failed"` // of themselves
	Bytes      uint64 `json:"bytes"`  // of results that are held
	Peak       uint64 `json:"peak"`   // the most that they were
	Started    int64  `json:"started"`
	Node       string `json:"node,omitempty"` // where it is listed; empty: the node that was asked is alone
}

// Node is one node of the cluster. The control plane's data about it is as old as Heard says.
type Node struct {
	ID        string             `json:"id"` // its home
	Name      string             `json:"name"`
	Role      string             `json:"role,omitempty"`    // in its cluster: "data", "control-plane" or "driver"; empty: it is of none
	State     string             `json:"state"`             // NodeAlive, NodeSilent or NodeDead
	Address   string             `json:"address"`           // of its socket, on its own machine
	Reached   string             `json:"reached,omitempty"` // HOST:PORT where other nodes reach it; empty: it is on no network
	PID       int                `json:"pid"`
	Version   string             `json:"version"`
	Epoch     uint64             `json:"epoch"`     // number of its home's present life
	Started   int64              `json:"started"`   // Unix ns, by its own clock
	Heard     int64              `json:"heard"`     // ns since its last heartbeat; 0: it is the node that was asked
	Resources map[string]float64 `json:"resources"` // that tasks may ask for
	Labels    map[string]string  `json:"labels"`    // by which tasks may choose it

	// As the node says itself; missing of one that is dead or does not answer.
	Free       map[string]float64 `json:"free,omitempty"` // of the resources
	StoreLimit uint64             `json:"store_limit,omitempty"`
	StoreHeld  uint64             `json:"store_held,omitempty"`
}

// The states of a node. A node that stops in order is no longer in lists, nor is one after a day that is dead, or of which 100 are dead since.
const (
	NodeAlive  = "ALIVE"
	NodeSilent = "SILENT" // several heartbeats were missed: it was killed, or is cut off
	NodeDead   = "DEAD"   // the control plane has ended its life: what ran there begins again elsewhere
)

// Component is one part of the node in its supervision tree.
type Component struct {
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
