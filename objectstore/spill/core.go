package spill

import (
	"context"
	"errors"
	"fmt"

	"mobula/internal/queue"
)

// maxDoublings bounds how often the wait before a failing target is tried again doubles.
const maxDoublings = 5

// maxDeletes is how often a file's deletion is tried; a file that is left is removed with the session.
const maxDeletes = 4

// Core decides for one target what runs when: which requests start, which are refused, and when the medium is
// probed. It does not outlive a panic: a new core gets the requests that the spiller holds for the target, and
// learns the target's health again.
type Core struct {
	cfg     Config
	queue   [kinds]queue.Queue[Request]
	running [kinds]map[uint64]Request
	known   map[uint64]struct{} // queued or running
	overdue map[uint64]struct{} // running, but given up
	joined  map[uint64][]uint64 // by a running read: reads that are done with it
	deletes map[uint64]int      // failed tries
	later   []Request           // deletes to retry on a tick

	health   Health
	why      error
	failures int   // in a row
	retryAt  int64 // if not Healthy: when to probe
	armed    int64 // when a timer is due; 0: none

	probing  bool
	askedAt  int64
	capacity Capacity
	capAt    int64  // when it was asked
	capOK    bool   // the capacity is known, and nothing was deleted since
	since    uint64 // bytes of writes that the capacity may not include
	unseen   uint64 // bytes of writes that ran when the capacity was read
	largest  uint64 // size of the largest object that should have been written
	nothing  int64  // until this time nothing fits: the medium said so, whatever its capacity

	out []Effect
}

// NewCore makes the core of a target in an unknown state. The configuration must be valid.
func NewCore(cfg Config) *Core {
	c := &Core{cfg: cfg, known: make(map[uint64]struct{}), overdue: make(map[uint64]struct{}), joined: make(map[uint64][]uint64), deletes: make(map[uint64]int)}
	for k := range c.running {
		c.running[k] = make(map[uint64]Request)
	}
	return c
}

// Step takes one event. The slice is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	c.out = c.out[:0]
	switch ev := ev.(type) {
	case Submit:
		if c.learn(ev.Req) {
			ev.Req.at = now
			c.queue[ev.Req.Kind].Push(ev.Req)
		}
	case Adopt:
		if c.learn(ev.Req) {
			c.run(now, ev.Req, ev.With)
			for _, id := range ev.With {
				c.known[id] = struct{}{}
			}
		}
	case Finished:
		c.finished(now, ev)
	case Probed:
		c.probed(now, ev)
	case Taken:
		c.since += ev.Size
		c.unseen += ev.Size
	case Tick:
		c.tick(now)
	case Cancel:
		for _, k := range []Kind{Write, Read} {
			c.refuseAll(k, nil)
		}
	}
	c.pump(now)
	c.watch(now)
	return c.out
}

func (c *Core) tick(now int64) {
	if now >= c.armed {
		c.armed = 0
	}
	for _, r := range c.later {
		c.queue[Remove].Push(r)
	}
	c.later = c.later[:0]
	if c.health != Healthy && !c.probing {
		if now >= c.retryAt {
			c.ask(now, c.health == Failed)
		} else {
			c.wake(now, c.retryAt)
		}
	}
	c.giveUp(now)
}

func (c *Core) learn(r Request) bool {
	if _, dup := c.known[r.ID]; dup {
		return false // redelivered after a panic
	}
	c.known[r.ID] = struct{}{}
	return true
}

func (c *Core) finished(now int64, ev Finished) {
	for k := range c.running {
		r, ok := c.running[k][ev.ID]
		if !ok {
			continue
		}
		delete(c.running[k], ev.ID)
		if _, ok := c.overdue[ev.ID]; ok {
			delete(c.overdue, ev.ID) // it was refused before
			return
		}
		switch {
		case r.Kind == Remove:
			c.deleted(now, r, ev.Err)
		case r.Kind == Read || ev.Err == nil:
			delete(c.known, r.ID)
			for _, id := range c.joined[r.ID] {
				delete(c.known, id)
			}
			delete(c.joined, r.ID)
			if r.Kind == Write {
				c.failures = 0
				c.become(Healthy, nil)
			}
		case errors.Is(ev.Err, context.Canceled):
			c.refuse(r.ID, nil)
		default:
			c.refuse(r.ID, ev.Err)
			c.failed(now, ev.Err)
		}
		return
	}
}

func (c *Core) deleted(now int64, r Request, err error) {
	if err == nil {
		c.capOK, c.nothing = false, 0 // there may be room again
	} else if c.deletes[r.ID]++; c.deletes[r.ID] < maxDeletes {
		c.later = append(c.later, r)
		c.wake(now, now+int64(c.cfg.ProbeAfter))
		return
	} else {
		c.refuse(r.ID, err)
	}
	delete(c.known, r.ID)
	delete(c.deletes, r.ID)
}

