// Package graph schedules the tasks of one graph over workers: Dask's scheduler for a single graph, as
// a pure state machine. Graph is the graph, immutable and checked; Core is the scheduler:
// Step(now, event) returns effects, and holds no goroutine, clock or I/O. One actor drives a core.
//
// # Who owns which state
//
// The core owns the state of every task (state.go has the states and the moves), who holds which
// result, and who is to run what. A worker owns its threads and its store: the core knows of them
// what Done, Fetched and the like told it. Results are bytes elsewhere; the core knows their sizes.
// An attempt's number makes late news harmless: what does not name the attempt under way is
// ignored, and a result that came of it is freed.
//
// # Parts
//
// Core is composed of parts, a type each with state and methods of its own; files begin with the name of their part. From the lowest to the
// highest: step (what every part has in common), tasks (the table), measures (how much results take, how long tasks), workers, copies
// (of results), placement (which worker a ready task goes to), the queue of root tasks (homes; baseline.go has Dask's two), needs (what is
// needed, fails or is lost), stealing. A part calls those below it directly; placement calls the queue by the interface rootQueue.
// core_events.go is where they meet: what an event means to each.
//
// # What is needed
//
// A task is needed while its result is wanted or some needed task has not been made yet that takes
// it. What is not needed is not run; what stops being needed is stopped; a result is freed in
// the step in which its last dependent is done. A result that is lost with its worker is made again
// with what it needs. A task is forgotten once nobody can ever need it again.
//
// # Root tasks
//
// Tasks that make data from outside the graph are withheld (Config.Saturation): a worker is sent one
// when it has a slot left by everything that uses what is there already. With the policy Both
// they are also kept together. They are laid out on a line so that those whose results meet are
// neighbours (line.go); a worker claims a stretch of it (homes_family.go says how long, decision 0007 why) and is sent that stretch's
// roots (homes.go). How much results take is learned as they come. Budgets, rooms and shares
// decide when and where a root runs, never whether: with nothing else running one always does.
//
// # What blocks
//
// Nothing. A task waits for its inputs (waiting), for a worker that may run it (no-worker) or for a slot
// (queued); Pause and the loss of workers can make the last two last.
//
// # Errors
//
// New and Resolve give MissingError, DuplicateError and CycleError. A wanted result that cannot be
// made is told with Failed: the error of the task that failed (what its function returned, KilledError,
// ErrCancelled) and the chain of dependencies that leads there. Events that name what is not there
// any more are stale, not wrong, and are ignored. A transition that the table has not is a fault of the
// program and panics.
//
// # Cost
//
// A transition takes O(log n) amortised, plus the number of workers that hold its inputs. State is about 200
// bytes a task and 16 a copy, without pointers.
package graph
