// Package graph schedules the tasks of one graph over workers: Dask's scheduler for a single graph, as a pure
// state machine. Graph is the graph, immutable and checked. Core is the scheduler: Step(now, event) returns
// effects, without goroutine, clock or I/O. One actor drives a core.
//
// # Who owns which state
//
// The core owns the state of every task (state.go has the states and the moves), which worker holds which result,
// and which worker runs what. A worker owns its threads and its store: the core knows of them only by Done,
// Fetched and the like. Results are bytes elsewhere; the core knows their sizes. Attempts have numbers: an event
// that does not name the attempt under way is ignored, and a result that it brings is freed.
//
// # Parts
//
// Core is composed of parts: types with their own state and methods. Files begin with the name of their part. From the lowest to the
// highest: step (what every part has in common), tasks (the table), measures (how much results take, how long tasks), workers, copies (of
// results), placement (which worker a ready task goes to), the queue of root tasks (families; baseline.go has Dask's two), needs (what is
// needed, fails or is lost), stealing. A part calls those below it directly; placement calls the queue through the interface rootQueue.
// core_events.go says what an event means to each part.
//
// # What is needed
//
// A task is needed while its result is wanted, or while a needed task that takes it has no result yet. A task that
// is not needed does not run; one that runs is stopped when it is no longer needed. A result is freed in the step
// in which its last dependent is done. A result that is lost with its worker is made again, and so is what it
// needs. A task is forgotten once nobody can ever need it again.
//
// # Root tasks
//
// Tasks that make data from outside the graph are withheld (Config.Saturation): a worker is sent one only when it has a slot that no
// task with inputs takes. With the policy Both they are also kept together: they are laid out on a line so that those whose results
// meet are neighbours (line.go). A worker claims a stretch of it, a family (families_extent.go says how long, decision 0007 why), and is
// sent the roots of that stretch (families.go). The core learns how large results are as they come. Budgets, rooms and shares decide
// when and where a root runs, never whether: if nothing else runs, one always does.
//
// # What blocks
//
// Nothing. A task waits for its inputs (waiting), for a worker that may run it (no-worker) or for a slot (queued).
// After Pause or the loss of workers the last two can last.
//
// # Errors
//
// New gives MissingError and CycleError, package spec DuplicateError too. The effect Failed reports a wanted result that
// cannot be made: the error of the task that failed (what its function returned, KilledError, ErrCancelled) and
// the chain of dependencies that leads there. An event that names something that is gone is stale, not wrong, and
// is ignored. A transition that is not in the table is a bug in the program and panics.
//
// # Cost
//
// A transition takes O(log n) amortised, plus the number of workers that hold its inputs. State is about 200
// bytes a task and 16 a copy, without pointers.
package graph
