// Package shell writes objects to spill storage and reads them back: the goroutines, files and buckets around package spill.
//
// A Spiller writes the objects of one Write to files, moves a file that a target refuses to another, and deletes a file with its last
// object. Targets are URLs behind one interface, storage.Storage: directories (package disk) and, where package s3 is imported,
// buckets.
//
// # Who owns what
//
// Each target has an actor spiller/N around a spill.Core. The Spiller owns the jobs with their memory and callbacks, the reference
// counts of files and the choice of target; they are facts, changed by a line or two under one mutex that is never
// held over I/O or a callback. A core that is built anew is given the jobs from there. What is in the files is the store's to know: its index names locations, and Recover counts
// references anew from it. A file lists its objects too (storage.Index), so that it can be identified by hand.
//
// # What blocks
//
// Write, Read, Remove and Stats never block. Their I/O runs on goroutines, at most Writers, Readers and one deletion at a time
// for each target: a read never waits for a write. Callbacks are called on those goroutines, once, and hold up one
// place of the pool. Fallback and Reopen make system calls; Recover and Close wait for I/O in flight. Memory given to Write or
// Read belongs to the Spiller until its callback.
//
// # Errors
//
// A write that fails goes to the next target; after the last one it is errs.ErrOutOfDisk, with each target's reason, at
// once. Reads give spill.ErrCorrupt or spill.ErrMissing (spill.ErrNoTarget) for bytes that are lost. Besides errs.ErrShutdown, errs.ErrCancelled,
// errs.ErrInvalid, errs.ErrPanic; Open also storage.ErrInUse when another process has the session. One line is logged in LogEvery.
package shell
