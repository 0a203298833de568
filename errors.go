package mobula

import (
	"slices"

	"mobula/internal/call"
	"mobula/internal/errs"
)

// TaskError is the failure of a task as it arrives at the caller: its function returned an error or panicked, its process died or
// was killed for memory, its time ran out, or it was cancelled. Errors of actors, of objects and of the runtime are not
// TaskErrors.
//
//	var te *mobula.TaskError
//	if errors.As(err, &te) { log.Print(te.Name, te.Task, te.Stack) }
type TaskError struct {
	Name  string // the function
	Task  string // the task's id
	Stack string // the stack of a panic, or the traceback of a Python function; else empty

	err *errs.Error
}

// Error is the message.
func (e *TaskError) Error() string { return e.err.Error() }

// Is matches the sentinels of this package that say what happened.
func (e *TaskError) Is(target error) bool { return e.err.Is(target) }

// Unwrap gives the causes.
func (e *TaskError) Unwrap() []error { return e.err.Unwrap() }

// As gives the runtime its own error back where a task returns another task's error.
func (e *TaskError) As(target any) bool { return asOwn(e.err, target) }

// PythonError is the exception that a Python function raised:
//
//	var py *mobula.PythonError
//	if errors.As(err, &py) && py.IsA("ValueError") { log.Print(py.Traceback) }
type PythonError struct {
	// Classes are the exception's class and those it derives from, nearest first; built-in ones without
	// their module: "UnicodeDecodeError", "UnicodeError", "ValueError", "Exception".
	Classes   []string
	Message   string // class and text, as the last line of a traceback
	Traceback string // as Python prints it, from the user's function on; may be empty
}

// Error is the message.
func (e *PythonError) Error() string { return e.Message }

// IsA tells whether an except clause of that class would take the exception.
func (e *PythonError) IsA(class string) bool { return slices.Contains(e.Classes, class) }

// As gives the runtime its own error back where a task returns another task's exception.
func (e *PythonError) As(target any) bool { return asOwn(errs.Raised(errs.Exception(*e)), target) }

func asOwn(e *errs.Error, target any) bool {
	p, ok := target.(**errs.Error)
	if ok {
		*p = e
	}
	return ok
}

func init() {
	errs.Show(func(e *errs.Error) (*TaskError, bool) {
		return &TaskError{Name: e.Name, Task: e.Task, Stack: e.Stack, err: e}, e.OfTask()
	})
	errs.Show(func(e *errs.Error) (*PythonError, bool) {
		x, ok := e.Exception()
		return (*PythonError)(&x), ok
	})
}

