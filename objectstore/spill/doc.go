// Package spill decides how objects move from the shared segment to spill storage and back.
//
// The store decides what to spill and when (objectstore/objects_lru.go, objectstore/spilling.go). This package decides where to and how; package spill/shell does the reads and writes. Fuse puts the
// objects of one write together into files of at least MinFileBytes, Router spreads the files over the targets so that their bytes stay even, Refs
// counts the objects in each file, which is deleted with its last object or when the store has had the rest copied into another (decision 0037), and Core decides for one target what runs when.
//
// # Who owns what
//
// A Core owns the waiting and running requests of its target, and the target's health: healthy, full or failed. It knows only numbers
// and does not survive a panic; a new core gets the requests that the shell holds, and learns the target's health again. The shell keeps
// Router and Refs across panics; Refs is rebuilt from the store's index.
//
// # What blocks, and errors
//
// Nothing blocks. A full target takes what fits, waits for deletions under way, and is probed again every ProbeAfter. A failing target is
// tried again after ProbeAfter, which doubles each time. Reads are tried whatever the health. I/O that does not return within 1.25 to 2.5
// times IOTimeout is given up: a write goes to another target; a read keeps waiting, since it may still write into its memory, and reads
// queued behind it fail.
//
// ErrCorrupt and ErrMissing (ErrNoTarget) say that bytes are lost, ErrFull that a target has no room. Storages wrap
// them.
package spill
