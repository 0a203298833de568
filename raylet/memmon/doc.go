// Package memmon watches the memory of a node. Before the kernel's OOM killer acts, it ends the work that is
// cheapest to do again.
//
// Core is a pure state machine over samples: one every 250 ms to 2 s, more often the shorter memory is. The node's shell takes them by
// package internal/memstat. A decision to end a worker goes to the raylet as sched.KillWorker.
//
// # Who owns which state
//
// The core owns what it derives from samples: the level, the kill under way, and the peak that each function has
// reached. It is rebuilt from nothing: the next samples give all of that except the peaks, which are learned
// again.
//
// # Levels
//
// normal, spill, pause and terminate, at fractions of the node's limit (Dask's target, spill, pause and
// terminate; target is the object store's). From pause on the scheduler grants one lease at a time.
// A level ends only Slack below its threshold, so that it does not flap. Spilling under way does not keep the
// level up: only used memory counts.
//
// # The store's room
//
// If the node has a memory limit (Config.Total), the core answers each Heaps, every 50 ms, with the memory that
// heaps leave to the object store (StoreRoom). The recent peak of the heaps counts, and decays by half in ten
// seconds.
//
// # Who is ended
//
// An isolated worker above the memory it asked for is ended at any time. At the level terminate workers are ended
// one at a time, the next one only when the last is gone and a fresh sample was taken. Idle workers come first;
// then retriable work, the newest of the group (owner and function) with most tasks; last work that cannot be
// retried, the newest first. Slots in the driver's own process cannot be ended; they are only reported.
//
// # What blocks, and errors
//
// The core never blocks. If AskTasks is not answered by the next sample, the core decides without the answer.
// Errors seen by owners carry CodeOutOfMemory and say what was ended, why, and what else used memory.
package memmon
