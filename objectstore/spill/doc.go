// Package spill writes objects out of the shared segment to spill storage and reads them back.
//
// The store decides what to spill and when; this package decides where to and how. A Spiller fuses the objects of one Write
// into files of at least MinFileBytes, spreads them over its targets so that bytes stay even, moves a file that a target
// refuses to another, and deletes a file with its last object. Targets are URLs behind one interface, storage.Storage:
// directories (package disk) and, where package cloud is imported, buckets.
//
// # Who owns what
//
// Each target has an actor spiller/N with a pure core: what waits, what runs, whether the target is healthy, full or failed.
// The core knows numbers only and does not survive a panic; a new one is built from the Spiller's list of
// jobs, and learns the target's health again. The Spiller owns the jobs with their memory and callbacks, the reference
// counts of files and the choice of target; they are facts, changed by a line or two under one mutex that is never
// held over I/O or a callback. What is in the files is the store's to know: its index names locations, and Recover counts
// references anew from it. A file lists its objects too (storage.Index), so that it can be identified by hand.
//
// # What blocks
//
// Write, Read, Remove and Stats never block. Their I/O runs on goroutines, at most Writers, Readers and one deletion at a time
// for each target: a read never waits for a write. Callbacks are called on those goroutines, once, and hold up one
// place of the pool. Fallback and Reopen make system calls; Recover and Close wait for I/O in flight. Memory given to Write or
// Read belongs to the Spiller until its callback.
//
// # When things fail
//
// A write that fails goes to the next target; after the last one it is errs.ErrOutOfDisk, with each target's reason, at
// once. A full target (CapacityThreshold, or less than two of the largest objects left, asked at most every CapacityInterval, or the medium's own word) takes what
// fits, waits for deletions under way, and is looked at again every ProbeAfter. A failing one is left alone for ProbeAfter, doubling, and
// comes back when a small file can be made. Reads are tried whatever the health. I/O that does not return within 1.25 to 2.5 times
// IOTimeout is given up: a write goes elsewhere, a read keeps waiting, as it may still write into its memory, and
// those queued behind it fail. One line is logged in LogEvery.
//
// Errors: ErrCorrupt, ErrMissing (ErrNoTarget) for bytes that are lost; errs.ErrOutOfDisk, errs.ErrShutdown, errs.ErrCancelled,
// errs.ErrInvalid, errs.ErrPanic; Open also storage.ErrInUse when another process has the session.
package spill
