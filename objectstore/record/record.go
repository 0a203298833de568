package record

import (
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/spill"
)

// State is what a record says about its object.
type State uint8

// The states. Values are on disk.
const (
	StateFree      State = iota // the slot is unused
	StateGranted                // an extent given to a client to write
	StateSealed                 // an immutable object
	StateRestoring              // sealed and spilled, being read into the extent
	StateClient                 // a client that may hold pins
	StateEnd                    // the first that is none
)

// Record is one slot's content.
type Record struct {
	State    State
	ID       ids.ObjectID
	Attempt  uint32
	Client   ids.ClientID // granted: the writer
	PID      int32        // of a client
	Job      ids.JobID    // whose process made the object: Block lies in its file; or that of a client
	Resident bool         // Block (in File 0) or the whole of File holds the bytes
	File     uint32
	Block    alloc.Block
	Size     uint64 // of the data
	Spilled  bool   // Loc holds a copy
	Loc      spill.Location
	Packed   bool // a block of packed values: the payload is their directory
	Copy     bool // for the processes of Job, of an object that lies in another job's file
	// Payload is the object's meta, or a block's directory. Nil, where a record is written, keeps what the slot has; a record that
	// is read has it as a slice of its own.
	Payload []byte
	// Path of a fallback file, where File is not 0; part of the payload on disk.
	Path string
}

// Entry is a record and its slot.
type Entry struct {
	Slot uint32
	Record
}
