// Package shell is the object store's actor: it gives the events to package objectstore's core, and carries out what that decides, in
// shared memory, files and spill storage.
//
// # Who owns what
//
// A Store owns what has to outlive a panic of the core: the mappings of the jobs' files and of the fallback files, the records that the
// index had no room for, and the notes of requests under way. A Memory is the jobs' files and the index; it is its opener's, who closes
// it after the Store. Both are used on the actor's goroutine, but for Memory's files, which a mutex guards: a driver's connection asks for
// one too.
//
// OpenMemory takes over what a killed node of the same path has left; SweepDead removes what nobody comes back for. A node has the lock of
// its index for as long as it lives.
//
// Other nodes are behind the interface Peers: what is imported is fetched from them into the extent that the core gives, and what they ask
// for is served from where it lies. Without any, an object that is elsewhere is lost here.
//
// # What blocks
//
// The actor blocks for a copy of packed values, a punch of at most 32 MiB and an index write. Reserving, copying, spilling and reading are
// other goroutines' work, which Stop waits for, 5 s at most. Options.ToClient and ToOwner must not block.
//
// # Errors
//
// ErrInvalid for a configuration that is none, ErrSegmentUnavailable where shared memory cannot be had, ErrNodeRunning where
// another node has the index, ErrOwnerDied for the file of a job that is over.
package shell
