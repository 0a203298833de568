package worker

import (
	"context"
	"sync"
	"sync/atomic"

	"mobula/internal/ids"
	"mobula/wire"
)

// blocking counts the waiting goroutines of one task. While there is at least one, the task's CPU is given back.
type blocking struct {
	mu      sync.Mutex
	count   int32         // guarded by mu
	state   atomic.Uint32 // a blockState; changed under mu, and read without by who may not wait for it, since messages are sent under it
	resumed chan struct{} // guarded by mu; closed by Resume; not nil while resuming
}

type blockState uint8

const (
	hasCPU   blockState = iota
	released            // Blocked was sent
	resuming            // Unblocked was sent, Resume has not come
	ended               // the call has returned
)

// Blocked says that a goroutine of the task begins to wait. The first one gives back the CPU and what is queued behind
// the task. The node is told which objects it waits for if only the task's own end would end the wait.
func (cl *call) Blocked(ctx context.Context, waitsFor []ids.ObjectID) {
	cl.lane.e.reader.handOver() // another goroutine must read the answer
	b := &cl.block
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	if b.count == 1 && b.is(hasCPU) {
		if len(waitsFor) > 0 && ctx.Done() != cl.ctx.Done() {
			waitsFor = nil
		}
		cl.releaseLocked(waitsFor)
	}
}

func (cl *call) releaseLocked(waitsFor []ids.ObjectID) {
	e := cl.lane.e
	cl.block.set(released)
	e.mu.Lock()
	e.waiting[cl.id()] = cl
	e.mu.Unlock()
	var back []ids.TaskID
	if cl.lane.actor == nil { // an actor's queued calls can run nowhere else
		back = cl.lane.takeQueue()
	}
	e.send(&wire.Blocked{Task: cl.id(), Lease: cl.lease, Returned: back, WaitsFor: waitsFor})
	if len(back) > 0 {
		cl.lane.queueReturned()
		e.finished(len(back))
	}
}

// Unblocked says that a goroutine goes on. The last one asks for the CPU and waits for it,
// even if what it waited for has timed out: it would run beyond the node's CPUs otherwise.
func (cl *call) Unblocked(context.Context) {
	b := &cl.block
	b.mu.Lock()
	b.count--
	if b.count == 0 && b.is(released) {
		b.set(resuming)
		b.resumed = make(chan struct{})
		cl.lane.e.send(&wire.Unblocked{Task: cl.id(), Lease: cl.lease})
	}
	wait := b.resumed
	if b.count > 0 || !b.is(resuming) {
		wait = nil
	}
	b.mu.Unlock()
	if wait == nil {
		return
	}
	select {
	case <-wait:
	case <-cl.ctx.Done():
	case <-cl.lane.e.quit:
	case <-cl.lane.e.c.Done():
	}
}

func (b *blocking) set(s blockState) { b.state.Store(uint32(s)) }

func (b *blocking) is(s blockState) bool { return b.state.Load() == uint32(s) }

// told is what the node was told, or is being told: whether the CPU is given back, and whether it is asked for again.
func (b *blocking) told() (blocked, asks bool) {
	s := blockState(b.state.Load())
	return s == released || s == resuming, s == resuming
}

// resume gives a task its CPU.
func (e *Executor) resume(task ids.TaskID) {
	e.mu.Lock()
	cl := e.waiting[task]
	e.mu.Unlock()
	if cl == nil {
		return // the task has ended meanwhile
	}
	b := &cl.block
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.is(resuming) {
		return // a rebuilt owner sent it for a wait that is over; the one for this wait will come
	}
	e.mu.Lock()
	delete(e.waiting, task)
	e.mu.Unlock()
	close(b.resumed)
	b.resumed = nil
	b.set(hasCPU)
	cl.lane.unblock()
	if b.count > 0 { // another goroutine began to wait meanwhile
		cl.releaseLocked(nil)
	}
}

// over ends the count when the call ends.
func (b *blocking) over(cl *call) {
	b.mu.Lock()
	told := !b.is(hasCPU)
	b.set(ended)
	if b.resumed != nil {
		close(b.resumed)
		b.resumed = nil
	}
	b.mu.Unlock()
	if told {
		cl.lane.unblock()
		e := cl.lane.e
		e.mu.Lock()
		if e.waiting[cl.id()] == cl {
			delete(e.waiting, cl.id())
		}
		e.mu.Unlock()
	}
}
