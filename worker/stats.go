package worker

import (
	"runtime/metrics"
	"time"

	"mobula/wire"
)

// report sends the regular Stats and tidies up idle lanes.
func (e *Executor) report() {
	defer e.work.Done()
	tick := time.NewTicker(e.cfg.StatsEvery)
	defer tick.Stop()
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/sched/goroutines:goroutines"}}
	for {
		select {
		case <-e.quit:
			return
		case <-e.c.Done():
			return
		case <-tick.C:
		}
		metrics.Read(samples)
		e.send(&wire.Stats{HeapBytes: samples[0].Value.Uint64(), Goroutines: samples[1].Value.Uint64(), Running: uint32(e.runs())})
		e.sweep()
	}
}

// runs is how many calls are under way. Those of mailboxes are in their lists, so that a call costs no counter that all cores share.
func (e *Executor) runs() int {
	n := int(e.running.Load())
	for _, h := range e.allHosted() {
		h.mu.Lock()
		n += len(h.runs)
		h.mu.Unlock()
	}
	return n
}

// sweep forgets lanes whose lease has had no work for a while, and has mailboxes do the like.
func (e *Executor) sweep() {
	e.sweepLanes()
	if hosts := e.allHosted(); len(hosts) > 0 {
		now := e.cfg.Now()
		for _, h := range hosts {
			h.sweep(now)
		}
	}
}

func (e *Executor) sweepLanes() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for lease, l := range e.lanes {
		if l.sweep() {
			delete(e.lanes, lease)
		}
	}
}

// armFlusher makes sure that waiting Dones are sent soon, although the running task may take long.
func (e *Executor) armFlusher() {
	if e.armed.Load() || e.armed.Swap(true) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if e.flusher == nil {
		e.flusher = time.AfterFunc(doneDelay, e.flush)
	} else {
		e.flusher.Reset(doneDelay)
	}
}

func (e *Executor) flush() {
	e.armed.Store(false)
	for _, l := range e.all() {
		l.mu.Lock()
		if len(l.done) > 0 {
			l.flushLocked()
		}
		l.mu.Unlock()
	}
	for _, h := range e.allHosted() {
		h.flush()
	}
}

// Holdings adds what the executor holds to the answer to the owner's Resync. It is meant
// for client.Config.Holdings.
func (e *Executor) Holdings(h *wire.Holdings) {
	for _, l := range e.all() {
		l.snapshot(h)
	}
	for _, x := range e.allHosted() {
		x.snapshot(h)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, a := range e.actors {
		if a.made.Load() {
			h.Actors = append(h.Actors, id)
		}
	}
}
