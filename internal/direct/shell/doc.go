// Package shell drives the cores of calls that go straight (package direct), in one process: a Callee for each actor that the process calls, and a Mailbox for
// each actor that lives in it. Between the two of one process a call passes by a link: from the goroutine that calls into the mailbox, and back from the
// goroutine that ran it.
//
// # Who owns what
//
// Process owns the Callees, and counts the bytes of results that only this process has. A Callee owns a core, its memory and the calls whose results somebody holds.
// A Mailbox owns a core, its memory and the goroutines that run calls. A link owns the answers on their way. What goes to the node and to the owner of the job, and
// what comes from there, is its user's: the interfaces Up and HostUp, and the methods of Callee and Mailbox.
//
// Lock order: Callee.mu, then Mailbox.mu, then Process.mu. Up and HostUp are called under the first two, so that what they say is in order; but Settled, LetsGo and HandOver without one. No goroutine has the locks of two Callees: answers
// wait in their link until whoever made them has let go of its lock.
//
// # What blocks
//
// Nothing but the locks, which are held for a step of a core and what Up does. A call runs on a goroutine of its Mailbox.
//
// # When a core panics
//
// A new one is made of the memory and the calls, and takes the event again. If that panics too the event is left out: its call ends with ErrComponentFailed, or its
// channel ends.
//
// # Errors
//
// Those of package direct.
package shell
