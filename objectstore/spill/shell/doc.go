// Package shell writes objects to spill storage and reads them back: the goroutines, files and buckets around package spill.
//
// A Spiller writes the objects of one Write to files, moves a file that a target refuses to another, and deletes a file with its last
// object. Targets are URLs behind one interface, storage.Storage: directories (package disk) and, if package s3 is imported, buckets.
//
// # Who owns what
//
// Each target has an actor spiller/N around a spill.Core. The Spiller owns the jobs with their memory and callbacks, the reference counts of files
// and the choice of target, under one mutex that is never held over I/O or a callback. A rebuilt core gets the jobs from there. The store knows what
// is in the files: its index has the locations, and Recover counts references from it. A file also lists its objects (storage.Index), so that it can
// be identified by hand.
//
// # What blocks
//
// Write, Read, Remove and Stats never block. Their I/O runs on goroutines, at most Writers, Readers and one deletion at a time
// for each target: a read never waits for a write. Callbacks are called on those goroutines, once, and occupy one place of the
// pool. Fallback and Reopen make system calls; Recover and Close wait for I/O in flight. Memory given to Write or Read belongs
// to the Spiller until its callback.
//
// # Errors
//
// A write that fails goes to the next target; after the last one it fails at once with errs.ErrOutOfDisk and each target's reason. Reads give
// spill.ErrCorrupt or spill.ErrMissing (spill.ErrNoTarget) for lost bytes. Other errors are errs.ErrShutdown, errs.ErrCancelled, errs.ErrInvalid
// and errs.ErrPanic; Open also gives storage.ErrInUse if another process has the session. At most one line is logged in LogEvery.
package shell
