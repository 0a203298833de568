package memmon

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Event is an input of Core.Step.
type Event interface{ memEvent() }

// Sample is the node's memory at a moment.
type Sample struct {
	Used, Limit uint64 // bytes; of the machine or the cgroup, whichever is tighter
	Source      string // "node" or "cgroup", whose limit it is
	Workers     []WorkerSample
}

// WorkerSample is one worker process.
type WorkerSample struct {
	Worker ids.ClientID
	Name   string // for people: "worker 3 (task host of job 1, pid 77)"
	Job    ids.JobID
	Own    string // the function of an isolated worker, else empty
	Asked  uint64 // bytes it asked for as "memory"; 0: unknown
	Bytes  uint64 // private memory and its share of what it maps, without the object store's segment
	Driver bool   // slots in the driver's process: it cannot be ended
	Leases int
}

// Heaps is how many bytes all processes of the node take at a moment, without the object store's segment. It comes only if there
// is a Total, and more often than samples.
type Heaps struct{ Bytes uint64 }

// Tasks answers AskTasks: which tasks run where, as the owners know it.
type Tasks struct {
	Epoch uint64
	Tasks []Task
}

// Task is a running task.
type Task struct {
	Worker    ids.ClientID
	Task      ids.TaskID
	Func      string
	Owner     ids.TaskID // who submitted it
	Started   int64      // Unix ns
	Retriable bool
}

// WorkerGone says that a worker's process has ended.
type WorkerGone struct{ Worker ids.ClientID }

func (Sample) memEvent()     {}
func (Heaps) memEvent()      {}
func (Tasks) memEvent()      {}
func (WorkerGone) memEvent() {}

// Effect is an action that Step asks for.
type Effect interface{ memEffect() }

// AskTasks asks the owners which tasks run in their workers; the answers come as one Tasks.
type AskTasks struct{ Epoch uint64 }

// Kill ends a worker; Err goes to the owners of its tasks. Peak is the memory that it had reached.
type Kill struct {
	Worker ids.ClientID
	Err    *errs.Error
	Func   string // to blame; empty if unknown
	Peak   uint64
}

// SetLevel reports a change of level.
type SetLevel struct {
	Level       Level
	Used, Limit uint64
}

// StoreRoom says how much memory the object store may take: the answer to Heaps.
type StoreRoom struct{ Bytes uint64 }

// Report says, at most once for each time the level is entered, that memory is short and
// nothing can be ended.
type Report struct{ Err *errs.Error }

func (AskTasks) memEffect()  {}
func (Kill) memEffect()      {}
func (SetLevel) memEffect()  {}
func (StoreRoom) memEffect() {}
func (Report) memEffect()    {}

// Level is how short memory is.
type Level uint8

// The levels, at fractions of the limit.
const (
	Normal    Level = iota
	Spill           // worth freeing
	Pause           // no new work beside running work
	Terminate       // something must end
)

// String names the level.
func (l Level) String() string {
	return [...]string{"normal", "spill", "pause", "terminate"}[l&3]
}
