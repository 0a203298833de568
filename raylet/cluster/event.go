package cluster

import (
	"fmt"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// Event is what a Core steps on, by value.
type Event interface{ clusterEvent() }

// Restored is the first event of a core that takes the place of another: the other nodes that live, and the jobs whose owners are asked what they hold, under
// an epoch that was not used before.
type Restored struct {
	Nodes []ids.Home
	Jobs  []ids.JobID
	Epoch uint64
}

// FromOwner is what the owner of a job here says to its scheduler.
type FromOwner struct {
	Job   ids.JobID
	Event sched.Event
}

// Locality says where the bytes of the stored arguments are that the tasks of a class wait with. It comes before the Want that it is for, and replaces what
// was said before. It is a hint: those nodes are enough that have most.
type Locality struct {
	Key  sched.ClassKey
	Args []Held
}

// Heard says that a job's owner was granted a lease. It comes before the Want that counts with it; only leases of tasks that are to be spread are told of.
type Heard struct {
	Job   ids.JobID
	Lease ids.LeaseID
}

// Holds says whether a job has objects in the store of another node, or may have. While it has it is not closed there. An owner that is asked what it
// holds says so first.
type Holds struct {
	Job     ids.JobID
	Node    ids.Home
	Objects bool
}

// FromScheduler is what a node's scheduler says to the owner of a job here.
type FromScheduler struct {
	Node ids.Home
	Job  ids.JobID
	Msg  sched.OwnerMsg
}

// JobClosed answers CloseJob: the node has dropped what it had of the job, and nothing of that follows.
type JobClosed struct {
	Node ids.Home
	Job  ids.JobID
}

// JobAbandoned says that a job's owner has given up what the job had on a node, which does not answer.
type JobAbandoned struct {
	Node ids.Home
	Job  ids.JobID
}

// JobEnded says that nothing of a job is left.
type JobEnded struct{ Job ids.JobID }

// NodeReport is a report, of this node or of another. They are repeated: what a node says while it is not known to live is ignored.
type NodeReport struct{ Node Node }

// NodeUp says that another node lives and can be sent to.
type NodeUp struct{ Node ids.Home }

// NodeGone ends the life of another node, with all that it had. Its next life begins with another NodeUp.
type NodeGone struct{ Node ids.Home }

// Inspect runs a function where the core is stepped, which must only look.
type Inspect struct{ Do func(*Core) }

// Timer says that the time asked for by After has come.
type Timer struct{}

func (Restored) clusterEvent()      {}
func (FromOwner) clusterEvent()     {}
func (Locality) clusterEvent()      {}
func (Heard) clusterEvent()         {}
func (Holds) clusterEvent()         {}
func (FromScheduler) clusterEvent() {}
func (JobClosed) clusterEvent()     {}
func (JobAbandoned) clusterEvent()  {}
func (JobEnded) clusterEvent()      {}
func (NodeReport) clusterEvent()    {}
func (NodeUp) clusterEvent()        {}
func (NodeGone) clusterEvent()      {}
func (Inspect) clusterEvent()       {}
func (Timer) clusterEvent()         {}

// Vital tells of an event that a core must step, since nobody says it again to the next one: what owner and scheduler say to one another, which both take for heard, where
// objects are, since the job would be closed there, and what ends leases. What an owner wants it says when it is asked, reports come again, and which
// nodes live the shell knows.
func Vital(ev Event) bool {
	switch ev := ev.(type) {
	case FromOwner:
		_, wants := ev.Event.(sched.Want)
		return !wants
	case Holds, FromScheduler, JobClosed, JobAbandoned, JobEnded, NodeGone:
		return true
	}
	return false
}

// Effect is an action that Step asks for.
type Effect interface{ clusterEffect() }

// ToScheduler is for a node's scheduler, this node's or another's. What goes to one node stays in order.
type ToScheduler struct {
	Node  ids.Home
	Job   ids.JobID
	Event sched.Event
}

// ToOwner is for the owner of a job.
type ToOwner struct {
	Job ids.JobID
	Msg sched.OwnerMsg
}

// OpenJob makes a job known to another node, before the first message about it. A core that was rebuilt may repeat it.
type OpenJob struct {
	Node ids.Home
	Job  ids.JobID
}

// CloseJob has another node drop what it has of a job, which is nothing that this node knows of, and answer with JobClosed. Until then nothing is sent
// there about the job, and what comes from there is ignored.
type CloseJob struct {
	Node ids.Home
	Job  ids.JobID
}

// Opened answers a Holds: the job is open on the node, and what its owner has said there from now on arrives.
type Opened struct {
	Node ids.Home
	Job  ids.JobID
}

// After asks for Timer once D has passed.
type After struct{ D time.Duration }

func (ToScheduler) clusterEffect() {}
func (ToOwner) clusterEffect()     {}
func (OpenJob) clusterEffect()     {}
func (CloseJob) clusterEffect()    {}
func (Opened) clusterEffect()      {}
func (After) clusterEffect()       {}

// unknown is a bug in the program: supervision reports it.
func unknown(what any) string { return fmt.Sprintf("cluster: unknown event %T", what) }
