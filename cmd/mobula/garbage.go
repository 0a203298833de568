package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// A node with a store below smallStore bytes should be small itself: its garbage may be half of its live heap, not as much
// again.
const (
	smallStore = 1 << 30
	smallGC    = 50  // percent
	usualGC    = 100 // the default of GOGC
)

// untouched is how many bytes a node allocates for nothing but that the collector counts them as live: they are never touched, so there is no memory behind
// them. The heap of a node that keeps little is a few MiB; without them the collector would run at every 2 MiB of garbage, many times a second while
// tasks pass through. With them there may be 16 MiB of it, or 32 MiB with a large store.
const untouched = 32 << 20

// allowGarbage says when this process collects its garbage, unless its user has said so (GOGC). undo takes it back.
func allowGarbage(storeBytes uint64) (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	percent := usualGC
	if storeBytes < smallStore {
		percent = smallGC
	}
	before := debug.SetGCPercent(percent)
	live := make([]byte, untouched)
	return func() {
		runtime.KeepAlive(live)
		debug.SetGCPercent(before)
	}
}
