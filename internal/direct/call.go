package direct

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Channel names a channel: the node gives it out, and no two are the same.
type Channel uint64

// Instance names an instance of an actor: the lease that it lives on.
type Instance = ids.LeaseID

// Call is one call, as the process that makes it knows it. The caller of Begin sets the exported fields; the rest belongs to the Caller.
type Call struct {
	ID      ids.TaskID
	Caller  ids.TaskID // the task that makes it: its calls are ordered
	Group   int        // the concurrency group, by its place among the actor's
	Bytes   int64      // what it takes of the credit
	Retries int32      // MaxTaskRetries; -1: without bound
	ByOwner bool       // its caller may run again and would repeat it
	Shared  bool       // the owner is told of it before it is sent: it has something of it before its end
	touched bool
	Payload any // for who sends it
	Missing int // arguments that are not there yet when it is made

	standing              // in the step under way
	kept         standing // after the last step that has ended: what a new core goes on from
	older, newer *Call    // among the results that only this process has
}

// standing is what a Caller knows of a call. It is copied at each step, so it is as small as can be.
type standing struct {
	order     uint64      // among the calls of the actor; 0: it is not begun
	no        uint64      // on the channel on which it was sent
	nth       uint64      // of its group there
	final     *errs.Error // it was cancelled: it is not made again
	outcome   *Outcome    // what it came to, or what the host says of the end of the instance
	missing   int32       // arguments that are not there yet
	leaving   int32       // references that leave when the owner has answered
	tries     int32       // retries used
	stage     stage
	said      Said // what the host said of it when its instance ended
	adopted   bool // the owner has been told of it
	known     bool // and has answered
	submitted bool // it has gone by the owner, which knows what becomes of it
	alone     bool // only this process has the outcome
	dropped   bool // no reference to the result is left here
}

type stage uint8

// The stages of a call in the process that makes it.
const (
	inLine    stage = iota // it waits for its turn, an argument, or a way
	onChannel              // it was sent
	late                   // its deadline has passed, and its host has yet to answer: those behind it do not overtake it
	withOwner              // it was submitted
	ended
)

// Said is what a host says of a call in place of a result, when the instance has ended under it or before it.
type Said uint8

// What is said of such a call.
const (
	SaidNothing Said = iota
	SaidWaits        // it has not begun
	SaidBegun        // it ran when another call panicked
	SaidCulprit      // it panicked
)

// Outcome is what a call came to: a value or an error. The cores do not look into the value.
type Outcome struct {
	Value any
	Err   *errs.Error
	Bytes int64 // that it takes in the process of the caller
}

// begun tells whether a call that was sent may have begun, as far as it is known.
func (c *Call) begun(counts []uint64) bool {
	switch c.said {
	case SaidWaits:
		return false
	case SaidBegun, SaidCulprit:
		return true
	case SaidNothing:
	}
	return c.Group >= len(counts) || c.nth <= counts[c.Group]
}

// Order is its place among the calls that its process has made of the actor.
func (c *Call) Order() uint64 { return c.order }

// InLine tells whether it waits to be sent.
func (c *Call) InLine() bool { return c.order > 0 && c.stage == inLine }

// Tries is how many retries it has used.
func (c *Call) Tries() int32 { return c.tries }

// charge takes one retry, if there is one.
func (c *Call) charge() bool {
	if c.final != nil || c.Retries >= 0 && c.tries >= c.Retries {
		return false
	}
	c.tries++
	return true
}
