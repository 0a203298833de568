package client

import (
	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/errs"
	"mobula/wire"
)

// This file is what the owner is told of calls that it does not know, when they have ended: how many of each function, and of some what and when. The times are taken of
// calls that are traced, and of the first of each second; so nothing is left out where calls are few, and where they are many they cost a counter.

const (
	timedEach   = 1000 // calls of a process that are timed between two sweeps, beside those that are traced
	failedMost  = 100  // calls of an actor that have failed, and are told of one by one between two tellings
	timedAtOnce = 256  // calls of an actor that are not kept until the next telling
)

// tally is what has become of the calls of one actor since the owner was told. It is guarded by the Callee's lock.
type tally struct {
	counts []wire.EndedCount
	last   int // of counts, that something was for
	calls  []wire.EndedCall
	failed int // of calls, without a time
}

// times tells whether one more call may be timed.
func (s *straight) times() bool { return s.untimed.Load() > 0 && s.untimed.Add(-1) >= 0 }

// count counts a call that ends, unless the owner knows of it and counts it. The Callee's lock is held.
func (s *straight) count(k *shell.Call, o *direct.Outcome) {
	m, c := messageOf(k), k.Callee()
	if m.told.Load() {
		return
	}
	t, _ := c.Own.(*tally)
	if t == nil {
		t = new(tally)
		c.Own = t
	}
	n := t.of(m.spec.Opts)
	n.Retried += uint64(max(0, k.Tries()))
	switch failed := o.Err != nil; {
	case m.spec.Submitted != 0, failed && t.failed < failedMost:
		if m.spec.Submitted == 0 {
			t.failed++
		}
		t.calls = append(t.calls, wire.EndedCall{Spec: m.spec, At: s.clock.Now(), Tries: k.Tries(), Err: o.Err, Ran: ranOf(o)})
		if len(t.calls) >= timedAtOnce {
			s.tellTimed(k)
		}
	case !failed:
		n.Finished++
	case o.Err.Code == errs.CodeCancelled:
		n.Cancelled++
	default:
		n.Failed++
	}
}

// of is the count of a function. An actor has few.
func (t *tally) of(opts *wire.TaskOptions) *wire.EndedCount {
	if t.last < len(t.counts) && t.counts[t.last].Opts == opts {
		return &t.counts[t.last]
	}
	for i := range t.counts {
		if t.counts[i].Opts.Func == opts.Func {
			t.last = i
			return &t.counts[i]
		}
	}
	t.last = len(t.counts)
	t.counts = append(t.counts, wire.EndedCount{Opts: opts})
	return &t.counts[t.last]
}

// tellTimed tells of the calls of an actor that are told of one by one. Its lock is held.
func (s *straight) tellTimed(k *shell.Call) {
	if t, _ := k.Callee().Own.(*tally); t != nil && len(t.calls) > 0 {
		_ = s.outbox.send(&wire.EndedCalls{Calls: t.calls})
		t.calls = nil
	}
}

// TellEnded tells the owner of the calls that have gone straight and have ended, as happens every second: what it is asked from now on it answers with them.
func (c *Client) TellEnded() { c.straight.tellEnded() }

func (s *straight) tellEnded() {
	if s.boxes == nil {
		return
	}
	var all tally
	s.calls.All(func(c *shell.Callee) {
		t, _ := c.Own.(*tally)
		if t == nil {
			return
		}
		for i := range t.counts {
			n := &t.counts[i]
			if n.Finished+n.Failed+n.Cancelled+n.Retried > 0 {
				sum := all.of(n.Opts)
				sum.Finished, sum.Failed, sum.Cancelled, sum.Retried = sum.Finished+n.Finished, sum.Failed+n.Failed, sum.Cancelled+n.Cancelled, sum.Retried+n.Retried
			}
		}
		all.calls = append(all.calls, t.calls...)
		*t = tally{counts: t.counts[:0]}
	})
	if len(all.counts)+len(all.calls) > 0 {
		_ = s.outbox.send(&wire.EndedCalls{Counts: all.counts, Calls: all.calls})
	}
}
