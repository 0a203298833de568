// Package fault implements package chaos: it decides which faults are made where, for every process of a test.
//
// # Who owns what
//
// A Plan lives in the test's process, and only it counts and decides: its core is pure, and a decision depends on the seed, the rule and
// the number of the occurrence, never on time. Besides the core the Plan owns the waiters at places, the frozen processes, and the log of
// its actions. Any other process has a Remote, which knows the sites that the plan names and asks over the plan's socket at each
// occurrence. So occurrences are numbered once, over all processes and all their lives. Only their node's launcher gives workers the
// address.
//
// # What blocks
//
// Ask blocks while a place is held, and if it killed the node until the node is up again; ctx ends it. Reached waits at most
// until its context ends. Release, Thaw and Quiet do not wait. Close waits until nobody asks any more.
//
// # Errors
//
// ErrInvalid for rules that cannot be carried out, with all reasons. A Remote whose plan is gone makes no faults: the test is over.
package fault
