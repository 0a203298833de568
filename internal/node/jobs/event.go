package jobs

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/pool"
	"mobula/wire"
)

// Event is what the core steps on.
type Event interface{ jobsEvent() }

// Ask names somebody who waits for an Answer. 0: nobody does.
type Ask uint64

// Began says that a new job has an owner, before anybody else can know of the job.
type Began struct {
	Ask  Ask
	Job  ids.JobID
	Here bool // its driver is in this process, and may read what it has after the job's end
}

// Restored says that a job of an earlier life of the node has its owner again, which waits for the job's driver.
type Restored struct {
	Ask Ask
	Job ids.JobID
}

// AllRestored says that no other job of an earlier life comes back.
type AllRestored struct {
	Ask   Ask
	Names bool // the control plane may have names of that life's actors
}

// Alone says that the driver of a restored job is gone, or has not come in time.
type Alone struct{ Job ids.JobID }

// Start has the raylet told of a job, if it was not yet.
type Start struct {
	Ask Ask
	pool.JobStarted
}

// Hosted says that a job of another node runs here too, and has the raylet told of it. Its owner is there: Over ends it here.
type Hosted struct {
	Ask Ask
	pool.JobStarted
}

// Over is the last word of a job's owner: nothing of the job is left. Or the home of a job whose owner is away has ended it here.
type Over struct {
	Job     ids.JobID
	Away    bool
	Opening uint64 // pool.JobStarted's
}

// Found is what the store has of a job whose owner was not there when it looked.
type Found struct{ objectstore.Inventory }

// Return asks whether a driver may come back to its job, under its old id. Its session before is over when that is answered.
type Return struct {
	Ask    Ask
	Job    ids.JobID
	Client ids.ClientID
	Nth    int    // the number of the return, which no other has
	Proved bool   // it has the job's token
	Lost   string // the end of a sentence about a job that is not there: why, where something on disk tells
}

// Withdrawn says that a return came to nothing after it was allowed.
type Withdrawn struct {
	Job ids.JobID
	Nth int
}

// Join asks to let a driver in, or an executor of this process.
type Join struct {
	Ask Ask
	Client
}

// Client is a driver or worker.
type Client struct {
	ID       ids.ClientID
	Role     wire.Role
	Job      ids.JobID
	Nth      int         // the number of the return that began its session; 0: none did
	Apart    bool        // it has a process of its own
	Local    bool        // it is in the node's process, and needs no connection
	Straight bool        // it takes part in calls that go straight
	Knows    []ids.JobID // whose owners know it
}

// Arrived asks to let a worker in that has connected. The pool has yet to say whether it is one of the node's: Admit or Refuse.
type Arrived struct {
	Ask      Ask
	Client   ids.ClientID
	Straight bool // as in Client
}

// Admit is the pool's word that a worker is one of the node's.
type Admit struct {
	Ask    Ask
	Client ids.ClientID
	Job    ids.JobID
}

// Refuse is the pool's word that a worker is none of the node's, or is none any more.
type Refuse struct {
	Client ids.ClientID
	Err    *errs.Error
}

// GaveUp says that a worker that has arrived waits no longer for the pool's word. Who has asked for it is answered in any case.
type GaveUp struct {
	Client ids.ClientID
	Err    *errs.Error
}

// Guest says that a worker will speak to the owner of another job.
type Guest struct {
	Ask    Ask
	Client ids.ClientID
	Job    ids.JobID
}

// Cut says that the node, and not the driver of a job, has ended the driver's connection.
type Cut struct {
	Job ids.JobID
	Err *errs.Error
}

// Missed says that a driver has sent something to the owner of its job, which was not there.
type Missed struct {
	Client ids.ClientID
	Job    ids.JobID
}

// Gone says that a client's session is over: nothing comes of it any more.
type Gone struct {
	Client ids.ClientID
	Nth    int
	Err    *errs.Error // why
}

// Unread says that nothing of a session is read any more, after Gone.
type Unread struct {
	Client ids.ClientID
	Nth    int
}

// Rebuild is the first event of a core that follows another: what the shell has. Each ask follows that Waits and has no answer, then Rebuilt.
type Rebuild struct {
	Jobs    []Job
	Clients []Client // let in, and not yet Gone
	Found   []Found  // until AllRestored
	Settled bool     // AllRestored was
}

// Rebuilt says that the core has all that the shell has.
type Rebuilt struct{}

// Waits tells of an ask that a core may have taken without an answer to it.
func Waits(ev Event) bool {
	switch ev.(type) {
	case Return, Arrived:
		return true
	}
	return false
}

// Job is a job as the shell knows it.
type Job struct {
	ID      ids.JobID
	Waits   bool // its owner waits for the driver
	Alone   bool // see Alone
	Orphan  bool // it went on without its driver
	Left    bool // ForgetDriver was carried out
	Here    bool // see Began
	Away    bool // see Hosted
	Started bool // the raylet was told
}

func (Began) jobsEvent()       {}
func (Restored) jobsEvent()    {}
func (AllRestored) jobsEvent() {}
func (Alone) jobsEvent()       {}
func (Start) jobsEvent()       {}
func (Hosted) jobsEvent()      {}
func (Over) jobsEvent()        {}
func (Found) jobsEvent()       {}
func (Return) jobsEvent()      {}
func (Withdrawn) jobsEvent()   {}
func (Join) jobsEvent()        {}
func (Arrived) jobsEvent()     {}
func (Admit) jobsEvent()       {}
func (Refuse) jobsEvent()      {}
func (GaveUp) jobsEvent()      {}
func (Guest) jobsEvent()       {}
func (Cut) jobsEvent()         {}
func (Missed) jobsEvent()      {}
func (Gone) jobsEvent()        {}
func (Unread) jobsEvent()      {}
func (Rebuild) jobsEvent()     {}
func (Rebuilt) jobsEvent()     {}

// AskOf is who waits for the answer to an event.
func AskOf(ev Event) Ask {
	switch ev := ev.(type) {
	case Began:
		return ev.Ask
	case Restored:
		return ev.Ask
	case AllRestored:
		return ev.Ask
	case Start:
		return ev.Ask
	case Hosted:
		return ev.Ask
	case Return:
		return ev.Ask
	case Join:
		return ev.Ask
	case Arrived:
		return ev.Ask
	case Admit:
		return ev.Ask
	case Guest:
		return ev.Ask
	}
	return 0
}

// Vital tells of an event that a core must step, since nobody says it again to the next one. Whoever asks is told when his event is dropped.
func Vital(ev Event) bool {
	switch ev.(type) {
	case Over, Alone, Found, Withdrawn, Refuse, GaveUp, Missed, Gone, Unread:
		return true
	}
	return false
}
