package client

import (
	"runtime"
	"sync"
	"time"
)

// collectEvery bounds how often the store can make this process collect garbage. A collection costs CPU in
// proportion to the heap, and dropped handles do not pile up faster.
const collectEvery = time.Second

// collector runs the garbage collector when the store asks for it.
type collector struct {
	*base
	outbox *outbox

	mu      sync.Mutex
	last    time.Time // guarded by mu
	running bool      // guarded by mu
}

// collect runs the garbage collector, so that handles that nobody can reach are released,
// and sends the releases.
func (k *collector) collect() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.running || (!k.last.IsZero() && now.Sub(k.last) < collectEvery) {
		return
	}
	k.last = now
	k.running = k.start(func() {
		runtime.GC()
		k.outbox.Flush() // the timer sends what the cleanups release after this
		k.mu.Lock()
		k.running = false
		k.mu.Unlock()
	})
}
