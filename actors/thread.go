package actors

import (
	"runtime"
	"sync"
)

// thread is the dispatcher of a component with Spec.Thread: one goroutine locked to
// one OS thread for the component's life. The thread ends with it, so settings of the thread (affinity, priority,
// a parent-death signal's owner) do not pass to others.
type thread struct {
	turns chan func()
	once  sync.Once
}

func newThread() *thread {
	// At most one turn is scheduled at a time; a panicking turn schedules the next while it still runs.
	t := &thread{turns: make(chan func(), 1)}
	go t.loop()
	return t
}

func (t *thread) loop() {
	runtime.LockOSThread()
	ended := false
	defer func() {
		if !ended { // runtime.Goexit in a turn: the component goes on, on a new thread
			go t.loop()
		}
	}()
	for turn := range t.turns {
		turn()
	}
	ended = true
}

// Schedule implements actor.Dispatcher.
func (t *thread) Schedule(turn func()) { t.turns <- turn }

// Throughput implements actor.Dispatcher; the kit's mailbox does not ask.
func (t *thread) Throughput() int { return chunk }

func (t *thread) end() { t.once.Do(func() { close(t.turns) }) }
