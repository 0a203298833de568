package world

import (
	"time"

	"mobula/internal/heap"
)

// The paces of a world.
const (
	slowest  = 2 * time.Millisecond  // that a box is slow to wake
	stepTime = 20 * time.Microsecond // at most, from one event to the next
)

// timer is something that happens at a time, unless it was stopped.
type timer struct {
	at      int64
	n       uint64 // of those of one time the first
	do      func()
	stopped bool
}

func (t *timer) stop() { t.stopped = true }

func sooner(a, b **timer) bool {
	return (*a).at < (*b).at || (*a).at == (*b).at && (*a).n < (*b).n
}

// after has something done when nanoseconds have passed.
func (w *World) after(d int64, do func()) *timer {
	w.timed++
	t := &timer{at: w.now + max(d, 0), n: w.timed, do: do}
	heap.Push(&w.timers, t, sooner)
	return t
}

// fire does what is due.
func (w *World) fire() {
	for len(w.timers) > 0 && (w.timers[0].at <= w.now || w.timers[0].stopped) {
		if t := heap.Pop(&w.timers, sooner); !t.stopped {
			t.do()
		}
	}
}

// between draws a time.
func (w *World) between(from, to time.Duration) int64 {
	return int64(from) + w.rng.Int64N(int64(to-from)+1)
}
