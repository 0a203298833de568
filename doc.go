// Package mobula runs functions and actors on an actor-model runtime: in this process, in worker
// processes of this machine and, through a node, beside other programs. It is Ray's programming
// model in Go.
//
// Go cannot ship a closure, so functions, actor types and methods are registered at package
// level under a stable name, and give a typed handle:
//
//	var Add = mobula.Register2("math/add", func(ctx context.Context, a, b float64) (float64, error) { return a + b, nil })
//
//	func main() {
//		mobula.Main(func(ctx context.Context, c *mobula.Cluster) error {
//			x := Add.Go(ctx, mobula.V(1.0), mobula.V(2.0)) // a Ref[float64]; does not block
//			y := Add.Go(ctx, x, mobula.V(3.0))             // an argument is a value or a reference
//			sum, err := y.Get(ctx)
//			...
//		})
//	}
//
// # Contexts
//
// Every call finds its cluster, and the task it is made from, through the context: pass on the one
// that Main or the task got, or bind another with Cluster.Context. The deadline of a context given
// to Go is the task's deadline; that of one given to Get bounds the wait and nothing else.
//
// Cancelling a context cancels the calls that were made with it (tasks, streams and actor calls) and whatever they have called, unless
// the result is known here already. So a function that returns a reference must not call with a context that it cancels as it returns. A
// call with a cancelled context fails with ErrCancelled. Get, Wait and View only give up their wait; what they waited for goes on. A
// context does not end actors, calls made with Tell, or tasks that nobody refers to. A task's own context ends when the task returns or
// is cancelled; the tasks that it has called go on, unless it was cancelled with Recursive. context.WithoutCancel keeps a call from
// being cancelled.
//
// # Values
//
// A value is copied when it is passed. Views, and slices of numbers and bytes that a task gets as arguments, are not copied: they
// alias shared memory, are read-only, and are valid until the view is closed or the call returns. A task that writes to them fails
// with an error that says so; a write in a goroutine that the program started ends the process. Values of up to 100 KiB are copies.
// Clone what is kept longer or changed. With the build tag invariants, a slice that is used too long faults at once. Create and
// CreateResult give memory in which large slices are written in place, without any copy. Exported fields travel, but for those with
// the tag `cbor:"-"` or `json:"-"`, and so do references (Ref, ActorRef) inside values.
//
// # References
//
// A Ref is small, and can be copied and compared. The object it names lives until every copy, in
// every process, is garbage or was released. Release is not needed, but frees at once.
//
// # Errors
//
// Go itself does not fail: Get of the reference that it gives says what was wrong with the call. All
// errors match a sentinel of this package with errors.Is; *TaskError has what a function returned or
// panicked with, and its causes. RegisterError carries a program's own sentinels across processes,
// RegisterErrorType its own types.
//
// A call of an actor that restarts fails with ErrActorUnavailable and may be made again; a call of a dead actor fails with
// ErrActorDied. No error is both. Neither matches ErrWorkerCrashed, which is for tasks; their message says how the process ended.
// If the constructor failed, a method panicked, or the actor was killed for memory, ErrActorDied wraps that error. A method that waits for a call of
// its own actor, which cannot begin before the method has returned, gets ErrDeadlock.
//
// # The life of an actor
//
// ActorRef.Stop lets the calls before it run and then ends the actor; Kill ends it at once. An actor with a method Close is closed at
// its graceful end. Method.Tell calls without a result. Self is the actor itself. Method.After and Method.Every set timers. Watch tells how
// an actor's state changes; Notify tells another actor, by a call in its turn. A panic in a method ends the actor's instance, and the actor
// restarts within its MaxRestarts, unless OnPanic says otherwise. With the option Escalate, a failure of an actor is also one
// of the actor that created it. docs/guide/actors.md shows them.
//
// # Python
//
// PythonFunc1, PythonActor1 and their like are handles of Python functions and classes, for a program started
// WithPython or connected with ConnectPython. Plain data crosses, and arrays that both languages read in
// place; *PythonError is what a Python function raised.
//
// # Graphs
//
// Package mobula/graph/spec has Dask's task graphs in Go: calls of registered functions under keys that refer to each other.
// Processes and Distributed run them here.
//
// # Inside a program
//
// The package installs no signal handler and never ends the process, except in Main, which is a
// whole program's main. Several clusters can live in one process. Close leaves no goroutine behind.
package mobula

//go:generate go run ./internal/tools/arity
