package internode

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/raylet/owner"
	"mobula/raylet/sched"
	"mobula/wire"
)

// Version of the protocol between nodes that this build speaks, and MinVersion, the oldest that it still understands. Each release speaks that of the
// one before too, since a cluster is upgraded node by node.
const (
	Version    = 3
	MinVersion = 2
)

// PeersTalk is the first version in which owners of jobs of different homes talk with each other: PeerWords and ToPeer.
const PeersTalk = 3

// Kind numbers the messages; it is the field number in Payload of internode.proto.
type Kind uint8

// Msg is any message below, always a pointer. There are no others.
type Msg interface {
	Kind() Kind
	msg()
}

// Of a job, from its home to another node.

// OpenJob makes a job known to another node, before all other messages of the job: what its workers there run, and in what environment. Where that node
// cannot run them, it answers each Want with Infeasible.
type OpenJob struct {
	Job       ids.JobID
	Namespace string
	Program   *wire.Program   // what its workers run; nil: the driver's executable
	Others    []wire.Program  // what the workers of further languages run
	Functions []wire.FuncInfo // that the driver has registered
	Environ   []byte          // of the driver; see wire.PackEnviron

	Args     []string // of the driver's executable; none if Program says what workers run
	OS, Arch string   // that executables are for, as in Go's GOOS and GOARCH

	Output bool // the home takes what the job's workers write, as WorkerOutput
}

// CloseJob ends a job on another node, and all that runs for it there. Err says why.
type CloseJob struct {
	Job ids.JobID
	Err *errs.Error
}

// ToClients brings messages to workers. Where it is read, all those of an item are one wire.Encoded.
type ToClients struct {
	Job   ids.JobID
	Items []ClientMsgs
}

// ClientMsgs is messages to or from one client, in the order sent.
type ClientMsgs struct {
	Client ids.ClientID
	Msgs   []wire.Msg
}

// ToSched brings a message to the scheduler: one that owners send.
type ToSched struct {
	Job ids.JobID
	Msg sched.Event
}

// ToStore brings a message to the store: one that owners send, but for Pack.
type ToStore struct {
	Job ids.JobID
	Msg objectstore.Event
}

// Of a job, from another node to its home.

// JobClosed answers CloseJob: the node has dropped what it had of the job, and nothing of that follows.
type JobClosed struct{ Job ids.JobID }

// ClientJoined makes a client known, before its first message.
type ClientJoined struct {
	Job    ids.JobID
	Client ids.ClientID
	Role   wire.Role
}

// ClientGone says that a client's connection has ended, after its last message. Err says why, where that is known.
type ClientGone struct {
	Job    ids.JobID
	Client ids.ClientID
	Err    *errs.Error
}

// FromClients brings messages of clients to the job's owner.
type FromClients struct {
	Job   ids.JobID
	Items []ClientMsgs
}

// FromSched brings a message of the scheduler to the job's owner.
type FromSched struct {
	Job ids.JobID
	Msg sched.OwnerMsg
}

// FromStore brings a message of the store to the job's owner: any but Packed.
type FromStore struct {
	Job ids.JobID
	Msg objectstore.OwnerMsg
}

// Of a node.

// Report is what a node says of itself, to each other node.
type Report struct{ Node cluster.Node }

// Of a job, between its home and another node: blobs, which are what its workers run (package internal/node/blobs).

// BlobKind is what a job has a blob for.
type BlobKind uint8

// The kinds of blobs.
const (
	BlobExecutable BlobKind = iota + 1 // of its Go workers
	BlobModules                        // a zip: a Python driver's own modules
	BlobFunction                       // that a Python process has pickled
)

// FindBlob asks which blob a job has for something; answered by BlobFound.
type FindBlob struct {
	Job  ids.JobID
	What BlobKind
	Hash [32]byte // of a BlobFunction alone
}

// BlobFound answers FindBlob. Err: there is none.
type BlobFound struct {
	Job  ids.JobID
	What BlobKind
	Hash [32]byte
	Size uint64
	Err  *errs.Error
}

// PullBlob asks for a part of a blob; answered by BlobChunk. Who asks has few of them under way.
type PullBlob struct {
	Job          ids.JobID
	What         BlobKind
	Hash         [32]byte
	Offset, Size uint64
}

// BlobChunk answers PullBlob. Err: there is none.
type BlobChunk struct {
	Job    ids.JobID
	What   BlobKind
	Hash   [32]byte
	Offset uint64
	Data   []byte
	Err    *errs.Error
}

// OfferBlob tells a job's home of a function that was pickled on this node, for the home to fetch; answered by BlobTaken.
type OfferBlob struct {
	Job  ids.JobID
	Hash [32]byte
}

// BlobTaken answers OfferBlob: the home has the function, or Err says why not.
type BlobTaken struct {
	Job  ids.JobID
	Hash [32]byte
	Err  *errs.Error
}

// Of two jobs, from the home of one to the home of the other: what the owner of the one says to the owner of the other (owner.FromOwner).

// PeerWords is what a client and its owner say to each other as well (owner.Words), in the order said.
type PeerWords struct {
	From, To ids.JobID
	Msgs     []wire.Msg
}

// ToPeer is what only owners say to each other: any owner.PeerMsg but Words, and what a node itself tells its owners of others.
type ToPeer struct {
	From, To ids.JobID
	Msg      owner.PeerMsg
}

func (*OpenJob) msg()      {}
func (*CloseJob) msg()     {}
func (*ToClients) msg()    {}
func (*ToSched) msg()      {}
func (*ToStore) msg()      {}
func (*JobClosed) msg()    {}
func (*ClientJoined) msg() {}
func (*ClientGone) msg()   {}
func (*FromClients) msg()  {}
func (*FromSched) msg()    {}
func (*FromStore) msg()    {}
func (*Report) msg()       {}
func (*FindBlob) msg()     {}
func (*BlobFound) msg()    {}
func (*PullBlob) msg()     {}
func (*BlobChunk) msg()    {}
func (*OfferBlob) msg()    {}
func (*BlobTaken) msg()    {}
func (*PeerWords) msg()    {}
func (*ToPeer) msg()       {}
