package graph

// WorkerID names a worker. The shell gives out the numbers and never uses one twice.
type WorkerID int32

// Event is an input of Core.Step.
type Event interface{ graphEvent() }

// Start begins the run: wanted results are needed from now on. Workers may join before and after.
type Start struct{}

// WorkerJoined adds a worker.
type WorkerJoined struct {
	Worker    WorkerID
	Name      string // by which annotations name it
	Threads   int
	Memory    int64 // bytes it may hold; 0: unknown
	Resources map[string]int64
}

// WorkerResized says that a worker has more or fewer threads and memory than before. Tasks that it has been sent go on.
type WorkerResized struct {
	Worker  WorkerID
	Threads int
	Memory  int64 // as WorkerJoined's
}

// WorkerLeft removes a worker and all that it holds. Killed charges the tasks that it was running (Running). If
// Running is nil, it charges all tasks that were sent to the worker, since nobody knows which had begun.
type WorkerLeft struct {
	Worker  WorkerID
	Killed  bool
	Running []int32
}

// Pause stops new tasks to a worker; tasks that it has been sent go on.
type Pause struct{ Worker WorkerID }

// Resume ends Pause.
type Resume struct{ Worker WorkerID }

// Holds says, before Start, that a worker has a task's result: from an earlier graph, or from before the core was
// rebuilt. A result that is not needed is freed. After Start it is too late, and the result is freed.
type Holds struct {
	Task   int32
	Worker WorkerID
	Bytes  int64
}

// Broken says, before Start, that a task has failed for good under an earlier core.
type Broken struct {
	Task int32
	Err  error
}

// Done says that an attempt has succeeded and that its worker holds the result.
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
	Retriable bool // it may run again if its annotation allows
}

// Fetched says that a worker has got a copy of a result, as Fetch asked.
type Fetched struct {
	Task   int32
	Worker WorkerID
}

// FetchFailed says that From is alive but does not have the result that Fetch asked for.
type FetchFailed struct {
	Task         int32
	Worker, From WorkerID
}

// LongRunning says that a task seceded: it does not count against its worker's slots.
type LongRunning struct{ Task, Attempt int32 }

// Rejoined ends LongRunning.
type Rejoined struct{ Task, Attempt int32 }

// Recalled answers Recall: whether the worker gives the task back, because it has not begun.
type Recalled struct {
	Task, Attempt int32
	Worker        WorkerID
	OK            bool
}

// Want asks for a task's result, or with Off gives that request up.
type Want struct {
	Tasks []int32
	Off   bool
}

// Cancel fails tasks with ErrCancelled: those given, or if none are given, everything that is wanted and not made.
type Cancel struct{ Tasks []int32 }

// Tick lets the core steal work. The shell sends one every Config.StealInterval while any task is processed.
type Tick struct{}

func (Start) graphEvent()         {}
func (WorkerJoined) graphEvent()  {}
func (WorkerResized) graphEvent() {}
func (WorkerLeft) graphEvent()    {}
func (Pause) graphEvent()         {}
func (Resume) graphEvent()        {}
func (Holds) graphEvent()         {}
func (Broken) graphEvent()        {}
func (Done) graphEvent()          {}
func (Failure) graphEvent()       {}
func (Fetched) graphEvent()       {}
func (FetchFailed) graphEvent()   {}
func (LongRunning) graphEvent()   {}
func (Rejoined) graphEvent()      {}
func (Recalled) graphEvent()      {}
func (Want) graphEvent()          {}
func (Cancel) graphEvent()        {}
func (Tick) graphEvent()          {}

// Effect is an action that Step asks for. The shell carries effects out in order.
type Effect interface{ graphEffect() }

// Run sends a task to a worker. Of the tasks whose inputs it has, the worker runs the one with the lowest Rank
// first.
type Run struct {
	Task, Attempt int32
	Worker        WorkerID
	Rank          int32
}

// Fetch copies a result to a worker that a task was or is sent to. It comes once, before the first Run that needs
// it.
type Fetch struct {
	Task     int32
	From, To WorkerID
	Bytes    int64
}

// Stop says that an attempt's result is not needed. The attempt may have ended; its result is freed.
type Stop struct {
	Task, Attempt int32
	Worker        WorkerID
}

// Recall asks a worker to give back a task that it has not begun.
type Recall struct {
	Task, Attempt int32
	Worker        WorkerID
}

// Free drops a result, or a copy that is on its way, from workers.
type Free struct {
	Task    int32
	Workers []WorkerID
}

// Result says that a wanted result is in memory, and where. After a loss it may come again.
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

// Finished says that everything wanted is in memory or has failed. After a loss or a new Want it comes again.
type Finished struct{}

func (Run) graphEffect()      {}
func (Fetch) graphEffect()    {}
func (Stop) graphEffect()     {}
func (Recall) graphEffect()   {}
func (Free) graphEffect()     {}
func (Result) graphEffect()   {}
func (Failed) graphEffect()   {}
func (Finished) graphEffect() {}
