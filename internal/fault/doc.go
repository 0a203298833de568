// Package fault is the machinery behind package chaos: it decides what goes wrong where, and tells every process of a test.
//
// # Who owns what
//
// A Plan lives in one process, the test's, and alone counts and decides: its core is pure, and what it decides depends on
// the seed, the rule and the number of the occurrence, never on time. Beside the core the Plan owns what waits at places, which processes
// are frozen, and the log of what it did. Another process has a Remote: it knows which sites the plan names and asks
// for each occurrence over the plan's socket, so that occurrences are numbered once, whichever process and whichever of its lives they
// are in. The address goes to workers through their node's launcher alone.
//
// # What blocks
//
// Ask does while a place is held, and until the node is up again where it was killed; ctx ends it. Reached waits for its context.
// Neither Release, Thaw nor Quiet waits. Close waits until nobody asks any more.
//
// # Errors
//
// ErrInvalid for a rule that cannot be carried out, with all that is wrong. A Remote whose plan is gone decides nothing: the test is over.
package fault