func (c *Core) probed(now int64, ev Probed) {
	c.probing = false
	if ev.Err != nil {
		c.failed(now, ev.Err)
		return
	}
	c.capacity, c.capAt, c.capOK, c.since = ev.Capacity, now, true, c.unseen
	if c.fits(0) {
		c.become(Healthy, nil)
	} else {
		c.full(now, c.fullError(0))
	}
}

// failed sets the target's health by the error of a write or a probe.
func (c *Core) failed(now int64, err error) {
	if errors.Is(err, ErrFull) {
		c.capOK, c.nothing = false, now+int64(c.cfg.CapacityInterval)
		c.full(now, err)
		return
	}
	c.failures++
	c.become(Failed, err)
	c.retryAt = now + int64(c.cfg.ProbeAfter)<<min(c.failures-1, maxDoublings)
	c.wake(now, c.retryAt)
}

func (c *Core) full(now int64, why error) {
	c.become(Full, why)
	c.retryAt = now + int64(c.cfg.ProbeAfter)
	c.wake(now, c.retryAt)
}

// pump starts the requests that can start. Reads and deletes wait only for a place in their pool: a write that
// waits for room never holds up the read or delete that would make room.
func (c *Core) pump(now int64) {
	for more := true; more && len(c.running[Remove]) < 1; {
		more = c.startNext(now, Remove)
	}
	for more := true; more && len(c.running[Read]) < c.cfg.Readers; {
		more = c.startNext(now, Read)
	}
	for c.queue[Write].Len() > 0 {
		if c.health == Failed {
			c.refuseAll(Write, c.why)
			return
		}
		if len(c.overdue) >= c.cfg.Writers {
			c.refuseAll(Write, errStuck) // no place will become free
			return
		}
		if c.probing || len(c.running[Write]) >= c.cfg.Writers {
			return
		}
		if now < c.nothing {
			if !c.deleting() {
				c.refuseAll(Write, c.why)
			}
			return
		}
		if !c.capOK || now-c.capAt >= int64(c.cfg.CapacityInterval) {
			c.ask(now, false)
			return
		}
		head := c.queue[Write].Front()
		c.largest = max(c.largest, head.Largest)
		if !c.fits(head.Size) && (!head.Frees || c.capacity.Used+c.since+head.Size > c.capacity.Total) {
			if c.deleting() {
				return // room is being made
			}
			why := c.fullError(head.Size)
			c.queue[Write].Pop()
			c.refuse(head.ID, why)
			c.full(now, why)
			continue
		}
		c.since += head.Size
		c.startNext(now, Write)
	}
}

func (c *Core) deleting() bool { return len(c.running[Remove])+c.queue[Remove].Len() > 0 }

func (c *Core) startNext(now int64, k Kind) bool {
	if c.queue[k].Len() == 0 {
		return false
	}
	r := c.queue[k].Pop()
	var with []uint64
	if k == Read {
		with = c.join(r)
	}
	c.run(now, r, with)
	c.out = append(c.out, Start{r.ID, with})
	return true
}

func (c *Core) run(now int64, r Request, with []uint64) {
	r.at = now
	c.running[r.Kind][r.ID] = r
	if len(with) > 0 {
		c.joined[r.ID] = with
	}
}

func (c *Core) refuseAll(k Kind, why error) {
	for c.queue[k].Len() > 0 {
		c.refuse(c.queue[k].Pop().ID, why)
	}
}

func (c *Core) refuse(id uint64, why error) {
	delete(c.known, id)
	c.out = append(c.out, Refuse{ID: id, Why: why})
}

func (c *Core) ask(now int64, tryWrite bool) {
	c.probing, c.askedAt, c.unseen = true, now, 0
	for _, r := range c.running[Write] {
		c.unseen += r.Size
	}
	c.out = append(c.out, Probe{tryWrite})
}

// limit is how many bytes of the medium spilling may use. It leaves room for two of the largest objects: spilled objects may have
// to be read back into mapped files on the disk.
func (c *Core) limit() uint64 {
	total := c.capacity.Total
	return min(uint64(c.cfg.CapacityThreshold*float64(total)), total-min(2*c.largest, total/4))
}

func (c *Core) fits(size uint64) bool {
	return c.capacity.Total == 0 || c.capacity.Used+c.since+size <= c.limit()
}

func (c *Core) fullError(size uint64) error {
	return fmt.Errorf("%w: %d of %d bytes are used, %d are being written and %d more would pass the threshold of %g",
		ErrFull, c.capacity.Used, c.capacity.Total, c.since, size, c.cfg.CapacityThreshold)
}

func (c *Core) become(h Health, why error) {
	c.why = why
	if c.health != h {
		c.health = h
		c.out = append(c.out, Turn{h, why})
	}
}
