package pool

import (
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// Event is an input of Core.Step.
type Event interface{ poolEvent() }

// FromSched is an effect of the scheduler: NeedWorker, ReleaseWorker or AdoptLease.
type FromSched struct{ Effect sched.Effect }

// JobStarted makes a job known and starts the first worker of its driver's language. If the job's slots are in the
// driver's process, Tasks and Actors name their clients, and no process is started for functions of that language,
// unless Isolate asks for processes for isolated functions and actors.
type JobStarted struct {
	Job           ids.JobID
	Tasks, Actors ids.ClientID
	System        ids.ClientID // client that runs the node's own functions in the node's process; 0: none
	Isolate       bool
	Programs      []Program // one for each language, the driver's own first; none: only Go's
	Restored      bool      // after a restart of the core: start nothing ahead of need
	Opening       uint64    // of a job of another node: the number of its opening here, which no other opening has; 0: the job is of this node
}

// Program describes the workers of one language.
type Program struct {
	Language string // of the functions that they know (wire.Language)
	Single   bool   // a worker has one lease at a time, whatever its function, or one actor
}

// JobEnded ends the job's workers. The raylet ignores the end of an earlier opening: a core that was restarted knows only the present one.
type JobEnded struct {
	Job     ids.JobID
	Opening uint64
	Away    bool // it is of another node, which may be gone: what its workers were sent may still be on its way to them
}

// Registered is a worker's Hello. It is answered by Admit or Refuse.
type Registered struct {
	Client ids.ClientID
	Token  []byte
	PID    int32
	Err    *errs.Error // why it cannot be used although it is one of ours; nil: it can
}

// StartFailed says that StartProcess did not start a process.
type StartFailed struct {
	Worker ids.WorkerID
	Err    error
}

// Exited says that the process is gone and reaped.
type Exited struct {
	Worker ids.WorkerID
	Exit   Exit
}

// Exit tells how a process ended.
type Exit struct {
	PID    int
	Status int    // exit status, if Signal is empty
	Signal string // the signal that killed it, as "killed"; empty: it exited
	Tail   string // the end of its stderr
}

// Disconnected says that the worker's connection ended; its process may still be there.
type Disconnected struct{ Client ids.ClientID }

// Drain is sched.DrainWorker.
type Drain struct{ sched.DrainWorker }

// Worn says that a worker's memory has grown by what its tasks left behind. It is replaced when its present tasks have ended.
type Worn struct{ Client ids.ClientID }

// Kill is sched.KillWorker.
type Kill struct{ sched.KillWorker }

// Live tells a new core of a process that an earlier one started.
type Live struct {
	StartProcess
	Client   ids.ClientID // 0: not registered yet
	PID      int32
	Draining bool // told to exit already
}

// Stop ends every worker, for the node's own end; none is started any more.
type Stop struct{}

// expired is a timer of a worker; a later timer of the same worker makes it stale.
type expired struct {
	worker ids.WorkerID
	seq    uint64
}

// idleTick looks for isolated workers to retire.
type idleTick struct{}

func (FromSched) poolEvent()    {}
func (JobStarted) poolEvent()   {}
func (JobEnded) poolEvent()     {}
func (Registered) poolEvent()   {}
func (StartFailed) poolEvent()  {}
func (Exited) poolEvent()       {}
func (Disconnected) poolEvent() {}
func (Drain) poolEvent()        {}
func (Worn) poolEvent()         {}
func (Kill) poolEvent()         {}
func (Live) poolEvent()         {}
func (Stop) poolEvent()         {}
func (expired) poolEvent()      {}
func (idleTick) poolEvent()     {}

// Effect is an action that Step asks for.
type Effect interface{ poolEffect() }

// StartProcess starts a worker process; answered by Registered, StartFailed or Exited.
type StartProcess struct {
	Worker   ids.WorkerID
	Token    []byte // the process proves with it that it is this worker
	Job      ids.JobID
	Opening  uint64 // of the job, see JobStarted
	Language string // which of the job's programs it runs
	Slot     sched.Slot
	Func     string // of an isolated worker
	Process  string // of an actor host: its name
	Actor    bool   // an isolated actor
	Memory   int64  // bytes that an isolated worker asked for; 0: unknown
}

// KillProcess ends the process group at once (SIGKILL).
type KillProcess struct{ Worker ids.WorkerID }

// Terminate asks the process to end (SIGTERM).
type Terminate struct{ Worker ids.WorkerID }

// SendDrain sends wire.Drain: finish what runs and exit. The launcher notes it, for Live.
type SendDrain struct {
	Worker ids.WorkerID
	Client ids.ClientID
}

// Admit accepts a registration; the worker is used from now on.
type Admit struct {
	Client ids.ClientID
	Worker ids.WorkerID
	Job    ids.JobID
	Slot   sched.Slot
}

// Refuse ends the connection of a process that is no worker of ours, or is none any more.
type Refuse struct {
	Client ids.ClientID
	Err    *errs.Error
}

// ToSched is an event for the scheduler.
type ToSched struct{ Event sched.Event }

// After asks for Ev once D has passed.
type After struct {
	D  time.Duration
	Ev Event
}

func (StartProcess) poolEffect() {}
func (KillProcess) poolEffect()  {}
func (Terminate) poolEffect()    {}
func (SendDrain) poolEffect()    {}
func (Admit) poolEffect()        {}
func (Refuse) poolEffect()       {}
func (ToSched) poolEffect()      {}
func (After) poolEffect()        {}
