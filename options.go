package mobula

import (
	"time"

	"mobula/internal/call"
)

// The kinds of option. The compiler checks which call takes which.
type (
	// TaskOption is an option of a function's call. Given at registration it is the default of all calls.
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
// NoCPU asks for none.
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
	// argument); -1 is without bound. Default 3. A kill for memory does not count.
	Retries int
	// Label names the task in lists and traces; the default is the function's name.
	Label string
	// Timeout bounds the time from the call to the task's end. It does not belong to the task's
	// scheduling class, so it may differ from call to call.
	Timeout time.Duration
	// Backpressure is how many items a stream's producer may be ahead of its consumer. The default,
	// 0, is without bound.
	Backpressure int
	// MaxRestarts is how often an actor starts again after a call of it panicked, or after it brought its process down, or its own
	// process died; -1 is without bound. Default 0: it stays dead. If another actor of its process brought the process down, the actor starts again in any
	// case, and that does not count; its state is lost.
	MaxRestarts int
	// MaxTaskRetries is how often a call that was under way when the actor died is made again; -1
	// is without bound. Default 0: the call fails with ErrActorUnavailable or ErrActorDied, and one that panicked with its panic.
	MaxTaskRetries int
	// MaxConcurrency is how many calls of an actor, outside its groups, run at once. Default 1: one
	// after another, in each caller's order.
	MaxConcurrency int
	// MaxPendingCalls is how many calls of an actor may be under way; calls without a result and streams count too. One call more fails
	// at once with ErrPendingCallsLimit. Through a reference that Spawn or GetActor gave, the call itself fails and nothing is sent.
	// Calls of several processes, or through references that came in values, are counted by the node; there the result fails. WaitForRoom
	// waits instead. Default -1: without bound.
	MaxPendingCalls int
	// Group is the concurrency group that a method's call runs in.
	Group string
	// Process names the worker process that an actor shares with the job's other actors of that name. Default: all Go actors of
	// a job that are not Isolated share one.
	Process string
)

// Labels says which nodes may run a task or actor: a condition for each label, which all have to hold. A condition is "a" (the label has this
// value), "!a" (it has not, or there is no such label), "in(a, b)", "!in(a, b)", "exists()" or "!exists()". Where no node fits, the call fails with
// ErrUnschedulable, which says what a node lacks. The labels of a node are its settings (WithLabels); each node has mobula.io/node-id, mobula.io/os and
// mobula.io/arch besides. (Label is something else: the name of a task.)
type Labels map[string]string

// PreferLabels says which of the nodes that may run a task or actor should, where one of them is free. The conditions are those of Labels. It never
// makes a call fail.
type PreferLabels map[string]string

// NodeOption is the option that OnNode and PreferNode give.
type NodeOption struct {
	id   string
	soft bool
}

// OnNode runs a task or actor on one node, by its id: that of RuntimeContext.NodeID, or of `mobula list nodes`. Where that node is gone, or can never run
// it, the call fails with ErrUnschedulable. One that was never heard of is waited for five seconds, since it may have joined just now.
func OnNode(id string) NodeOption { return NodeOption{id: id} }

// PreferNode runs a task or actor on one node, as OnNode does, but on another where that one is gone or can never run it.
func PreferNode(id string) NodeOption { return NodeOption{id: id, soft: true} }

// DeadlineOption is the option that Deadline gives.
type DeadlineOption struct{ at time.Time }

// Deadline is the time by which a task must have ended; else it fails with ErrDeadline. The
// context's deadline counts too: the earlier one holds.
func Deadline(at time.Time) DeadlineOption { return DeadlineOption{at} }

// RetryExceptionsOption is the option that RetryExceptions gives.
type RetryExceptionsOption struct{}

// RetryExceptions lets a task run again also after it returned an error, as often as Retries says.
func RetryExceptions() RetryExceptionsOption { return RetryExceptionsOption{} }

// IsolatedOption is the option that Isolated gives.
type IsolatedOption struct{}

// Isolated runs the task or actor in a process of its own: nothing else can bring it down.
func Isolated() IsolatedOption { return IsolatedOption{} }

