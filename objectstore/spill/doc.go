// Package spill decides how objects get from the shared segment to spill storage and back.
//
// The store decides what to spill and when (objectstore/objects_lru.go, objectstore/spilling.go); this package decides where to and how, and does nothing of it: package spill/shell reads and
// writes. Fuse puts the objects of one write together into files of at least MinFileBytes, Router spreads the files over the targets so that bytes stay
// even, Refs counts the objects in each file, which is deleted with its last one, and Core decides for one target what runs when.
//
// # Who owns what
//
// A Core owns what waits at its target, what runs, and whether the target is healthy, full or failed. It knows numbers only and does not
// survive a panic; a new one is given the requests that the shell holds, and learns the target's health again. Router and Refs are
// facts, which the shell keeps; Refs is counted anew from the store's index.
//
// # What blocks, and errors
//
// Nothing. A target that is full takes what fits, waits for deletions under way, and is looked at again every ProbeAfter. A failing one
// is left alone for ProbeAfter, doubling. Reads are tried whatever the health. What does not return within 1.25 to 2.5 times IOTimeout is
// given up: a write goes elsewhere, a read keeps waiting, as it may still write into its memory, and those queued behind it fail.
//
// ErrCorrupt, ErrMissing (ErrNoTarget) say that bytes are lost; ErrFull that a target has no room. Storages wrap them.
package spill
