// Package objectstore keeps the bytes of a node's objects: in shared memory within one hard
// limit, a file for each job, and beyond it in spill storage.
//
// # Who owns what
//
// Core owns all decisions and books: which bytes are whose, pins, seals, who waits. It is
// pure: Step takes an event and returns effects, which package objectstore/shell carries out. The jobs' files, the index, the mappings
// and the fallback files belong to that shell, and outlive a panic of the core: a new
// core is rebuilt from the index, what was remembered, and what clients declare. Clients own
// nothing in shared memory; they are granted extents to write in their own job's file, and pins to read. What lies in another job's
// they read in a copy, an object that is restored from the one that it is of (copies.go).
//
// The core is composed of parts: parts.go lists them from the lowest to the highest, with what each knows. A part calls those below it directly, and those above it by
// an interface that it declares. Its methods stand in the files named after it. records.go has what parts keep of objects, demands and grants, msg.go and effect.go
// what comes in and goes out.
//
// # Room
//
// Every demand for memory, a create or a restore, queues: creates and restores for gets in
// the order of arrival, restores that only arguments need after them. The head is served from
// free memory, warm first; then copies with a spilled twin are evicted, which costs no write; then
// cold objects are spilled, in files of many. When everything is pinned the head waits
// for whoever holds pins, unless each of them waits itself: then, or after Stall without
// progress, it is served from a file outside the segment, though enough be free in pieces. What nobody has pinned any more is spilled from there. Files are
// counted against FallbackBytes, beyond which clients are asked first to let go of what they no longer use, and a demand is refused that is too
// much beside what programs keep by views and unfinished puts: decision 0036. While every spill directory is full, room comes only from what others let go of (placing_full_disk.go): what
// gets and arguments need is read first, creates wait, and after Patience in which nothing was let go they
// end with an error. So a create that fits the limit is granted in the end, or ends with an
// error that names what was asked, held, pinned, free and in one piece.
//
// A spill file goes with its last object. One of which little lives is written anew, with others (spilling_compact.go, decision 0037).
//
// The memory of the index is in the limit: as it grows, as much of what is free is taken out of use (space_index.go). Of memory that is
// free, what was in use within WarmIdle and a little more stays backed, to be used again without being brought anew; the rest is
// given back (space_purge.go).
//
// # Other nodes
//
// An object may have copies on other nodes; which, its owner says (Located), and what is known here of it is a hint. One that is not
// here is imported when somebody asks for it, through the same queues as a restore. Another node reads an object here under a pin of its
// own (Export). Decision 0018.
//
// # What blocks
//
// Nothing.
//
// # Errors
//
// CodeObjectTooLarge, CodeStoreFull, CodeOutOfDisk and CodeSegmentUnavailable in wire.Created, and in wire.Resolved
// and ArgsRefused of a restore without room (the object is kept then); CodeObjectLost and CodeObjectFreed in
// Lost; CodeCancelled in the Created of a create that was withdrawn; CodeInvalid for a create that
// another client has under way.
package objectstore
