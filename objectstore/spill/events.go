package spill

import "time"

// Kind is what a request does.
type Kind uint8

// The kinds of request.
const (
	Write  Kind = iota // a file
	Read               // an object
	Remove             // a file
	kinds
)

// Request is a job as the core sees it: only numbers.
type Request struct {
	ID      uint64
	Kind    Kind
	Size    uint64 // bytes of the file for a write, of the object for a read
	Largest uint64 // for a write: bytes of the largest object
	Frees   bool   // a write after which more goes than it has taken: it may pass the threshold
	File    uint64 // for a read: where the object lies
	Off     uint64
	at      int64 // used by the core: when it was queued, then when it was started
}

// Health of a target, as its writes show it. Reads are always tried.
type Health uint8

// The states of a target.
const (
	Healthy Health = iota
	Full           // beyond CapacityThreshold; takes what fits, and is probed again
	Failed         // missing, read-only or failing; probed again after a time
)

// String is the state in lower case.
func (h Health) String() string {
	switch h {
	case Healthy:
		return "healthy"
	case Full:
		return "full"
	case Failed:
		return "failed"
	}
	return "unknown"
}

// Event is an input of a target's Core.Step.
type Event interface{ targetEvent() }

// Submit queues a request.
type Submit struct{ Req Request }

// Adopt says that a request runs already: an earlier core started it, together with those of With.
type Adopt struct {
	Req  Request
	With []uint64
}

// Finished says that a started request has ended. Err is the storage's error, or nil.
type Finished struct {
	ID  uint64
	Err error
}

// Probed answers Probe.
type Probed struct {
	Capacity Capacity
	Err      error
}

// Taken says that a mapped file was made, which the capacity may not include yet.
type Taken struct{ Size uint64 }

// Tick says that the time of Wake has come.
type Tick struct{}

// Cancel drops queued requests, except deletes.
type Cancel struct{}

func (Submit) targetEvent()   {}
func (Adopt) targetEvent()    {}
func (Finished) targetEvent() {}
func (Probed) targetEvent()   {}
func (Taken) targetEvent()    {}
func (Tick) targetEvent()     {}
func (Cancel) targetEvent()   {}

// Effect is an action of the shell for a target's core.
type Effect interface{ targetEffect() }

// Start asks for a request's I/O. With are reads of objects after it in the file: they share its place in the pool, and finish with
// it.
type Start struct {
	ID   uint64
	With []uint64
}

// Refuse says that the target does not do a request.
type Refuse struct {
	ID      uint64
	Why     error // nil: cancelled
	Overdue bool  // its I/O was started and has not returned
}

// Probe asks for the target's capacity, and with Write whether a small file can be made.
type Probe struct{ Write bool }

// Wake asks for a Tick.
type Wake struct{ After time.Duration }

// Turn says that the target's health has changed.
type Turn struct {
	To  Health
	Why error
}

func (Start) targetEffect()  {}
func (Refuse) targetEffect() {}
func (Probe) targetEffect()  {}
func (Wake) targetEffect()   {}
func (Turn) targetEffect()   {}