// SpreadOption is the option that Spread gives.
type SpreadOption struct{}

// Spread takes one node after the other, where the default stays on this node as long as half of it is free.
func Spread() SpreadOption { return SpreadOption{} }

// DetachedOption is the option that Detached gives.
type DetachedOption struct{}

// Detached lets an actor outlive its job. It needs a name.
func Detached() DetachedOption { return DetachedOption{} }

// EscalateOption is the option that Escalate gives.
type EscalateOption struct{}

// Escalate makes an actor's failure one of its parent too. The parent is the actor whose method or constructor created it. The actor fails when
// its constructor fails, or when a call panics or its process dies beyond its MaxRestarts. The parent then restarts as after a crash of its own, within its own
// MaxRestarts and with their back-off, or it dies; its death escalates further if it has this option too. Stop, Kill and the release of the
// last reference are no failures. An actor that a program or a task created has no parent, and just dies.
func Escalate() EscalateOption { return EscalateOption{} }

// PanicDirective is what a panic in a call of an actor does. Any end of a method but its return is a panic: also runtime.Goexit, and a write
// to a value that is read-only.
type PanicDirective uint8

// The directives, as supervisors have them.
const (
	// PanicRestart ends the instance, and the actor restarts, if its MaxRestarts has a restart left; else it is dead.
	PanicRestart PanicDirective = iota
	// PanicResume lets the instance go on, with its state as the panic has left it. Only the call fails.
	PanicResume
	// PanicStop ends the actor, whatever its MaxRestarts.
	PanicStop
	// PanicEscalate ends the actor, whatever its MaxRestarts, and is a failure of the actor whose method or constructor created it: that one
	// restarts within its own MaxRestarts, or is dead. An actor that a program or a task created has no such parent, and just dies. For failures
	// that are no panics, or are beyond the restarts, there is Escalate.
	PanicEscalate
)

// OnPanicOption is the option that OnPanic gives.
type OnPanicOption struct{ directive PanicDirective }

// OnPanic says what a panic in a call of a Go actor does; the default is PanicRestart. The call fails with ErrPanic and the stack. Where the
// instance ends, calls that run beside it fail with ErrActorUnavailable, or with ErrActorDied if the actor does not restart; what they still write
// goes to the instance that has ended. If the actor restarts, MaxTaskRetries has all of these made again, and calls that had not begun wait
// for the next instance. The close hook is not called. A panic in the constructor is an error of the constructor.
func OnPanic(d PanicDirective) OnPanicOption { return OnPanicOption{d} }

// GetIfExistsOption is the option that GetIfExists gives.
type GetIfExistsOption struct{}

// GetIfExists has Spawn give the actor that has the name already, instead of ErrNameTaken.
func GetIfExists() GetIfExistsOption { return GetIfExistsOption{} }

// WaitForRoomOption is the option that WaitForRoom gives.
type WaitForRoomOption struct{}

// WaitForRoom makes a call wait while this process has as many calls of the actor under way as MaxPendingCalls allows, at most until the context
// ends. So a fast caller does not pile up calls. It needs a reference that Spawn or GetActor gave. Calls without a result and streams wait too,
// and count until they have ended.
func WaitForRoom() WaitForRoomOption { return WaitForRoomOption{} }

// NamedOption is the option that Named gives.
type NamedOption struct{ namespace, name string }

// Named gives an actor a name, unique in its namespace; an empty namespace is the cluster's own.
func Named(namespace, name string) NamedOption { return NamedOption{namespace, name} }

// ConcurrencyGroupOption is what ConcurrencyGroup gives.
type ConcurrencyGroupOption struct {
	name  string
	calls int
}

// ConcurrencyGroup lets that many calls of the group run at once, beside the actor's other calls.
func ConcurrencyGroup(name string, calls int) ConcurrencyGroupOption {
	return ConcurrencyGroupOption{name, calls}
}

