package state

// Status is a node at a glance.
type Status struct {
	Node      string              `json:"node"`
	Address   string              `json:"address"`
	PID       int                 `json:"pid"`
	Version   string              `json:"version"`
	Started   int64               `json:"started"`
	Now       int64               `json:"now"`
	Dir       string              `json:"dir"`
	Metrics   string              `json:"metrics,omitempty"` // URL
	Control   string              `json:"control"`           // "up", "starting", "asleep" until it is first asked for a name, "off", or why it does not work
	Copies    int                 `json:"copies,omitempty"`  // of each of the control plane's tables that are in step, on a control-plane server
	Cluster   string              `json:"cluster,omitempty"` // id of the cluster that the node is of on a network
	Role      string              `json:"role,omitempty"`    // in it: data, control-plane or driver
	Reached   string              `json:"reached,omitempty"` // HOST:PORT where other nodes reach it
	Resources map[string]Resource `json:"resources"`
	Labels    map[string]string   `json:"labels"` // of the node
	Leases    int                 `json:"leases"`
	Jobs      []Job               `json:"jobs"`
	Tasks     map[string]int      `json:"tasks"` // by state, of those that are remembered
	Actors    map[string]int      `json:"actors"`
	Graphs    []Graph             `json:"graphs"` // that run
	Workers   int                 `json:"workers"`
	Clients   int                 `json:"clients"`
	Store     Store               `json:"store"`
	Restarts  map[string]uint64   `json:"restarts"` // of components, by kind
	Events    Events              `json:"events"`
	Export    Export              `json:"export"`
	Lost      []LostJob           `json:"lost,omitempty"`   // jobs that could not come back
	Silent    []string            `json:"silent,omitempty"` // components that did not answer in time
}

// Export is what the node has sent to its OTLP collector, and given up since that did not take it in time.
type Export struct {
	Spans          uint64 `json:"spans"`
	SpansDropped   uint64 `json:"spans_dropped"`
	Metrics        uint64 `json:"metrics"` // exports, each of all metrics
	MetricsDropped uint64 `json:"metrics_dropped"`
	Logs           uint64 `json:"logs"` // records
	LogsDropped    uint64 `json:"logs_dropped"`
}

// Resource is what a node has of one resource, in whole units; memory in bytes.
type Resource struct {
	Total float64 `json:"total"`
	Free  float64 `json:"free"`
}

// Job is one program's work.
type Job struct {
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

// LostJob is a job that did not come back when the node was started again, because what was kept of it is damaged or of a newer version.
type LostJob struct {
	ID    string `json:"id"`
	Why   string `json:"why"`
	Path  string `json:"path"`  // of what is left of it, which nobody else removes
	Since int64  `json:"since"` // Unix ns
}

// Store is the object store's state, in bytes and objects. Held never exceeds Limit.
type Store struct {
	Limit        uint64   `json:"limit"`
	Asked        uint64   `json:"asked,omitempty"`     // the limit that the node was started with, where objects of before keep another
	WhyLimit     string   `json:"why_limit,omitempty"` // why they do
	Held         uint64   `json:"held"`                // allocated
	Backed       uint64   `json:"backed"`              // of the segment, with memory behind it
	Sealed       uint64   `json:"sealed"`              // of Held
	Writing      uint64   `json:"writing"`             // of Held: granted and not sealed
	Pinned       uint64   `json:"pinned"`              // of Sealed
	Args         uint64   `json:"args"`                // of running tasks
	Spilled      uint64   `json:"spilled"`             // in spill storage
	SpillGarbage uint64   `json:"spill_garbage"`       // in spill files that have other objects: bytes of those that are gone
	Fallback     uint64   `json:"fallback"`
	Objects      int      `json:"objects"`
	InMemory     int      `json:"in_memory"`
	OnlySpilled  int      `json:"only_spilled"`
	Waiting      int      `json:"waiting"` // creates that wait for room
	WaitingArgs  int      `json:"waiting_args"`
	Restoring    int      `json:"restoring"`
	SpilledEver  uint64   `json:"spilled_ever"`  // bytes since the start
	RestoredEver uint64   `json:"restored_ever"` // bytes since the start
	Reclaimed    uint64   `json:"reclaimed"`     // bytes of garbage given back by writing spill files anew
	SpillErrors  uint64   `json:"spill_errors"`
	Spills       uint64   `json:"spills"`       // writes since the start, of many objects each
	Restores     uint64   `json:"restores"`     // since the start
	SpillTime    int64    `json:"spill_time"`   // ns in spill storage, summed over all at once
	RestoreTime  int64    `json:"restore_time"` // as SpillTime
	Lost         uint64   `json:"lost"`
	SpillTargets []Target `json:"spill_targets,omitempty"`
	Age          int64    `json:"age"` // of these figures, ns
}

// Target is a place to spill to.
type Target struct {
	URL    string `json:"url"`
	Health string `json:"health"`
	Error  string `json:"error,omitempty"`
	Bytes  uint64 `json:"bytes"`
}

// Events is the record of task events.
type Events struct {
	Recorded uint64 `json:"recorded"` // since the start
	Kept     int    `json:"kept"`     // of these, remembered
	Dropped  uint64 `json:"dropped"`  // never recorded, because more came than events.rate
	Unfiled  uint64 `json:"unfiled"`  // recorded, but not written to the files in time
}

// Memory tells who holds what.
type Memory struct {
	Store   Store        `json:"store"`
	Inline  uint64       `json:"inline"` // bytes of values in owners' memory
	Objects Page[Object] `json:"objects"`
	Nodes   []NodeMemory `json:"nodes,omitempty"` // of each node, in a cluster; Store and Inline are those of the node that was asked
}

// Missing are the nodes whose part is missing.
func (m *Memory) Missing() []Unreachable { return m.Objects.Unreachable }

// NodeMemory is a node's part of Memory.
type NodeMemory struct {
	Node   string `json:"node"`
	Store  Store  `json:"store"`
	Inline uint64 `json:"inline"`
}

// Explanation says why a task is where it is, or who holds an object.
type Explanation struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"` // "task" or "object"
	State   string   `json:"state"`
	Summary string   `json:"summary"` // the answer in one line
	Details []string `json:"details,omitempty"`
	Task    *Task    `json:"task,omitempty"`
	Object  *Object  `json:"object,omitempty"`
	// TaskClass is by which number schedulers know the task and its like, of one that waits for a slot.
	TaskClass uint64 `json:"task_class,omitempty"`
	// Next is what it waits for in turn: the producer of an argument, and so on.
	Next *Explanation `json:"next,omitempty"`
}
