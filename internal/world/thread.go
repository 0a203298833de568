package world

import (
	"iter"
	"slices"
	"time"
)

// thread is code of a process that can wait: the main function of a driver, or a call in a worker. It runs on a coroutine, only while the
// world takes its turn.
type thread struct {
	p      *process
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	ready  func() bool // what it waits for
	queued bool        // its turn is coming
	over   bool
	what   string // what it waits for, for a failure's report
}

// ended unwinds the thread of a process that is gone.
type ended struct{}

// spawn starts a thread.
func (p *process) spawn(body func(t *thread)) *thread {
	t := &thread{p: p}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if e := recover(); e != nil {
				if _, gone := e.(ended); !gone {
					panic(e)
				}
			}
		}()
		t.yield = yield
		body(t)
	})
	p.threads = append(p.threads, t)
	p.wake()
	return t
}

// await waits until ready says so.
func (t *thread) await(what string, ready func() bool) {
	if ready() {
		return
	}
	t.ready, t.what = ready, what
	if !t.yield(struct{}{}) {
		panic(ended{})
	}
	t.ready = nil
}

// sleep waits for a time.
func (t *thread) sleep(d int64) {
	over := false
	t.p.w.after(d, func() {
		over = true
		t.p.wake()
	})
	t.await("a time", func() bool { return over })
}

// work takes some time.
func (t *thread) work(most time.Duration) { t.sleep(t.p.w.between(10*time.Microsecond, most)) }

// wake gives a turn to the threads that can go on.
func (p *process) wake() {
	if p.dead {
		return
	}
	for _, t := range p.threads {
		if !t.queued && (t.ready == nil || t.ready()) {
			t.queued = true
			p.turns.put(t)
		}
	}
}

// turn lets a thread go on.
func (p *process) turn(ev any) {
	t := ev.(*thread)
	t.queued = false
	if t.over || t.ready != nil && !t.ready() {
		return
	}
	if _, more := t.next(); !more {
		t.over = true
		p.threads = slices.DeleteFunc(p.threads, func(o *thread) bool { return o == t })
	}
	p.wake()
}

// stopThreads ends every thread, so that no coroutine is left.
func (p *process) stopThreads() {
	for _, t := range p.threads {
		t.over = true
		t.stop()
	}
	p.threads = nil
}

func (w *World) stopThreads() {
	for _, p := range w.processes {
		p.stopThreads()
	}
}
