// Package actors is the kit that every component of a node is built with: a pure core in a supervised protoactor
// actor with a bounded, typed mailbox.
//
// # Who owns what
//
// A Core owns its state and nothing else; it is called on one goroutine at a time. The shell is the protoactor
// actor, a new one for each core: it steps events, runs effects, and is discarded with the core. The mailbox
// outlives cores, and so do its present batch and the position in it. The System owns the tree: places, order of
// start, counts of failures; protoactor carries failures to the parent's strategy, and restarts and stops to the
// component. A Ref is an address: it owns nothing and stays valid.
//
// # Order
//
//   - Events that one goroutine posts are stepped in the order of its posts. Between goroutines the
//     order is that of the posts' returns. Send, timers and notices join the same queue.
//   - Effects of an event run in order, after its Step returned, before the next event's Step.
//   - Flush runs after at most 256 events, always before the component goes idle, and
//     before New builds another core.
//   - A Watch notice comes after everything that the dead component had posted.
//   - now never goes back; it is read at least every 64 events.
//
// # Timers
//
// A timer armed with the self that Do is given ends with that core, even if it has fired
// and its event still waits: the next core arms its own, in the events New returns or in
// what they lead to. A timer armed with the Ref from Spawn outlives restarts. All end with the component.
//
// # A panic
//
// In Step: no effect of the event has run. The core is discarded with its timers; writes of earlier events are
// flushed; the parent's strategy asks the component's Policy. After the backoff New builds a core from what is
// authoritative, the events New returned are stepped, then the event that panicked is delivered once more, then
// the rest of the mailbox in order. If it panics again it is dropped: EventPoisoned, Spec.OnPoison with a
// *PoisonError, and a further restart. So exactly one core steps each event to its end, or the event is poisoned,
// or a stop drops it. An event that is vital (Spec.Vital) is not dropped: it is delivered until a core steps it, or
// the policy is exhausted.
//
// In Do: as above, but effects before the one that panicked have run, and that one may
// have run in part. They are not undone; the rest of that Step's effects never run.
// The event is delivered once more and the new core's Step decides what is still to do, from
// authoritative state that may hold the first effects already. The kit does not run an
// effect a second time, but an equal one may be returned again: either effects are
// idempotent, or Spec.Same tells equal ones and each that had run is left out once. After a second panic the event
// is poisoned, and its effects have run only in part.
//
// In Flush: no event is in hand and none is delivered again. Flush is called again
// before New and after it: the data that it writes must be kept outside the core until it is written.
//
// In New, or an error from it: the first time it is Spawn's error; later it is one more failure of the component.
// In an event that New returned: the same, and New is called again, and told of the event (Start.Blamed): a shell that
// gives it once more has to bound that.
//
// In Stop, OnPoison or a hook: reported and swallowed. While a component drains to stop, a
// panic poisons the event and ends the drain.
//
// # Escalation
//
// A component restarts by its own Policy: MaxRestarts within Window, with a backoff that doubles. A failure counts for
// longer than Window while the component steps no event to its end: so one that never comes up is beyond its policy,
// whatever the backoff. Beyond it the
// parent is asked, which counts escalations by its own Policy and restarts that child with what is
// below it (OneForOne) or all its children (AllForOne); a restart replaces cores, and
// every Ref and mailbox stays. Beyond that the parent's parent is asked. At the root, the component below it has
// failed for good: EventFailed with errs.ErrComponentFailed, its subtree is stopped, watchers get Down.Err.
// Restart requests go out parents first, in order of start; the rebuilds run concurrently.
//
// # What blocks
//
// Post, Deliver, After, Watch, BeginStop and Tree never block. Send waits for room, its context, or the component's end; SendRun also
// runs a turn itself. Spawn waits for the first New, or the end of a stop's deadline. Stop and StopTree wait for their context. Step,
// Do, Flush and New run on the component's goroutine: while one of them blocks nothing else of that component runs, restarts of its
// children included, so a parent that works long should be a Sup. Nothing can stop a goroutine that does not return: a stop then ends
// with a *StopError that names it.
//
// # Bounds
//
// Send waits at the mailbox's bound; Post refuses with ErrMailboxFull at twice the bound, counting the present
// batch to within 64. Timers, notices and delivered events may exceed it, since whoever arms, watches or sends
// them bounds their number. Waiting messages are kept across a restart.
//
// # Errors
//
// ErrStopped (also errs.ErrShutdown), ErrMailboxFull, *PanicError (errs.ErrPanic),
// *PoisonError, *StopError (the context's error), errs.ErrInvalid for a bad Spec or a name that
// is taken, errs.ErrComponentFailed in EventFailed and Down.
package actors
