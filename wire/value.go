package wire

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Value is an encoded value: Meta says how Data is laid out (package codec), Refs
// are the object references it contains.
type Value struct {
	Meta []byte // at most MaxMeta bytes
	Data []byte
	Refs []ids.ObjectID
}

// Extent is where an object's bytes lie: File 0 is the node's segment, any other
// number a file mapped from the spill directory (the escape when nothing can be
// unpinned), announced by MapFile before its first use. Offset and size in bytes.
type Extent struct {
	File uint32
	Off  uint64
	Size uint64
}

// ResultKind tells how an object was resolved.
type ResultKind uint8

// The kinds of result.
const (
	ResultNone   ResultKind = iota // not known
	ResultInline                   // Value holds the bytes
	ResultStored                   // the store holds the bytes; Value has Meta and Refs only
	ResultError                    // Err says why there is none
)

// Result is the outcome of one object.
type Result struct {
	Kind  ResultKind
	Value Value
	Size  uint64 // of the data in bytes, inline or stored
	Err   *errs.Error
}

// TraceContext is a W3C trace context.
type TraceContext struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte // bit 0: sampled
}

// Sampled tells whether spans of this trace are recorded.
func (t TraceContext) Sampled() bool { return t.Flags&1 != 0 }

// Resource is an amount of one resource in thousandths: half a CPU is {"CPU", 500}.
// "memory" is in bytes, not thousandths.
type Resource struct {
	Name   string
	Amount int64
}

// TaskOptions is what all calls of one handle with the same options share. It is
// immutable once a task with it was submitted; within a process equal options
// should be the same pointer, which the scheduler uses as the fast key of a class.
type TaskOptions struct {
	Func            string     // the registered name
	NumReturns      int32      // Streaming: a stream of any length
	Resources       []Resource // sorted by name; nil is one CPU for a task, none for an actor
	MaxRetries      int32      // of system faults; -1 without bound
	RetryExceptions bool       // retry application errors too
	Isolate         bool       // a worker process of its own
	Backpressure    int32      // streaming: items produced ahead of the consumer; 0 without bound
	Spread          bool
	Label           string // shown in lists and traces; empty: Func

	// Which nodes may run it, and which of those should, where one is free. Each is sorted by key, and so are its values.
	Labels, PreferLabels []LabelMatch

	Affinity Affinity
	Node     ids.Home // with Affinity

	// ExceptionRetries bounds, where RetryExceptions is set, the retries of application errors; -1: without bound. They are
	// then counted apart from system faults. 0: MaxRetries bounds both together.
	ExceptionRetries int32

	// RetryOnly says, where RetryExceptions is set, which application errors are retried, in a form that the worker knows, who
	// reports others as final. Empty: all. A Python program gives the hash of the list of the exceptions' types.
	RetryOnly string

	// Of an actor's creation.
	MaxRestarts     int32 // -1 without bound
	MaxTaskRetries  int32
	MaxConcurrency  int32
	Groups          []ConcurrencyGroup
	MaxPendingCalls int32 // -1 without bound
	Namespace       string
	ActorName       string // empty: anonymous
	Detached        bool
	GetIfExists     bool
	Process         string // shared with the job's other actors of that name; empty: its default one
	Escalate        bool   // its failure beyond its restarts is one of the actor that has created it
	OnPanic         OnPanic

	Group string // of a method call: its concurrency group
}

// longOptions is from how many bytes of text on options are long.
const longOptions = 1 << 10

// Long tells whether options have so much text that only what needs them may keep them: tables of options, and records of tasks that have ended,
// are bounded by their number. Programs give tasks names of any length.
func (o *TaskOptions) Long() bool {
	n := len(o.Func) + len(o.Label) + len(o.RetryOnly) + len(o.Namespace) + len(o.ActorName) + len(o.Process) + len(o.Group)
	for _, r := range o.Resources {
		n += len(r.Name)
	}
	for _, g := range o.Groups {
		n += len(g.Name)
	}
	for _, of := range [...][]LabelMatch{o.Labels, o.PreferLabels} {
		for _, m := range of {
			n += len(m.Key)
			for _, v := range m.Values {
				n += len(v)
			}
		}
	}
	return n > longOptions
}

// OnPanic is what a panic in a call of an actor does.
type OnPanic uint8

// The ways to go on after a panic.
const (
	PanicRestarts  OnPanic = iota // the actor restarts, within MaxRestarts, else it is dead
	PanicResumes                  // the instance goes on
	PanicStops                    // the actor is dead
	PanicEscalates                // the actor is dead, and the one that has created it has failed
)

// Streaming as NumReturns makes a task's results a stream.
const Streaming int32 = -1

// ConcurrencyGroup is a named bound on an actor's concurrent calls.
type ConcurrencyGroup struct {
	Name string
	Max  int32
}

// TaskKind tells what a task spec asks for.
type TaskKind uint8

// The kinds of task.
const (
	TaskNormal TaskKind = iota
	TaskActorCreate
	TaskActorCall
)

// Arg is one argument: a value, or a reference whose value is passed.
type Arg struct {
	Ref   ids.ObjectID // zero: Value is the argument
	Value Value
}

// TaskSpec describes one task. It is immutable after submission.
type TaskSpec struct {
	ID       ids.TaskID
	Parent   ids.TaskID
	Opts     *TaskOptions
	Args     []Arg
	Actor    ids.ActorID // of a call; of a creation it is ID
	Seq      uint64      // of a call: 1, 2, 3 ... for one caller and one actor
	Deadline int64       // Unix nanoseconds; 0: none
	Trace    TraceContext
	Kind     TaskKind // here, it fits in Trace's padding
	Callsite string   // "file.go:12", sampled; may be empty

	Submitted int64 // Unix nanoseconds of the call, where Trace is sampled; 0: not said

	// Promises are the numbers of tasks that this one is to submit (ids.Derive): the client holds a
	// handle on the first return of each from now on. What was not submitted when the task ends has failed. A call of which no result is kept
	// names EndOfCall, which it does not submit: who has asked for that is told of the call's end.
	Promises []uint32
}

// EndOfCall is what a call promises (TaskSpec.Promises) whose end is to be told, though it has no result that would tell. A node that does not know of
// it answers at once.
const EndOfCall uint32 = 1<<32 - 1

// Caller is the task that made the call: calls of one caller to one actor are ordered.
func (s *TaskSpec) Caller() ids.TaskID { return s.Parent }

// ArgValue is a reference argument as the worker gets it.
type ArgValue struct {
	Index  int32 // into TaskSpec.Args
	Result Result
	Extent Extent // where Result.Kind is ResultStored
}

// ExecTask is one attempt at a task, its reference arguments resolved.
type ExecTask struct {
	Spec    *TaskSpec
	Attempt uint32
	Args    []ArgValue // in order of Index; only the references
}

// Limits of the protocol.
const (
	Version    = 7 // of the protocol this build speaks
	MinVersion = 6 // the oldest it still understands

	MaxFrame  = 64 << 20  // bytes of one frame's payload
	MaxMeta   = 4 << 10   // bytes of a value's Meta
	InlineMax = 100 << 10 // bytes of a value that travels inside messages, by default

	// RequestsAtOnce is how many Requests a client may have without an answer. A node keeps twice as many: on a new connection it may still
	// be at work on those of the last.
	RequestsAtOnce = 32

	// Replayed is how many of its last submits, puts and seals a driver sends once more to a node that has started again.
	Replayed = 64 << 10

	MessageValues = 16 << 20 // bytes of the values inside one message; what is more goes into the store, however small each is
)
