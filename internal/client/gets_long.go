package client

import (
	"sync"
	"time"
)

// longWaits wakes those that wait for long: one timer for all of them, since most waits are short, and a timer of their own would be most of what they cost.
type longWaits struct {
	mu             sync.Mutex
	oldest, newest *waiter     // guarded by mu: those that are parked, in the order in which they are due
	timer          *time.Timer // guarded by mu
	armed          bool        // guarded by mu
	closed         bool        // guarded by mu
}

// add has a waiter woken after each such time, until remove.
func (l *longWaits) add(w *waiter, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.begun, w.every = time.Now(), after
	w.due = w.begun.Add(after)
	l.push(w)
	if !l.armed && !l.closed {
		l.arm(after)
	}
}

func (l *longWaits) remove(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unlink(w)
}

func (l *longWaits) arm(after time.Duration) {
	if l.armed = true; l.timer == nil {
		l.timer = time.AfterFunc(after, l.check)
	} else {
		l.timer.Reset(after)
	}
}

// check wakes those that are due.
func (l *longWaits) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	if l.closed {
		return
	}
	now := time.Now()
	for w := l.oldest; w != nil && !w.due.After(now); w = l.oldest {
		l.unlink(w)
		w.due = now.Add(w.every)
		l.push(w)
		w.nudge()
	}
	if l.oldest != nil {
		l.arm(l.oldest.due.Sub(now))
	}
}

func (l *longWaits) push(w *waiter) {
	if w.before = l.newest; w.before != nil {
		w.before.behind = w
	} else {
		l.oldest = w
	}
	l.newest = w
}

func (l *longWaits) unlink(w *waiter) {
	if w.before != nil {
		w.before.behind = w.behind
	} else {
		l.oldest = w.behind
	}
	if w.behind != nil {
		w.behind.before = w.before
	} else {
		l.newest = w.before
	}
	w.before, w.behind = nil, nil
}

func (l *longWaits) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.timer != nil {
		l.timer.Stop()
	}
}
