package run

import (
	"mobula/internal/client"
)

// Ledger is what a graph has submitted: the handles that keep its results. It outlives the cores.
type ledger struct {
	tasks    []entry
	unwanted []int32 // of the wanted ones, those that nobody needs any more
	begun    int64
	ran      uint64 // tasks that ended well
	failures int    // that failed of themselves
	peak     int64  // bytes of results at once
	told     int    // events
	gauges   gauges
}

type entry struct {
	handles []*client.Handle // nil: not submitted, or released
	state   outcome
	away    bool // it has seceded
	bytes   int64
	failure error
}

type outcome uint8

const (
	unsent outcome = iota
	sent
	made
	failed
)

func newLedger(n int) *ledger { return &ledger{tasks: make([]entry, n)} }

// release gives up a task's results; what it is in is as if it had not been.
func (l *ledger) release(t int32) {
	e := &l.tasks[t]
	for _, h := range e.handles {
		if h != nil {
			h.Release()
		}
	}
	*e = entry{}
}

// releasePart gives up one of a task's results.
func (l *ledger) releasePart(t, part int32) {
	if hs := l.tasks[t].handles; int(part) < len(hs) && hs[part] != nil {
		hs[part].Release()
		hs[part] = nil
	}
}

func (l *ledger) releaseAll() {
	for t := range l.tasks {
		l.release(int32(t))
	}
}
