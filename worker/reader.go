package worker

import (
	"io"
	"sync/atomic"
	"time"

	"mobula/wire"
)

// reader reads a worker process' connection. One goroutine at a time has that role. If a task arrives alone, on a
// lane whose tasks are short, that goroutine runs it itself, so that none is woken for the task or its report. If
// the task waits for the node or runs long, another goroutine takes over the role, and the first one is an
// ordinary runner until the task ends.
type reader struct {
	e    *Executor
	recv func() ([]wire.Msg, error)

	turn     atomic.Uint64 // odd while the role's holder runs a task; taking over adds one
	watching atomic.Bool   // the watcher runs, which takes over from long tasks
	over     chan struct{} // closed when nothing can be read any more
	err      error         // why; written before over is closed

	borrowed *runner // runner for the task that Deliver found; of the role's holder
}

const (
	quickTask  = 50 * time.Microsecond // the reader does not run tasks that take longer
	quickRuns  = 3                     // so many quick tasks in a row come before one that the reader runs
	notQuick   = -16                   // where that count begins after the reader was kept too long
	readerTick = time.Millisecond      // a reader that is in the same task at two ticks is kept too long
	calmTicks  = 100                   // after so many ticks without such tasks the watcher ends
)

func newReader(e *Executor, recv func() ([]wire.Msg, error)) *reader {
	return &reader{e: e, recv: recv, over: make(chan struct{})}
}

func (rd *reader) loop() {
	for {
		batch, err := rd.recv()
		if err != nil {
			if err == io.EOF {
				err = nil // a clean end
			}
			rd.err = err
			close(rd.over)
			return
		}
		rd.e.Deliver(batch)
		if r := rd.borrowed; r != nil {
			rd.borrowed = nil
			if !rd.run(r) {
				return
			}
		}
	}
}

// run runs the lane's task for r. It tells whether the goroutine still has the reader's role.
func (rd *reader) run(r *runner) (mine bool) {
	if rd.e.pending.Load() != 1 || !rd.e.enter() { // there is more to do
		r.lane.giveBack(r)
		return true
	}
	turn := rd.turn.Add(1)
	rd.watch()
	returned := false
	defer func() {
		if !returned { // runtime.Goexit
			r.lane.giveBack(r)
		}
		rd.e.work.Done()
		if mine = rd.turn.CompareAndSwap(turn, turn+1); mine && !returned {
			go rd.loop()
		}
	}()
	for r.lane.next(r) {
		r.execute()
	}
	returned = true
	return
}

// handOver lets another goroutine read if the reader runs a task.
func (rd *reader) handOver() {
	if rd != nil {
		rd.take(rd.turn.Load())
	}
}

func (rd *reader) take(turn uint64) {
	if turn%2 == 1 && rd.turn.CompareAndSwap(turn, turn+1) {
		go rd.loop()
	}
}

// watch makes sure that a watcher runs.
func (rd *reader) watch() {
	if !rd.watching.Load() && rd.watching.CompareAndSwap(false, true) {
		go rd.watcher()
	}
}

func (rd *reader) watcher() {
	tick := time.NewTicker(readerTick)
	defer tick.Stop()
	for last, calm := rd.turn.Load(), 0; ; {
		select {
		case <-rd.over:
			return
		case <-tick.C:
		}
		turn := rd.turn.Load()
		if turn != last {
			last, calm = turn, 0
			continue
		}
		rd.take(turn)
		if calm++; calm < calmTicks {
			continue
		}
		rd.watching.Store(false)
		if rd.turn.Load() == turn || !rd.watching.CompareAndSwap(false, true) {
			return
		}
		calm = 0
	}
}

// lendLocked gives the reader the place of the lane's parked goroutine, for the only task there is; nil if the
// lane's tasks are not short. mu is held.
func (l *lane) lendLocked() *runner {
	if l.max != 1 || l.parked != 1 || l.quick < quickRuns || l.held || len(l.queue)-l.head != 1 {
		return nil
	}
	if l.lent == nil {
		l.lent = newRunner(l)
		l.lent.borrows = true
	}
	l.parked--
	return l.lent
}

// giveBack lets the goroutine whose place was lent go on with the remaining tasks.
func (l *lane) giveBack(r *runner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.gone {
		l.wake <- struct{}{}
	}
	if l.lent == r {
		l.lent = nil
	}
}

// tookLocked learns from a call how long the lane's calls take. mu is held.
func (l *lane) tookLocked(d time.Duration) {
	switch {
	case d < quickTask:
		l.quick = min(l.quick+1, quickRuns)
	case d >= readerTick:
		l.quick = notQuick
	default:
		l.quick = 0
	}
}
