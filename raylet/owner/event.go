package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/sched"
	"mobula/wire"
)

// Event is what the core steps on.
type Event interface{ ownerEvent() }

// FromClient is a batch of a client's messages, in the order sent.
type FromClient struct {
	Client ids.ClientID
	Msgs   []wire.Msg
}

// FromStore is a message of the object store of a node.
type FromStore struct {
	Node ids.Home
	Msg  objectstore.OwnerMsg
}

// NodeGone says that another node's life has ended, after ClientGone of its workers: what was only there is lost. Err says why.
type NodeGone struct {
	Node ids.Home
	Err  *errs.Error
}

// NodeDoubted says that another node is most likely dead, which nobody has decided yet: work that may run twice need not wait for that.
type NodeDoubted struct {
	Node ids.Home
	Err  *errs.Error
}

// JobOpened says that the job is open on another node, in answer to a cluster.Holds: what follows for the store there arrives.
type JobOpened struct{ Node ids.Home }

// FromSched is a message of the scheduler.
type FromSched struct{ Msg sched.OwnerMsg }

// FromDirectory is a message of the directory.
type FromDirectory struct{ Msg DirectoryNews }

// CancelRequested is a cancel that comes from no client of the job, but from whoever runs the node. KillRequested is its like for actors.
type CancelRequested wire.Cancel

// ClientJoined makes a driver or worker known, before its first message.
type ClientJoined struct {
	Client   ids.ClientID
	Role     wire.Role
	Guest    bool // a worker of another job, for calls of an actor there
	Straight bool // it takes part in calls that go straight (decision 0038)
}

// ClientGone says that a client's connection ended, after its last message; its handles
// fall. Err says why where that is known.
type ClientGone struct {
	Client ids.ClientID
	Err    *errs.Error
}

// ClientRead answers a Receipt.
type ClientRead struct {
	Client ids.ClientID
	Bytes  int64
}

// Timer says that the time asked for by an After effect has come.
type Timer struct{}

// Fetched answers a Fetch effect: the record as it was appended, or Err.
type Fetched struct {
	Token  uint64
	Record []byte
	Err    *errs.Error
}

// Restored is the first event after Rebuild: every client that is connected. Each is asked
// what it holds; until all have answered or are gone, other events are kept back. Epoch
// differs from that of every earlier restart of this owner.
type Restored struct {
	Epoch   uint64
	Clients []ClientJoined
	Jobs    []ids.JobID // the others that have an owner on this node, and those of other homes that there was something with in this life of the node
	Nodes   []ids.Home  // the others that live
}

// Poisoned is a client's messages on which two cores panicked: none will step them. Err says so. It comes after Restored, again after
// each restart.
type Poisoned struct {
	Client ids.ClientID
	Msgs   []wire.Msg
	Err    *errs.Error
}

// Stopping says that the node is about to stop in order: detached actors come back with its next life.
type Stopping struct{}

// EndJob ends the job as the exit of its last driver does.
type EndJob struct{ Err *errs.Error }

func (FromClient) ownerEvent()      {}
func (FromStore) ownerEvent()       {}
func (FromSched) ownerEvent()       {}
func (FromDirectory) ownerEvent()   {}
func (CancelRequested) ownerEvent() {}
func (ClientJoined) ownerEvent()    {}
func (ClientGone) ownerEvent()      {}
func (ClientRead) ownerEvent()      {}
func (Timer) ownerEvent()           {}
func (Fetched) ownerEvent()         {}
func (Restored) ownerEvent()        {}
func (Poisoned) ownerEvent()        {}
func (EndJob) ownerEvent()          {}
func (NodeGone) ownerEvent()        {}
func (NodeDoubted) ownerEvent()     {}
func (JobOpened) ownerEvent()       {}
func (Stopping) ownerEvent()        {}
