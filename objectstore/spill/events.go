package spill

import (
	"time"

	"mobula/objectstore/spill/storage"
)

// kind is what a request does.
type kind uint8

const (
	write  kind = iota // a file
	read               // an object
	remove             // a file
	kinds
)

// request is a job as the core sees it: numbers only.
type request struct {
	id      uint64
	kind    kind
	size    uint64 // bytes of the file, for a write; of the object, for a read
	largest uint64 // for a write: bytes of the largest object
	file    uint64 // for a read: where the object lies
	off     uint64
	at      int64 // the core's own: when it was queued, then when it was started
}

// Health of a target, as its writes show it. Reads are always tried.
type Health uint8

// The states of a target.
const (
	Healthy Health = iota
	Full           // beyond CapacityThreshold; takes what fits, and is looked at again
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

// event is what a target's core steps on.
type event interface{ targetEvent() }

type (
	submit struct{ req request }
	adopt  struct {
		req  request // it runs already: the core before this one started it
		with []uint64
	}
	finished struct {
		id  uint64
		err error // of storage; nil: done
	}
	probed struct {
		capacity storage.Capacity
		err      error
	}
	taken  struct{ size uint64 } // a mapped file was made, which the capacity may not show yet
	tick   struct{}
	cancel struct{} // give up what is queued, deletes excepted
)

// effect is what the shell does for a target's core.
type effect interface{ targetEffect() }

type (
	start struct {
		id   uint64
		with []uint64 // reads of what lies behind it in the file: they share its place, and are finished with it
	}
	refuse struct { // the target does not do it
		id      uint64
		why     error // nil: cancelled
		overdue bool  // its I/O was started and has not returned
	}
	probe struct{ write bool }
	wake  struct{ after time.Duration }
	turn  struct { // the target's health changed
		to  Health
		why error
	}
)

func (submit) targetEvent()   {}
func (adopt) targetEvent()    {}
func (finished) targetEvent() {}
func (probed) targetEvent()   {}
func (taken) targetEvent()    {}
func (tick) targetEvent()     {}
func (cancel) targetEvent()   {}

func (start) targetEffect()  {}
func (refuse) targetEffect() {}
func (probe) targetEffect()  {}
func (wake) targetEffect()   {}
func (turn) targetEffect()   {}
