// Package worker runs tasks and actors: in a worker process (Main), and in the goroutine
// slots of an embedded node (Executor alone).
//
// # Who owns what
//
// The Executor has a lane for each lease and a mailbox for each concurrency group of each
// actor it hosts. A lane owns its queue, the calls under way and the reports not yet sent;
// the owner on the node knows only what was reported of a task. With Config.Mailboxes an actor's calls, those that the owner pushes and those that come straight (decision
// 0038), are run by its shell.Mailbox instead, once it is made: a hosted has that mailbox, and the owner's calls in it until they are reported. Everything is sent through the client's port, so a
// reference that a task takes is announced before the task's report.
//
// Lock order: blocking.mu, Executor.mu, lane.mu, a mailbox' own, hosted.mu, Executor.life. Nothing is sent under
// Executor.mu, lane.mu, a mailbox' lock or hosted.mu.
//
// # What blocks
//
// Deliver never blocks. In a worker process its caller is the reader. If a task arrives alone on a lane of short
// tasks, the reader runs it itself, and hands reading over to another goroutine when the task waits or takes long.
// A runner blocks in the user's function. A task that waits in a Get or for a stream's consumer is reported as
// Blocked, gives back what is queued behind it, and goes on only after Resume.
//
// # Errors
//
// An error that a function returns is reported as ErrTaskFailed with its chain of causes; a panic or
// runtime.Goexit as ErrPanic, with the stack, inside that. A panic in a call of an actor ends the instance, and not the process (panic.go): other
// calls of the instance that run are reported as ErrActorUnavailable, as are those that have not begun, which have no time of their start. ErrCancelled and ErrDeadline mean that the task's
// context ended for that reason. With ErrUnknownFunction, ErrRegistryMismatch and ErrProtocol the function has not
// run.
//
// With the build tag invariants stored arguments are private copies that are overwritten
// when the call returns, so that a slice kept too long is noticed.
package worker
