// Package alloc allocates blocks of segments that share one limit; each owner has a segment. No two blocks
// overlap, whatever their owners. The package is pure arithmetic on offsets: it never touches a segment, and its
// state is on the Go heap, so nothing that a client writes can corrupt it.
//
// Sizes below 64 KiB come from slabs of one size class each, aligned to 64 bytes; larger
// ones are page-aligned extents, found by best fit and coalesced when freed. The
// allocator also knows which parts of the segment have memory behind them (are backed)
// and prefers those: a reused page costs a seventh of a fresh one.
//
// An Allocator belongs to one goroutine, the store's. Nothing here blocks. Misuse (a double free, a block that was
// never handed out) is an error, not a panic.
package alloc
