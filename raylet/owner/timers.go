package owner

import "time"

// timerKind says what a timer is for.
type timerKind uint8

const (
	timerDeadline timerKind = iota + 1 // of a task
	timerBackoff                       // a task runs again
	timerGrace                         // a task was told to end and may be abandoned
	timerIdle                          // of a lease
	timerSettle                        // of a worker that is gone
	timerOrder                         // a caller's next call is missing
	timerPack                          // packs that were not answered
	timerResync                        // clients that do not say what they hold
	timerSweep                         // the next slice of a sweep
	timerInquest                       // who brought a process down is still asked
	timerStop                          // an actor's close hook
)

// timer is an entry of the heap. The shell knows one time only: the earliest.
type timer struct {
	at      int64 // Unix ns
	i       int   // in the heap
	kind    timerKind
	task    *taskRec
	lease   *leaseRec
	client  *clientRec
	caller  *callerRec
	inquest *inquest
	actor   *actorRec
}

// timerHeap is a binary heap, earliest first.
type timerHeap []*timer

func (h *timerHeap) add(at int64, t timer) *timer {
	t.at, t.i = at, len(*h)
	*h = append(*h, &t)
	h.up(t.i)
	return &t
}

func (h *timerHeap) remove(t *timer) {
	i, n := t.i, len(*h)-1
	if i < 0 {
		return
	}
	h.swap(i, n)
	(*h)[n] = nil
	*h = (*h)[:n]
	if i < n {
		h.down(i)
		h.up(i)
	}
	t.i = -1
}

func (h *timerHeap) swap(i, j int) {
	s := *h
	s[i], s[j] = s[j], s[i]
	s[i].i, s[j].i = i, j
}

func (h *timerHeap) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if (*h)[p].at <= (*h)[i].at {
			return
		}
		h.swap(i, p)
		i = p
	}
}

func (h *timerHeap) down(i int) {
	for {
		j := 2*i + 1
		if j >= len(*h) {
			return
		}
		if j+1 < len(*h) && (*h)[j+1].at < (*h)[j].at {
			j++
		}
		if (*h)[i].at <= (*h)[j].at {
			return
		}
		h.swap(i, j)
		i = j
	}
}

// setTimer gives a task its one timer; an earlier one is replaced.
func (c *Core) setTimer(t *taskRec, at int64, kind timerKind) {
	c.stopTimer(t)
	t.ext().timer = c.timers.add(at, timer{kind: kind, task: t})
}

func (c *Core) stopTimer(t *taskRec) {
	if t.x != nil && t.x.timer != nil {
		c.timers.remove(t.x.timer)
		t.x.timer = nil
	}
}

// tick runs what is due.
func (c *Core) tick() {
	c.armed = 0
	for len(c.timers) > 0 && c.timers[0].at <= c.now {
		t := c.timers[0]
		c.timers.remove(t)
		switch t.kind {
		case timerDeadline:
			c.deadline(t.task)
		case timerBackoff:
			c.backoffOver(t.task)
		case timerGrace:
			c.graceOver(t.task)
		case timerIdle:
			c.idleOver(t.lease)
		case timerSettle:
			t.client.settle = nil
			c.settleWorker(t.client)
		case timerOrder:
			c.orderOver(t.caller)
		case timerPack:
			c.packOver()
		case timerResync:
			c.resyncOver()
		case timerInquest:
			c.inquestOver(t.inquest)
		case timerStop:
			c.stopOver(t.actor)
		case timerSweep:
			c.sweeping = nil
			c.sweepSlice()
			return // the rest of what is due in a step of its own
		}
	}
}

// arm asks for the earliest timer, if it is earlier than what was asked for. While a rebuilt core waits for its clients it is for
// the end of that: nothing else that is due would be run.
func (c *Core) arm() {
	if len(c.timers) == 0 {
		return
	}
	at := c.timers[0].at
	if p := c.pause; p != nil {
		if p.timer == nil {
			return
		}
		at = p.timer.at
	}
	if c.armed != 0 && c.armed <= at {
		return
	}
	c.armed = at
	c.effects = append(c.effects, Effect{Kind: After, N: max(at-c.now, int64(time.Microsecond))})
}
