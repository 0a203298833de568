// Package memmon watches the memory of a node and, before the kernel's own killer does, ends the
// work that is cheapest to do again.
//
// Core is a pure state machine over samples, one each 250 ms to 2 s, as much as memory is short. The node's shell takes them by package
// internal/memstat. The verdict goes to the raylet as sched.KillWorker.
//
// # Who owns which state
//
// The core owns its memory of samples: the level, the kill under way, and the peak that each function
// has reached. It is rebuilt from nothing: the next samples say it all but the peaks, which are learned again.
//
// # Levels
//
// normal, spill, pause and terminate, at fractions of the node's limit (Dask's target, spill, pause and
// terminate; target is the object store's). From pause on the scheduler grants one lease at a time.
// A level is left only Slack below where it was entered, so that it does not flap. Spilling does not
// keep the level up: it is judged by what is used, whoever is freeing.
//
// # The store's room
//
// Where the node has a memory limit (Config.Total), Heaps is answered by what they leave of it to the object store
// (StoreRoom), every 50 ms. What heaps have grown to lately counts, and is forgotten by half in ten seconds.
//
// # Who is ended
//
// An isolated worker above the memory it asked for, at any time. At the level terminate, one at a time, and
// no other until that one is gone and a fresh sample was taken: idle workers first; then retriable work, of
// the group (owner and function) with most tasks, the newest started; last what cannot be retried, the
// newest. Slots in the driver's own process cannot be ended; they are only reported.
//
// # What blocks, and errors
//
// The core: nothing. A question for tasks that is not answered by the next sample is
// decided without. Errors seen by owners carry
// CodeOutOfMemory and say who was ended, why, and what else used memory.
package memmon
