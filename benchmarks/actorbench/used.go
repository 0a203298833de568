package main

import (
	"runtime"
	"syscall"
	"time"
)

// used is what this process has used.
type used struct {
	cpu         time.Duration
	allocations uint64
}

func usedSoFar() used {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // it fails for wrong arguments alone
	return used{time.Duration(r.Utime.Nano() + r.Stime.Nano()), m.Mallocs}
}

// heldNow is how many bytes the heap and the stacks have now that something has a pointer to.
func heldNow() uint64 {
	runtime.GC()
	runtime.GC() // what the first one has made free is swept, and finalisers have run
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
