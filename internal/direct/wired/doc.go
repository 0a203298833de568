// Package wired carries a channel between two processes of a node: Call is the end of the process that calls, with which a shell.Callee opens it, and Host that of the
// actor's process, which drives a shell.Mailbox. Between them are a connected Unix socket and a page of memory that both map.
//
// # What goes on a channel
//
// Messages of package wire, over a connection of package wire/conn: OpenChannel first of either side; Method, Call, Withdraw and Took to the actor; Answered and LastAnswer
// back. What is ready is written at once. Calls have their numbers by their order; they say them too, as answers do, and one that is out of order ends the channel.
// What the calls of a method share is said once, before the first of them.
//
// # Who owns what
//
// Whoever makes a channel (Make) gives each process its end, to be opened once. A Call or a Host owns its connection, its mapping of the page, and one goroutine that reads. Both go
// when the channel has ended; Done says that it has. The page is written by the actor's process before a call begins, and read by the other when that process is gone.
//
// # What blocks
//
// Nothing but the goroutine that reads. What is not written yet waits as messages where the other side does not read: more than a bound of bytes is not encoded. How much
// that can be is for the cores to say, by the credit of a channel and the answers that were not acknowledged. So a process that does not read stops its own channels alone.
//
// # The end
//
// A channel ends when a process hangs up, closes its end or dies, or says what the other does not understand. What it had said before is told first. Then a Callee
// is told once that the channel broke, or a Mailbox that it is unlinked.
//
// # Errors
//
// Done gives errs.ErrProtocol, errs.ErrVersion and errs.ErrDisconnected where the other side is at fault or gone, errs.ErrInvalid for what cannot be sent, and
// errs.ErrShutdown where this side has closed it. Opening fails with errs.ErrInvalid.
package wired
