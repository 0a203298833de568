package jobs

import (
	"mobula/gcs/directory"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
)

// Effect is what the shell does.
type Effect interface{ jobsEffect() }

// Answer ends the wait of who asked. Err: what was asked for is not to be.
type Answer struct {
	Ask Ask
	Err *errs.Error
}

// Own puts a job's owner into the table, so that everybody finds it, behind the first event that it is to have.
type Own struct {
	Job   ids.JobID
	First owner.Event // nil: none
}

// LetIn makes a client a part of the node: it can be sent to from then on, and its end will be told. Where that fails Ask is answered with the reason, and the
// client is Gone.
type LetIn struct {
	Ask    Ask // names the session that waits
	Client ids.ClientID
	Job    ids.JobID
}

// Introduce makes a client known to a job's owner.
type Introduce struct {
	Job ids.JobID
	owner.ClientJoined
}

// TellGone tells the owners that knew a client that it is gone.
type TellGone struct {
	Client ids.ClientID
	Jobs   []ids.JobID
	Err    *errs.Error
}

// WorkerGone tells the raylet and the memory monitor that a worker's process is not to be reached any more.
type WorkerGone struct{ Client ids.ClientID }

// ForgetDriver notes that a job's driver will not come back: for the next core, and on disk, since the node's next life does not wait for it.
type ForgetDriver struct{ Job ids.JobID }

// Dismiss ends a client's session, since the client has begun another.
type Dismiss struct {
	Client ids.ClientID
	Err    *errs.Error
}

// Expel sends a worker away.
type Expel struct {
	Client ids.ClientID
	Err    *errs.Error
}

// TellOver tells a driver that its job is over.
type TellOver struct {
	Client ids.ClientID
	Err    *errs.Error
}

// Resume lets the owner of a restored job go on with the clients there are.
type Resume struct {
	Job    ids.JobID
	Orphan bool // without its driver, for good
}

// StartJob tells the raylet of a job, and its next core. Ask is answered with what the raylet says to it.
type StartJob struct {
	Ask Ask
	pool.JobStarted
}

// Remove takes a job's owner from the table, its program, and what the raylet's next core would be told of it.
type Remove struct{ Job ids.JobID }

// EndProcesses ends what is left of a job's processes.
type EndProcesses struct{ Job ids.JobID }

// CleanUp stops the owner of a job that was removed, and removes what was kept of the job. It comes last.
type CleanUp struct {
	Job   ids.JobID
	Unmap bool // nobody in this process reads what it has any more
}

// Settled says that what the store found need not be kept for a next core.
type Settled struct{}

// ToOwner tells the owner of a job.
type ToOwner struct {
	Job ids.JobID
	Ev  owner.Event
}

// ToRaylet tells the raylet.
type ToRaylet struct{ Ev pool.Event }

// ToStore tells the store.
type ToStore struct{ Ev objectstore.Event }

// ToDirectory tells the directory of actors.
type ToDirectory struct{ Ev directory.Event }

func (Answer) jobsEffect()       {}
func (Own) jobsEffect()          {}
func (LetIn) jobsEffect()        {}
func (Introduce) jobsEffect()    {}
func (TellGone) jobsEffect()     {}
func (WorkerGone) jobsEffect()   {}
func (ForgetDriver) jobsEffect() {}
func (Dismiss) jobsEffect()      {}
func (Expel) jobsEffect()        {}
func (TellOver) jobsEffect()     {}
func (Resume) jobsEffect()       {}
func (StartJob) jobsEffect()     {}
func (Remove) jobsEffect()       {}
func (EndProcesses) jobsEffect() {}
func (CleanUp) jobsEffect()      {}
func (Settled) jobsEffect()      {}
func (ToOwner) jobsEffect()      {}
func (ToRaylet) jobsEffect()     {}
func (ToStore) jobsEffect()      {}
func (ToDirectory) jobsEffect()  {}