// The sentinels, for errors.Is.
var (
	ErrTaskFailed           = errs.ErrTaskFailed           // the function returned an error or panicked; *TaskError has the cause
	ErrPython               = errs.ErrPython               // a Python function raised an exception; *PythonError has it; is also ErrTaskFailed
	ErrPanic                = errs.ErrPanic                // the function panicked; is also ErrTaskFailed
	ErrWorkerCrashed        = errs.ErrWorkerCrashed        // the worker process died and the task's retries are used up
	ErrActorDied            = errs.ErrActorDied            // the actor is gone and will not come back; wraps its constructor's error, if that failed
	ErrActorUnavailable     = errs.ErrActorUnavailable     // the actor is restarting; the call may be made again; matches no other sentinel
	ErrObjectTooLarge       = errs.ErrObjectTooLarge       // larger than the whole store
	ErrStoreFull            = errs.ErrStoreFull            // views keep all of the store and its disk budget, or one task's arguments are more
	ErrOutOfDisk            = errs.ErrOutOfDisk            // every spill directory is full or failing
	ErrOutOfMemory          = errs.ErrOutOfMemory          // killed by the memory monitor
	ErrObjectLost           = errs.ErrObjectLost           // no copy is left and it cannot be made again
	ErrObjectFreed          = errs.ErrObjectFreed          // its last reference was released; is also ErrObjectLost
	ErrReconstructionFailed = errs.ErrReconstructionFailed // is also ErrObjectLost
	ErrOwnerDied            = errs.ErrOwnerDied            // its job has ended, or the node is gone, or was not back 30 s after its connection broke; is also ErrObjectLost
	ErrFetchTimedOut        = errs.ErrFetchTimedOut        // is also ErrObjectLost
	ErrGetTimeout           = errs.ErrGetTimeout           // the reference stays valid; is also context.DeadlineExceeded
	ErrCancelled            = errs.ErrCancelled            // is also context.Canceled
	ErrDeadline             = errs.ErrDeadline             // the task, or a node that is to answer, is past its deadline; is also context.DeadlineExceeded
	ErrUnschedulable        = errs.ErrUnschedulable        // no node has the resources that were asked for
	ErrPendingCallsLimit    = errs.ErrPendingCallsLimit    // the actor's MaxPendingCalls is reached
	ErrRuntimeSetup         = errs.ErrRuntimeSetup         // a worker or a node could not be started
	ErrUnknownFunction      = errs.ErrUnknownFunction      // the worker's binary has no such function
	ErrRegistryMismatch     = errs.ErrRegistryMismatch     // the binaries of driver and worker differ
	ErrNotEncodable         = errs.ErrNotEncodable         // the message names the type and the part at fault
	ErrNotDecodable         = errs.ErrNotDecodable         // the message names both types
	ErrNameTaken            = errs.ErrNameTaken            // another actor has the name
	ErrNotFound             = errs.ErrNotFound             // nothing has the name
	ErrShutdown             = errs.ErrShutdown             // the cluster was closed
	ErrViewClosed           = errs.ErrViewClosed           // a view was used after Close
	ErrInvalid              = errs.ErrInvalid              // an argument or option that is not valid
	ErrReturnMismatch       = errs.ErrReturnMismatch       // the number of results is not the one asked for
	ErrProtocol             = errs.ErrProtocol             // the other side of a connection broke the protocol
	ErrPermission           = errs.ErrPermission           // another user's node
	ErrSegmentUnavailable   = errs.ErrSegmentUnavailable   // shared memory cannot be reserved
	ErrComponentFailed      = errs.ErrComponentFailed      // a part of the node failed beyond its restart policy
	ErrDisconnected         = errs.ErrDisconnected         // the connection to the node was lost and did not come back
	ErrBacklog              = errs.ErrBacklog              // the other side reads too slowly; nothing was sent
	ErrNoNode               = errs.ErrNoNode               // no node is running at the address, which the message names
	ErrNodeRunning          = errs.ErrNodeRunning          // a node is running there already; the message names its socket
	ErrDeadlock             = errs.ErrDeadlock             // a call of an actor waits for one of the same actor, which cannot begin
	ErrVersion              = errs.ErrVersion              // the protocol versions of node and program do not overlap; is also ErrProtocol
)

// RegisterError lets a program's own sentinel travel from a task to its caller: errors.Is matches
// it on both sides. Every binary registers the same names, at package level.
func RegisterError(name string, sentinel error) { errs.RegisterSentinel(name, sentinel) }

// RegisterErrorType lets a program's own error type travel from a task to its caller: errors.As gives a T with the same
// fields on both sides, also where it is wrapped in other errors or wraps some.
//
//	type Overdraft struct { Account string; Missing int64 }
//	func (e *Overdraft) Error() string { return fmt.Sprintf("%s is %d short", e.Account, e.Missing) }
//	func init() { mobula.RegisterErrorType[*Overdraft]("bank/overdraft") }
//
// Register the type that is returned: the pointer type if pointers are returned. Exported fields travel, or what MarshalBinary gives, up
// to 64 KiB; a larger error arrives as its text. A field of type error arrives as any error does across processes. References in exported
// fields keep their objects as long as the program has the error that it got, or anyone holds a reference to the result that failed with
// it. RegisterErrorType panics if a field would be lost. Every binary registers the same names, at package level.
func RegisterErrorType[T error](name string) { errs.RegisterType[T](name, call.ErrorRefs{}) }

// invalid is the error for an option that is not valid.
func invalid(format string, args ...any) error { return errs.New(errs.CodeInvalid, format, args...) }