func (Resources) taskOption()             {}
func (Retries) taskOption()               {}
func (Label) taskOption()                 {}
func (Timeout) taskOption()               {}
func (DeadlineOption) taskOption()        {}
func (RetryExceptionsOption) taskOption() {}
func (IsolatedOption) taskOption()        {}
func (SpreadOption) taskOption()          {}
func (NodeOption) taskOption()            {}
func (Labels) taskOption()                {}
func (PreferLabels) taskOption()          {}

func (Resources) streamOption()             {}
func (Retries) streamOption()               {}
func (Label) streamOption()                 {}
func (Timeout) streamOption()               {}
func (Backpressure) streamOption()          {}
func (DeadlineOption) streamOption()        {}
func (RetryExceptionsOption) streamOption() {}
func (IsolatedOption) streamOption()        {}
func (SpreadOption) streamOption()          {}
func (NodeOption) streamOption()            {}
func (Labels) streamOption()                {}
func (PreferLabels) streamOption()          {}

func (Resources) actorOption()              {}
func (Label) actorOption()                  {}
func (Timeout) actorOption()                {}
func (MaxRestarts) actorOption()            {}
func (MaxTaskRetries) actorOption()         {}
func (MaxConcurrency) actorOption()         {}
func (MaxPendingCalls) actorOption()        {}
func (Process) actorOption()                {}
func (DeadlineOption) actorOption()         {}
func (IsolatedOption) actorOption()         {}
func (SpreadOption) actorOption()           {}
func (NodeOption) actorOption()             {}
func (Labels) actorOption()                 {}
func (PreferLabels) actorOption()           {}
func (DetachedOption) actorOption()         {}
func (EscalateOption) actorOption()         {}
func (OnPanicOption) actorOption()          {}
func (GetIfExistsOption) actorOption()      {}
func (NamedOption) actorOption()            {}
func (ConcurrencyGroupOption) actorOption() {}

func (Label) callOption()             {}
func (Timeout) callOption()           {}
func (Group) callOption()             {}
func (WaitForRoomOption) callOption() {}
func (Backpressure) callOption()      {}
func (DeadlineOption) callOption()    {}

// options gives base, changed by opts.
func options[O any](base call.Options, opts []O) call.Options {
	for i := range opts {
		apply(&base, any(opts[i]))
	}
	return base
}

// apply sets one option in o. It switches on the type, rather than calling a method, so that options need not be on the
// heap.
func apply(o *call.Options, option any) {
	switch x := option.(type) {
	case Resources:
		o.Resources(x.CPU, x.GPU, x.Memory, x.Custom)
	case Retries:
		o.Retries = call.Count(int(x))
	case Label:
		o.Label = string(x)
	case Timeout:
		o.EndBy(time.Now().Add(time.Duration(x)))
	case DeadlineOption:
		o.EndBy(x.at)
	case RetryExceptionsOption:
		o.RetryExceptions = true
	case IsolatedOption:
		o.Isolate = true
	case SpreadOption:
		o.Spread = true
	case Labels:
		o.Labels(x)
	case PreferLabels:
		o.PreferLabels(x)
	case NodeOption:
		o.On(x.id, x.soft)
	case Backpressure:
		o.Backpressure = call.Count(max(int(x), 0))
	case MaxRestarts:
		o.MaxRestarts = call.Count(int(x))
	case MaxTaskRetries:
		o.MaxTaskRetries = call.Count(int(x))
	case MaxConcurrency:
		o.MaxConcurrency = call.Count(int(x))
	case MaxPendingCalls:
		o.MaxPendingCalls = call.Count(int(x))
	case Group:
		o.Group = string(x)
	case WaitForRoomOption:
		o.WaitForRoom = true
	case Process:
		o.Process = string(x)
	case EscalateOption:
		o.Escalate = true
	case OnPanicOption:
		o.PanicDirective(uint8(x.directive))
	case DetachedOption:
		o.Detached = true
	case GetIfExistsOption:
		o.GetIfExists = true
	case NamedOption:
		o.Namespace, o.ActorName = x.namespace, x.name
		if x.name == "" {
			o.Refuse("Named: an actor's name must not be empty")
		}
	case ConcurrencyGroupOption:
		o.AddGroup(x.name, x.calls)
	case nil:
		o.Refuse("an option is nil")
	}
}
