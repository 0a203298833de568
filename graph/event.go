package graph

// WorkerID names a worker; the shell gives the numbers and uses none twice.
type WorkerID int32

// Event is what a Core steps on.
type Event interface{ graphEvent() }

// Start begins: what is wanted is needed from now on. Workers may join before and after.
type Start struct{}

// WorkerJoined adds a worker.
type WorkerJoined struct {
	Worker    WorkerID
	Name      string // as annotations name it
	Threads   int
	Memory    int64 // bytes it may hold; 0: not said
	Resources map[string]int64
}

// WorkerLeft takes a worker and all that it holds away. Killed charges the tasks that it was
// running; where Running is nil, all that were sent to it, since nobody knows which it had begun.
type WorkerLeft struct {
	Worker  WorkerID
	Killed  bool
	Running []int32
}

// Pause stops new tasks to a worker; what it has been sent goes on.
type Pause struct{ Worker WorkerID }

// Resume ends Pause.
type Resume struct{ Worker WorkerID }

// Holds says, before Start, that a worker has a task's result: from an earlier graph, or from before the
// core was made anew. What is not needed of it is freed. Later it is too late, and the result is freed.
type Holds struct {
	Task   int32
	Worker WorkerID
	Bytes  int64
}

// Broken says, before Start, that a task has failed for good: in an earlier core's time.
type Broken struct {
	Task int32
	Err  error
}

// Done says that an attempt has ended well and that its worker holds the result.
type Done struct {
	Task     int32
	Attempt  int32
	Worker   WorkerID
	Bytes    int64
	Duration int64 // ns
}

// Failure says that an attempt has ended with an error.
type Failure struct {
	Task      int32
	Attempt   int32
	Worker    WorkerID
	Err       error
	Retriable bool // it may run again where its annotation allows
}

// Fetched says that a worker has got a copy of a result, as Fetch asked.
type Fetched struct {
	Task   int32
	Worker WorkerID
}

// FetchFailed says that From has not what Fetch asked of it, and lives.
type FetchFailed struct {
	Task         int32
	Worker, From WorkerID
}

// LongRunning says that a task seceded: it does not count against its worker's slots.
type LongRunning struct{ Task, Attempt int32 }

// Rejoined ends LongRunning.
type Rejoined struct{ Task, Attempt int32 }

// Recalled answers Recall: whether the worker gives the task back, not begun.
type Recalled struct {
	Task, Attempt int32
	Worker        WorkerID
	OK            bool
}

// Want asks for a task's result, or, with Off, releases what was asked for.
type Want struct {
	Tasks []int32
	Off   bool
}

// Cancel fails tasks with ErrCancelled; without any, everything that is wanted and not made.
type Cancel struct{ Tasks []int32 }

// Tick lets work be stolen; the shell sends one every Config.StealInterval while anything is processed.
type Tick struct{}

func (Start) graphEvent()        {}
func (WorkerJoined) graphEvent() {}
func (WorkerLeft) graphEvent()   {}
func (Pause) graphEvent()        {}
func (Resume) graphEvent()       {}
func (Holds) graphEvent()        {}
func (Broken) graphEvent()       {}
func (Done) graphEvent()         {}
func (Failure) graphEvent()      {}
func (Fetched) graphEvent()      {}
func (FetchFailed) graphEvent()  {}
func (LongRunning) graphEvent()  {}
func (Rejoined) graphEvent()     {}
func (Recalled) graphEvent()     {}
func (Want) graphEvent()         {}
func (Cancel) graphEvent()       {}
func (Tick) graphEvent()         {}

// Effect is what Step asks for. Effects are carried out in their order.
type Effect interface{ graphEffect() }

// Run sends a task to a worker. The worker runs, of what has its inputs, the lowest Rank first.
type Run struct {
	Task, Attempt int32
	Worker        WorkerID
	Rank          int32
}

// Fetch copies a result to a worker that a task was or is sent to. It comes before the Run that
// needs it first, and once for several.
type Fetch struct {
	Task     int32
	From, To WorkerID
	Bytes    int64
}

// Stop says that an attempt's result is not needed. It may have ended; what comes of it is freed.
type Stop struct {
	Task, Attempt int32
	Worker        WorkerID
}

// Recall asks a worker for a task back that it has not begun.
type Recall struct {
	Task, Attempt int32
	Worker        WorkerID
}

// Free drops a result, or a copy that is on its way, from workers.
type Free struct {
	Task    int32
	Workers []WorkerID
}

// Result says that a wanted result is in memory, and where. It may be said again after a loss.
type Result struct {
	Task   int32
	Worker WorkerID
	Bytes  int64
}

// Failed says that a wanted result cannot be made. Chain leads from the task to the one that
// failed, each depending on the next.
type Failed struct {
	Task  int32
	Err   error
	Chain []int32
}

// Finished says that everything wanted is in memory or has failed. It is said again where that
// was undone by a loss or a new Want.
type Finished struct{}

func (Run) graphEffect()      {}
func (Fetch) graphEffect()    {}
func (Stop) graphEffect()     {}
func (Recall) graphEffect()   {}
func (Free) graphEffect()     {}
func (Result) graphEffect()   {}
func (Failed) graphEffect()   {}
func (Finished) graphEffect() {}
