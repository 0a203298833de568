package client

import (
	"sync"
	"time"
)

// longWaits wakes those that wait for long, or all when the client ends: one timer for all of them, since most waits are short, and a timer of their own would be most of what they cost. So would
// a look at the clock: when a wait has begun is noted at the timer's next beat.
type longWaits struct {
	mu             sync.Mutex
	every          time.Duration
	oldest, newest *waiter     // guarded by mu: those that are parked, in the order in which they are due
	timer          *time.Timer // guarded by mu
	armed          bool        // guarded by mu
	closed         bool        // guarded by mu
}

// beats is how often the timer beats in the time after which a wait is long: a waiter is woken by so much later at most.
const beats = 4

// add has a waiter woken when it waits for long, and again and again, until remove.
func (l *longWaits) add(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.begun = time.Time{}
	w.late.Store(false)
	l.push(w)
	switch {
	case l.closed:
		w.Give()
	case !l.armed:
		l.arm()
	}
}

func (l *longWaits) remove(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unlink(w)
}

func (l *longWaits) arm() {
	if l.armed = true; l.timer == nil {
		l.timer = time.AfterFunc(l.every/beats, l.beat)
	} else {
		l.timer.Reset(l.every / beats)
	}
}

// beat notes who has begun to wait since the last one, and wakes those that are due.
func (l *longWaits) beat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	if l.closed {
		return
	}
	now := time.Now()
	for w := l.newest; w != nil && w.begun.IsZero(); w = w.before {
		w.begun, w.due = now.Add(-l.every/beats), now.Add(l.every)
	}
	for w := l.oldest; w != nil && !w.due.After(now); w = l.oldest {
		l.unlink(w)
		w.due = now.Add(l.every)
		l.push(w)
		w.late.Store(true)
		w.Give()
	}
	if l.oldest != nil {
		l.arm()
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
	for w := l.oldest; w != nil; w = w.behind {
		w.Give()
	}
}
