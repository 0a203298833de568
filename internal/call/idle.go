package call

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// idleCollector collects garbage in a worker process soon after it last borrowed a reference:
// an idle process would otherwise hold other people's objects until its next collection, minutes
// later. A busy one collects anyway.
type idleCollector struct {
	on atomic.Bool

	mu    sync.Mutex
	timer *time.Timer // guarded by mu
}

const idleBefore = 300 * time.Millisecond // a freed object is gone within a second, as Ray's free_objects_period

var idle idleCollector

// CollectWhenIdle turns the collector on in a worker: a driver decides itself when to collect.
func CollectWhenIdle(on bool) { idle.on.Store(on) }

func (i *idleCollector) borrowed() {
	if !i.on.Load() {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.timer == nil {
		i.timer = time.AfterFunc(idleBefore, runtime.GC)
	} else {
		i.timer.Reset(idleBefore)
	}
}
