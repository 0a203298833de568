// Package mobula runs functions and actors on an actor-model runtime, in this process, in worker
// processes of this machine and, through a node, beside other programs: Ray's programming
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
// Every call finds its cluster, and the task it is made from, through the context: pass on the
// one that Main or the task got, or bind another with Cluster.Context. A context's
// deadline given to Go is the task's deadline; given to Get it bounds the wait and nothing else.
//
// A context that is cancelled takes along what was called with it: a task, a stream or an actor's call, with all that it has
// called, whose result is not known here yet. So a function that gives a reference back does not call with a context that it
// cancels itself as it returns. A call with one that was cancelled before fails with ErrCancelled. Get, Wait and View only give up their
// wait, and what they waited for goes on. Actors, what Tell sent and what nobody refers to do not end with a context; nor do the tasks
// that a task has called when it returns, or is cancelled without Recursive: its own context ends then, and cancels nothing.
// context.WithoutCancel keeps a call from being cancelled.
//
// # Values
//
// A value is copied when it is passed, except that slices of numbers and bytes which a task gets
// as arguments, and views, alias shared memory: they are read-only, and valid until the call returns or the
// view is closed. A task that writes to them fails with an error that says so; in a goroutine of the program's own Go ends the process.
// Clone what is kept longer, or changed. Build with the tag invariants to turn a
// slice kept too long into a fault at once. Create and CreateResult give memory to write
// large slices in place, without any copy. Exported fields travel, references (Ref, ActorRef)
// inside values too.
//
// # References
//
// A Ref is a small value to copy and compare. The object it names lives until every copy is
// garbage or was released, everywhere. Release is not needed, but frees at once.
//
// # Errors
//
// Go itself does not fail: what is wrong with a call is what Get of its reference says. All errors match a
// sentinel of this package with errors.Is; *TaskError is what a function returned or
// panicked with, with its causes. RegisterError carries a program's own sentinels
// across processes, RegisterErrorType its own types.
//
// A call of an actor that restarts fails with ErrActorUnavailable and may be made again; of one that is dead, with ErrActorDied.
// No error is both. Neither is ErrWorkerCrashed, which is of tasks; the message says how the process ended. That of an actor whose
// constructor failed, or that was killed for memory, wraps that.
// A method that waits for a call of its own actor, which cannot begin before the method has returned, gets ErrDeadlock.
//
// # The life of an actor
//
// ActorRef.Stop lets the calls before it run and then ends the actor; Kill ends it at once. An actor with a method Close is closed at
// its graceful end. Method.Tell calls without a result, Self is the actor itself, Method.After and Method.Every are its
// timers, Watch tells where an actor stands, Notify tells another actor in its turn, and the failure of one that has the option Escalate is
// one of the actor that has created it. docs/guide/actors.md shows them.
//
// # Python
//
// PythonFunc1, PythonActor1 and their like are handles of Python functions and classes, for a program started
// WithPython or connected with ConnectPython. What crosses is plain data, and arrays that both
// languages read in place; *PythonError is what a Python function raised.
//
// # Graphs
//
// Package mobula/graph/spec has Dask's task graphs in Go: calls of registered functions under keys that refer to each other.
// Processes and Distributed run them here.
//
// # Inside a program
//
// The package takes no signal handler and never ends the process, except in Main, which is
// a whole program's main. Several clusters can live in one process. Close leaves no goroutine.
package mobula

//go:generate go run ./internal/tools/arity
