// Package owner is the core of a job's owner: its tasks, the metadata of its objects, its
// references, lineage, actors and streams. One actor a job steps it; it has no goroutine,
// clock, randomness or I/O of its own, so nothing in it blocks.
//
//	core := owner.New(cfg)              // or owner.Rebuild(cfg, records) after a crash
//	for _, e := range core.Step(now, event) { ... }
//
// Who owns what: the store alone knows bytes and pins, the scheduler alone knows resources,
// the directory alone knows names; here is what was submitted, what became of it, and who
// refers to it. The states of tasks, objects, actors and leases move along the tables of
// the packages task, object, actor and lease.
//
// The core is composed of parts, a type each with state and methods of its own; files begin with the name of their part. From the lowest to the
// highest: step (what every part has in common), journal (what goes into the log), tasks (the table), objects (references and values), clients,
// gets, promises, values (puts, seals, results), memory (the budget, arguments), leases (and classes), creates, streams, lineage, calls, actors, foreign (actors of other jobs),
// life (of a task), straight (calls past the owner), deaths (of workers), peers (owners of other jobs), job, recovery. A part calls those below it directly, and those above it by an interface that it declares.
// parts.go has all of them with what each knows, records.go and records_actors.go what they keep.
//
// A task's way: route.go takes a client's messages apart; Submit (life_submit.go, life.go) counts the objects it uses (objects_refs.go) and
// waits for those that are not resolved (life_args.go); ready, it queues in its class (leases_class.go); at the end of the step (step_end.go)
// leases with room (leases_room.go) take what is queued (leases_dispatch.go, leases.go), as far ahead as tasks are short (leases_ahead.go), near its arguments (leases_near.go), or each node its share (leases_spread.go); stored arguments are pinned just before it is pushed; Done
// (life_done.go) resolves its returns, which answers gets and wakes dependents; when nothing
// refers to a return its value is dropped, with its hold on what it, or its error, has references
// to (objects_contained.go), and when nothing may need the task to run again, its record (lineage.go).
//
// testdata/transcripts tells it as scripts: what the owner is told, and all that it then asks for.
//
// Another job's objects (objects_borrowed.go) are borrowed from their own owner, to which this one is a client like any other (peers.go).
// Before a store is asked for one, its owner has told that store where it is (borrows.go, bring.go). The owner of a job of another home is on another node (peers_far.go). What a value of one has references to of a third
// home is handed over (peers_third.go).
//
// Cost: tasks and puts are found in tables ordered by hash (table.go), plain tasks' records are used
// again (tasks_freelist.go), and what concerns every record there is goes in slices, a step each
// (job_sweep.go): no step is longer for what a client leaves behind.
//
// Faults: an attempt whose process died is charged to the task that ran alone in it;
// of several, none is charged and each runs again isolated (deaths.go), as are actors whose calls ran; idle ones restart
// uncharged, and whatever dies again and again ever later (tasks.go). A panic in a call ends its actor's instance without the process, and is
// charged to the actor (actors_panic.go). A lost stored
// object is made again by its task (lineage.go, lineage_lost.go), from puts that are kept for it (objects_kept.go), at once by a stream's that
// waits for its readers (streams_retry.go). The core itself may be thrown
// away at any event: durable changes are Log effects that precede what they allow, Rebuild
// reads them, clients tell the rest (recovery.go), and the store what it has (copies_doubts.go). Between steps the shell keeps the log small: the core says which records it needs, and
// takes note of where they are moved (journal_compact.go).
//
// Errors are *errs.Error values given to whoever gets the object. Step panics only when the
// core finds itself inconsistent; the actor around it then rebuilds it.
package owner
