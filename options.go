package mobula

import "time"

// The kinds of option; which call takes which is checked when the program is compiled.
type (
	// TaskOption is an option of a function's call, or of its registration: then the default of its calls.
	TaskOption interface{ taskOption() }
	// StreamOption is an option of a streaming function's call.
	StreamOption interface{ streamOption() }
	// ActorOption is an option of an actor's creation.
	ActorOption interface{ actorOption() }
	// CallOption is an option of an actor method's call.
	CallOption interface{ callOption() }
)

// Resources is what a task takes while it runs, or an actor while it lives. Amounts may be
// fractions, to a thousandth. A zero CPU is the default: 1 for a task, none for an actor (whose creation takes 1);
// NoCPU is none.
type Resources struct {
	CPU    float64            // cores
	GPU    float64            // devices
	Memory int64              // bytes
	Custom map[string]float64 // anything a node was started with
}

// NoCPU as Resources.CPU asks for no CPU.
const NoCPU = -1

type (
	// Retries is how often a task runs again after a system fault (a worker's death, a lost
	// argument); -1 without bound. Default 3. Being killed for memory does not count.
	Retries int
	// Label names the task in lists and traces; the default is the function's name.
	Label string
	// Timeout bounds the time from the call to the task's end. It is a deadline, not an option
	// of the task's class, so it may differ from call to call.
	Timeout time.Duration
	// Backpressure is how many items a stream's producer may be ahead of its consumer; 0, the
	// default, is without bound.
	Backpressure int
	// MaxRestarts is how often an actor starts again after it brought its process down, or its own process died; -1 without
	// bound. Default 0: it stays dead. An actor that did nothing when a neighbour in its process brought that down starts again in
	// any case, with its state lost, and it does not count.
	MaxRestarts int
	// MaxTaskRetries is how often a call in flight when the actor died is made again; -1 without
	// bound. Default 0: it fails with ErrActorUnavailable or ErrActorDied.
	MaxTaskRetries int
	// MaxConcurrency is how many calls of an actor run at once, outside its groups. Default 1:
	// one after another, in each caller's order.
	MaxConcurrency int
	// MaxPendingCalls is how many calls of an actor may be under way, those without a result and streams too. One more fails at once with
	// ErrPendingCallsLimit: through a reference that Spawn or GetActor gave the call itself fails, and nothing is sent; calls of several
	// processes, or through references that came in values, are counted by the node, and their results fail. WaitForRoom waits instead.
	// Default -1: without bound.
	MaxPendingCalls int
	// Group is the concurrency group that a method's call runs in.
	Group string
	// Process names the worker process that an actor shares with the job's other actors of that name. Default: all Go actors of
	// a job that are not Isolated share one.
	Process string
)

type (
	deadlineOption   struct{ at time.Time }
	retryExceptions  struct{}
	isolatedOption   struct{}
	waitForRoom      struct{}
	spreadOption     struct{}
	detachedOption   struct{}
	escalateOption   struct{}
	getIfExistsOpt   struct{}
	namedOption      struct{ namespace, name string }
	concurrencyGroup struct {
		name string
		max  int
	}
)

// Deadline is when a task must have ended, else it fails with ErrDeadline. The
// context's deadline counts too; the earlier one holds.
func Deadline(at time.Time) deadlineOption { return deadlineOption{at} } //nolint:revive // only ever passed on

// RetryExceptions lets a task run again, as often as Retries says, also when it returns an error.
func RetryExceptions() retryExceptions { return retryExceptions{} } //nolint:revive // only ever passed on

// Isolated runs the task or actor in a process of its own: nothing else can bring it down.
func Isolated() isolatedOption { return isolatedOption{} } //nolint:revive // only ever passed on

// Spread prefers the node with the least load to the nearest one.
func Spread() spreadOption { return spreadOption{} } //nolint:revive // only ever passed on

// Detached lets an actor outlive its job. It needs a name.
func Detached() detachedOption { return detachedOption{} } //nolint:revive // only ever passed on

// Escalate makes an actor's failure one of its parent too, the actor whose method or constructor has created it: where the child's
// constructor failed, or its process died beyond its MaxRestarts, the parent restarts as after a crash of its own, within its own
// MaxRestarts and with their back-off, or it dies, and that escalates further if it has this option too. Stop, Kill and the release of the last
// reference are no failures. An actor that a program or a task has created has no parent: it is dead, and that is all.
func Escalate() escalateOption { return escalateOption{} } //nolint:revive // only ever passed on

// GetIfExists gives the actor that has the name already, where there is one, instead of ErrNameTaken.
func GetIfExists() getIfExistsOpt { return getIfExistsOpt{} } //nolint:revive // only ever passed on

// WaitForRoom has a call wait while its actor has as many calls of this process under way as its MaxPendingCalls allows, at most until the context
// ends. It bounds what a fast caller piles up, and needs a reference that Spawn or GetActor gave. A call without a result and a stream wait too,
// and are waited for until they have ended.
func WaitForRoom() waitForRoom { return waitForRoom{} } //nolint:revive // only ever passed on

func waitsForRoom[O any](opts []O) bool {
	for i := range opts {
		if _, ok := any(opts[i]).(waitForRoom); ok {
			return true
		}
	}
	return false
}

// Named gives an actor a name, unique in its namespace; an empty namespace is the cluster's own.
func Named(namespace, name string) namedOption { return namedOption{namespace, name} } //nolint:revive // only ever passed on

// ConcurrencyGroup lets so many calls in the group run at once, beside the actor's other calls.
func ConcurrencyGroup(name string, calls int) concurrencyGroup { return concurrencyGroup{name, calls} } //nolint:revive // only ever passed on

func (Resources) taskOption()       {}
func (Retries) taskOption()         {}
func (Label) taskOption()           {}
func (Timeout) taskOption()         {}
func (deadlineOption) taskOption()  {}
func (retryExceptions) taskOption() {}
func (isolatedOption) taskOption()  {}
func (spreadOption) taskOption()    {}

func (Resources) streamOption()       {}
func (Retries) streamOption()         {}
func (Label) streamOption()           {}
func (Timeout) streamOption()         {}
func (Backpressure) streamOption()    {}
func (deadlineOption) streamOption()  {}
func (retryExceptions) streamOption() {}
func (isolatedOption) streamOption()  {}
func (spreadOption) streamOption()    {}

func (Resources) actorOption()        {}
func (Label) actorOption()            {}
func (Timeout) actorOption()          {}
func (MaxRestarts) actorOption()      {}
func (MaxTaskRetries) actorOption()   {}
func (MaxConcurrency) actorOption()   {}
func (MaxPendingCalls) actorOption()  {}
func (Process) actorOption()          {}
func (deadlineOption) actorOption()   {}
func (isolatedOption) actorOption()   {}
func (spreadOption) actorOption()     {}
func (detachedOption) actorOption()   {}
func (escalateOption) actorOption()   {}
func (getIfExistsOpt) actorOption()   {}
func (namedOption) actorOption()      {}
func (concurrencyGroup) actorOption() {}

func (Label) callOption()          {}
func (Timeout) callOption()        {}
func (Group) callOption()          {}
func (waitForRoom) callOption()    {}
func (Backpressure) callOption()   {}
func (deadlineOption) callOption() {}
