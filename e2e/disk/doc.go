// Package disk has no code of its own: its tests hold a node to what it promises when disk or memory is short, damaged or gone: spill directories that
// are full, read-only or taken away, a store that is too small, a node's memory limit, what killed nodes have left in shared memory.
//
// Tests that need a full or a read-only disk mount one, in a process with mounts of its own.
package disk
