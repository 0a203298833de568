package owner

import (
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// Config of a Core. The zero value of a field takes its default.
type Config struct {
	Job ids.JobID

	// InlineBudget bounds the bytes of inline values and of task records that the core keeps
	// in memory; above it values are packed into the store and queued specs paged out to the
	// log. Default 64 MiB; the node gives 10 % of its store (design section 3).
	InlineBudget int64
	// SendWindow bounds the bytes of values that are sent to a client and not on their way; what it asks for beyond waits until it reads. Default an
	// eighth of InlineBudget, from 256 KiB to 8 MiB.
	SendWindow int64
	// MessageArgs bounds the bytes of inline values that a task is sent; where it takes more they are packed into the store
	// first, and it reads them there. Default wire.MessageValues.
	MessageArgs int64
	// MaxLineageBytes bounds the specs kept to make lost objects again; the oldest are given
	// up first. Default 1 GiB (Ray's max_lineage_bytes).
	MaxLineageBytes int64
	// MaxKeptBytes bounds the values that nothing makes again and that are kept, while other nodes have objects of the job, for what was made of them. Default 1 GiB.
	MaxKeptBytes int64

	// LeaseIdle is how long a lease may idle before it is returned. Default 500 ms (Ray).
	LeaseIdle time.Duration
	// LeaseSpare is the same while tasks of another class wait for a lease. Default 10 ms: a program that runs one task
	// after another has the next by then.
	LeaseSpare time.Duration
	// SpreadWait is how long tasks that are to be spread wait for a node whose first lease is yet to come. Default 2 s: a worker of Python's starts in less.
	SpreadWait time.Duration
	// PipelineTime is how much work is pushed ahead over one lease, by the measured run time
	// of the class and of the tasks' labels. Default 1 ms (decision 0004).
	PipelineTime time.Duration
	// MaxPipeline bounds the tasks pushed ahead over one lease. Default 256.
	MaxPipeline int
	// ActorWindow bounds the calls pushed to one actor and not done, where the actor's own concurrency is no larger. Default 512.
	ActorWindow int

	// CancelGrace is how long a task past its deadline, or under a cancel that insists, may
	// ignore its cancelled context before its lane is abandoned. Default 2 s (Ray's
	// cancellation retry).
	CancelGrace time.Duration
	// SettleGrace bounds the wait for the second of the two notices of a worker's death (its
	// connection's end and its revoked leases), and for the word of another job's owner on an actor that is not where it was. Default 2 s.
	SettleGrace time.Duration
	// SequenceGapTimeout bounds the wait for a call that is missing in its caller's sequence. Default 1 s.
	SequenceGapTimeout time.Duration
	// ResyncTimeout bounds the wait for a client's holdings after a restart; a client that
	// says nothing is told Bye. Default 10 s.
	ResyncTimeout time.Duration
	// StopGrace bounds the graceful end of an actor, from when its job's calls have ended. Default 30 s.
	StopGrace time.Duration
	// OOMBackoff and MaxOOMBackoff are the wait before a task killed for memory runs again:
	// doubled each time. Default 1 s and 60 s (Ray).
	OOMBackoff, MaxOOMBackoff time.Duration
	// RestartBackoff and MaxRestartBackoff are the wait before an actor, or a task, whose process died a second time in
	// a row runs again: doubled each time, and a quarter more or less. Default 100 ms and 15 s. An actor that lived for RestartReset,
	// and twice as long as it had waited, begins anew. Default 1 s.
	RestartBackoff, MaxRestartBackoff, RestartReset time.Duration
	// InquiryTimeout is how long other jobs may tell that their calls ran in a process that died. Default 250 ms.
	InquiryTimeout time.Duration

	// CreditWindow is the bytes of submits and inline puts a client may have under way.
	// Default 32 MiB; negative: clients are not bounded.
	CreditWindow int64

	// VolatileLog says that the log ends with the process: then what was freed stays freed, and
	// nothing is written to say so.
	VolatileLog bool

	// Transitions turns the Transitions effect on.
	Transitions bool

	// StraightCalls lets clients that are Straight call actors past the owner (decision 0038).
	StraightCalls bool

	sweepPart int // records that a sweep looks at in one step
}

func (c Config) withDefaults() Config {
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	defTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.InlineBudget, 64<<20)
	def(&c.SendWindow, min(max(c.InlineBudget/8, 256<<10), 8<<20))
	def(&c.MessageArgs, wire.MessageValues)
	def(&c.MaxLineageBytes, 1<<30)
	def(&c.MaxKeptBytes, 1<<30)
	def(&c.CreditWindow, 32<<20)
	defTime(&c.LeaseIdle, 500*time.Millisecond)
	defTime(&c.LeaseSpare, 10*time.Millisecond)
	defTime(&c.SpreadWait, 2*time.Second)
	defTime(&c.PipelineTime, time.Millisecond)
	defTime(&c.CancelGrace, 2*time.Second)
	defTime(&c.SettleGrace, 2*time.Second)
	defTime(&c.SequenceGapTimeout, time.Second)
	defTime(&c.ResyncTimeout, 10*time.Second)
	defTime(&c.StopGrace, 30*time.Second)
	defTime(&c.OOMBackoff, time.Second)
	defTime(&c.MaxOOMBackoff, time.Minute)
	defTime(&c.RestartBackoff, 100*time.Millisecond)
	defTime(&c.MaxRestartBackoff, 15*time.Second)
	defTime(&c.RestartReset, time.Second)
	defTime(&c.InquiryTimeout, 250*time.Millisecond)
	if c.MaxPipeline == 0 {
		c.MaxPipeline = 256
	}
	if c.sweepPart == 0 {
		c.sweepPart = sweepPart
	}
	if c.ActorWindow == 0 {
		c.ActorWindow = 512
	}
	return c
}
