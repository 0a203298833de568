// Package owner is the core of a job's owner: its tasks, the metadata of its objects, its
// references, lineage, actors and streams. One actor a job steps it; it has no goroutine,
// clock, randomness or I/O of its own, so nothing in it blocks.
//
//	core := owner.New(cfg)              // or owner.Rebuild(cfg, records) after a crash
//	for _, e := range core.Step(now, event) { ... }
//
// Who owns what: the store alone knows bytes and pins, the scheduler alone knows resources,
// the registry alone knows names; here is what was submitted, what became of it, and who
// refers to it. The states of tasks, objects, actors and leases move along the tables of
// the packages task, object, actor and lease.
//
// A task's way: Submit (submit.go) counts the objects it uses (refs.go) and waits for those
// that are not resolved (args.go); ready, it queues in its class (class.go) until a lease has
// room (dispatch.go, leases.go); stored arguments are pinned just before it is pushed; Done
// (done.go) resolves its returns, which answers gets and wakes dependents; when nothing
// refers to a return its value is dropped, with its hold on what it, or its error, has references
// to (nested.go), and when nothing may need the task to run again, its record (lineage.go).
//
// Another job's objects (foreign.go) are borrowed from their own owner, to which this one is a client like any other (peers.go).
//
// Cost: tasks and puts are found in tables ordered by hash (table.go), plain tasks' records are used
// again (recycle.go), and what concerns every record there is goes in slices, a step each
// (sweep.go): no step is longer for what a client leaves behind.
//
// Faults: an attempt whose process died is charged to the task that ran alone in it;
// of several, none is charged and each runs again isolated (deaths.go), as are actors whose calls ran; idle ones restart
// uncharged (blame.go), and whatever dies again and again ever later (backoff.go). A lost stored
// object is made again by its task (lineage.go, store.go), at once by a stream's that
// waits for its readers (stream_again.go). The core itself may be thrown
// away at any event: durable changes are Log effects that precede what they allow, Rebuild
// reads them, and clients tell the rest (recover.go).
//
// Errors are *errs.Error values given to whoever gets the object. Step panics only when the
// core finds itself inconsistent; the actor around it then rebuilds it.
package owner
