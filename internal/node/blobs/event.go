package blobs

import (
	"encoding/hex"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Hash is the SHA-256 of a blob.
type Hash [32]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Kind tells what a job has a blob for.
type Kind uint8

// The kinds.
const (
	Executable Kind = iota + 1 // of the job's Go workers
	Modules                    // a zip: the directories of a Python driver's own modules
	Function                   // that a Python process has pickled, or a class
)

func (k Kind) String() string {
	switch k {
	case Executable:
		return "executable"
	case Modules:
		return "modules"
	case Function:
		return "function"
	}
	return "blob of no known kind"
}

// Key names what a job needs. Hash is of a Function alone: which blob the others are the job's home says.
type Key struct {
	Job  ids.JobID
	Kind Kind
	Hash Hash
}

// Place is where a blob lies: in the cache (Job 0), or in the directory of a job.
type Place struct {
	Job  ids.JobID
	Hash Hash
}

// Event is what a Core steps on, by value.
type Event interface{ blobsEvent() }

// Want asks for a blob that a node has; answered by Have or Failed. What is wanted already is not asked for again.
type Want struct {
	Key  Key
	From ids.Home
}

// Found answers Ask.
type Found struct {
	Node ids.Home
	Key  Key
	Hash Hash
	Size uint64
	Err  *errs.Error // it has none; the rest says nothing
}

// Looked answers Look.
type Looked struct {
	Fetch uint64
	Have  bool // whole, and its hash is right
}

// Begun answers Begin. An error: nothing of it is left.
type Begun struct {
	Fetch uint64
	Err   *errs.Error
}

// Chunk answers Pull.
type Chunk struct {
	Node   ids.Home
	Key    Key
	Hash   Hash
	Offset uint64
	Data   []byte
	Err    *errs.Error // there is none
}

// Written answers Write.
type Written struct {
	Fetch  uint64
	Offset uint64
	Err    *errs.Error
}

// Stored answers Store. An error: nothing of it is left.
type Stored struct {
	Fetch uint64
	Err   *errs.Error
}

// Over says that a job is no longer here.
type Over struct{ Job ids.JobID }

// NodeGone says that a node's life has ended.
type NodeGone struct{ Node ids.Home }

func (Want) blobsEvent()     {}
func (Found) blobsEvent()    {}
func (Looked) blobsEvent()   {}
func (Begun) blobsEvent()    {}
func (Chunk) blobsEvent()    {}
func (Written) blobsEvent()  {}
func (Stored) blobsEvent()   {}
func (Over) blobsEvent()     {}
func (NodeGone) blobsEvent() {}
