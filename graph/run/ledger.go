package run

// Ledger is what is known of the tasks that a graph has submitted. It outlives the cores.
type Ledger struct {
	tasks    []entry
	unwanted []int32 // of the wanted ones, those that nobody needs any more
	begun    int64
	ran      uint64 // tasks that ended well
	failures int    // that failed of themselves
	peak     int64  // bytes of results at once
	told     int    // events
}

type entry struct {
	state   Outcome
	away    bool // it has seceded
	bytes   int64
	failure error
}

// Outcome is what has become of a task.
type Outcome uint8

// The outcomes of a task.
const (
	Unsent Outcome = iota // not submitted, or its results were given up
	Sent                  // with its owner
	Made
	Failed
)

// NewLedger is that of a graph of n tasks of which none was submitted.
func NewLedger(n int) *Ledger { return &Ledger{tasks: make([]entry, n)} }

// Outcome is what has become of a task.
func (l *Ledger) Outcome(t int32) Outcome { return l.tasks[t].state }

// Mark notes what has become of a task: Sent by Submit, Failed by Pass.
func (l *Ledger) Mark(t int32, to Outcome) { l.tasks[t].state = to }

// Release notes that a task's results were given up: it is as if it had not been.
func (l *Ledger) Release(t int32) { l.tasks[t] = entry{} }
