package transfer

import (
	"errors"

	"mobula/internal/ids"
)

// Why a fetch fails or a connection is closed.
var (
	ErrNoHolder = errors.New("transfer: no node is left that could send the object")
	ErrSilent   = errors.New("transfer: nothing is heard of the other node")
	ErrStalled  = errors.New("transfer: nothing arrives")
	ErrIdle     = errors.New("transfer: the connection is not in use")
	ErrGone     = errors.New("transfer: the other node is gone")
	ErrProtocol = errors.New("transfer: the other node does not keep to the protocol")
)

// Object is what is moved: the bytes of one attempt.
type Object struct {
	ID      ids.ObjectID
	Attempt uint32
}

// ConnID numbers a node's connections. No number is used twice.
type ConnID uint64

// FetchID numbers a node's fetches.
type FetchID uint64

// Event is what a Core steps on.
type Event interface{ transferEvent() }

// Fetch asks for an object. Finish answers it.
type Fetch struct {
	ID     FetchID
	Object Object
	Size   int64
	From   []ids.Home // who may have it, the best first
}

// Sources names further nodes that may have an object, for the fetch of it that is under way.
type Sources struct {
	Object Object
	On     []ids.Home
}

// Served answers Export: the store has given the object's bytes, or says that there are none.
type Served struct {
	To      ids.Home
	Token   uint64
	Size    int64
	Failed  bool
	Missing bool // it failed since there is no intact copy
}

// Connected is a new connection. Dialed is one that Dial asked for; this node pulls on it. On any other the other node does.
type Connected struct {
	Conn   ConnID
	Peer   ids.Home
	Dialed bool
}

// DialFailed answers Dial.
type DialFailed struct {
	Peer ids.Home
	Err  error
}

// Closed is the end of a connection, once for each that was Connected. Nobody reads or writes memory on its behalf any more.
type Closed struct {
	Conn ConnID
	Err  error
}

// Got is a frame of the other node, but no Chunk.
type Got struct {
	Conn  ConnID
	Frame Frame
}

// ChunkRead says that a chunk is in place, and that its sum is right.
type ChunkRead struct {
	Conn     ConnID
	Chunk    Chunk
	Unsummed bool // the connection has no checksums: Chunk.Sum says nothing
}

// NoMemory says that a chunk could not be put in place, for a lack of memory here. No more is read of the connection.
type NoMemory struct {
	Token uint64
	Err   error
}

// Heard says that a part of a chunk has arrived.
type Heard struct{ Conn ConnID }

// ChunkWritten answers WriteChunk.
type ChunkWritten struct{ Conn ConnID }

// Gone says that the control plane has declared a node dead.
type Gone struct{ Node ids.Home }

// Timer says that the time asked for by After has come.
type Timer struct{}

func (Fetch) transferEvent()        {}
func (Sources) transferEvent()      {}
func (Served) transferEvent()       {}
func (Connected) transferEvent()    {}
func (DialFailed) transferEvent()   {}
func (Closed) transferEvent()       {}
func (Got) transferEvent()          {}
func (ChunkRead) transferEvent()    {}
func (NoMemory) transferEvent()     {}
func (Heard) transferEvent()        {}
func (ChunkWritten) transferEvent() {}
func (Gone) transferEvent()         {}
func (Timer) transferEvent()        {}
