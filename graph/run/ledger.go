package run

// Ledger has the outcomes of the tasks that a graph has submitted. It outlives the cores.
type Ledger struct {
	tasks    []entry
	unwanted []int32 // wanted tasks that nobody needs any more
	begun    int64
	ran      uint64 // tasks that succeeded
	failures int    // tasks that failed by an error of their own
	peak     int64  // highest bytes of results
	events   int    // events
	refused  error  // of the first task that could not be submitted; nil: all could
}

type entry struct {
	state   Outcome
	seceded bool // it has seceded
	bytes   int64
	failure error
}

// Outcome is the outcome of a task.
type Outcome uint8

// The outcomes of a task.
const (
	Unsent Outcome = iota // not submitted, or its results were given up
	Sent                  // with its owner
	Made
	Failed
)

// NewLedger makes the ledger of a graph of n tasks, none of them submitted.
func NewLedger(n int) *Ledger { return &Ledger{tasks: make([]entry, n)} }

// Outcome is the outcome of a task.
func (l *Ledger) Outcome(t int32) Outcome { return l.tasks[t].state }

// Mark sets the outcome of a task: Sent by Submit, Failed by Pass.
func (l *Ledger) Mark(t int32, to Outcome) { l.tasks[t].state = to }

// Release notes that a task's results were given up: it is unsent again.
func (l *Ledger) Release(t int32) { l.tasks[t] = entry{} }
