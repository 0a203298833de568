package spill

import (
	"context"
	"errors"
	"fmt"

	"mobula/internal/queue"
	"mobula/objectstore/spill/storage"
)

// maxDoublings bounds how much longer a target that keeps failing is left alone.
const maxDoublings = 5

// maxDeletes is how often a file's deletion is tried; what is left then goes with the session.
const maxDeletes = 4

// core decides for one target what runs when: which requests start, which are refused, and when the
// medium is asked whether it is well. It does not outlive a panic: a new one is given the requests that
// the spiller holds for the target and learns its health again.
type core struct {
	cfg     Config
	queue   [kinds]queue.Queue[request]
	running [kinds]map[uint64]request
	known   map[uint64]struct{} // queued or running
	overdue map[uint64]struct{} // running, and given up
	joined  map[uint64][]uint64 // by a running read: those that share its place
	deletes map[uint64]int      // failed tries
	later   []request           // deletes to try again on a tick

	health   Health
	why      error
	failures int   // in a row
	retryAt  int64 // not Healthy: when to probe
	armed    int64 // when a timer is due; 0: none

	probing  bool
	askedAt  int64
	capacity storage.Capacity
	capAt    int64  // when it was asked
	capOK    bool   // and nothing was deleted since
	since    uint64 // bytes of writes that it may not have seen
	unseen   uint64 // bytes of writes that ran when it was last asked
	largest  uint64 // object that was to be written
	nothing  int64  // until then nothing fits: the medium said so, whatever its capacity

	out []effect
}

func newCore(cfg Config) *core {
	c := &core{cfg: cfg, known: make(map[uint64]struct{}), overdue: make(map[uint64]struct{}), joined: make(map[uint64][]uint64), deletes: make(map[uint64]int)}
	for k := range c.running {
		c.running[k] = make(map[uint64]request)
	}
	return c
}

// Step takes one event.
func (c *core) Step(now int64, ev event) []effect {
	c.out = c.out[:0]
	switch ev := ev.(type) {
	case submit:
		if c.learn(ev.req) {
			ev.req.at = now
			c.queue[ev.req.kind].Push(ev.req)
		}
	case adopt:
		if c.learn(ev.req) {
			c.run(now, ev.req, ev.with)
			for _, id := range ev.with {
				c.known[id] = struct{}{}
			}
		}
	case finished:
		c.finished(now, ev)
	case probed:
		c.probed(now, ev)
	case taken:
		c.since += ev.size
		c.unseen += ev.size
	case tick:
		c.tick(now)
	case cancel:
		for _, k := range []kind{write, read} {
			c.refuseAll(k, nil)
		}
	}
	c.pump(now)
	c.watch(now)
	return c.out
}

func (c *core) tick(now int64) {
	if now >= c.armed {
		c.armed = 0
	}
	for _, r := range c.later {
		c.queue[remove].Push(r)
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

func (c *core) learn(r request) bool {
	if _, dup := c.known[r.id]; dup {
		return false // redelivered after a panic
	}
	c.known[r.id] = struct{}{}
	return true
}

func (c *core) finished(now int64, ev finished) {
	for k := range c.running {
		r, ok := c.running[k][ev.id]
		if !ok {
			continue
		}
		delete(c.running[k], ev.id)
		if _, ok := c.overdue[ev.id]; ok {
			delete(c.overdue, ev.id) // it was refused long ago
			return
		}
		switch {
		case r.kind == remove:
			c.deleted(now, r, ev.err)
		case r.kind == read || ev.err == nil:
			delete(c.known, r.id)
			for _, id := range c.joined[r.id] {
				delete(c.known, id)
			}
			delete(c.joined, r.id)
			if r.kind == write {
				c.failures = 0
				c.become(Healthy, nil)
			}
		case errors.Is(ev.err, context.Canceled):
			c.refuse(r.id, nil)
		default:
			c.refuse(r.id, ev.err)
			c.failed(now, ev.err)
		}
		return
	}
}

func (c *core) deleted(now int64, r request, err error) {
	if err == nil {
		c.capOK, c.nothing = false, 0 // there is room again, perhaps
	} else if c.deletes[r.id]++; c.deletes[r.id] < maxDeletes {
		c.later = append(c.later, r)
		c.wake(now, now+int64(c.cfg.ProbeAfter))
		return
	} else {
		c.refuse(r.id, err)
	}
	delete(c.known, r.id)
	delete(c.deletes, r.id)
}

func (c *core) probed(now int64, ev probed) {
	c.probing = false
	if ev.err != nil {
		c.failed(now, ev.err)
		return
	}
	c.capacity, c.capAt, c.capOK, c.since = ev.capacity, now, true, c.unseen
	if c.fits(0) {
		c.become(Healthy, nil)
	} else {
		c.full(now, c.fullError(0))
	}
}

// failed judges the target by the error of a write or a probe.
func (c *core) failed(now int64, err error) {
	if errors.Is(err, storage.ErrFull) {
		c.capOK, c.nothing = false, now+int64(c.cfg.CapacityInterval)
		c.full(now, err)
		return
	}
	c.failures++
	c.become(Failed, err)
	c.retryAt = now + int64(c.cfg.ProbeAfter)<<min(c.failures-1, maxDoublings)
	c.wake(now, c.retryAt)
}

func (c *core) full(now int64, why error) {
	c.become(Full, why)
	c.retryAt = now + int64(c.cfg.ProbeAfter)
	c.wake(now, c.retryAt)
}

// pump starts what can start. Reads and deletes wait for nothing but a place: a write that
// waits for room never holds up the read or the delete that would give it.
func (c *core) pump(now int64) {
	for more := true; more && len(c.running[remove]) < 1; {
		more = c.startNext(now, remove)
	}
	for more := true; more && len(c.running[read]) < c.cfg.Readers; {
		more = c.startNext(now, read)
	}
	for c.queue[write].Len() > 0 {
		if c.health == Failed {
			c.refuseAll(write, c.why)
			return
		}
		if len(c.overdue) >= c.cfg.Writers {
			c.refuseAll(write, errStuck) // no place will come free
			return
		}
		if c.probing || len(c.running[write]) >= c.cfg.Writers {
			return
		}
		if now < c.nothing {
			if !c.deleting() {
				c.refuseAll(write, c.why)
			}
			return
		}
		if !c.capOK || now-c.capAt >= int64(c.cfg.CapacityInterval) {
			c.ask(now, false)
			return
		}
		head := c.queue[write].Front()
		c.largest = max(c.largest, head.largest)
		if !c.fits(head.size) {
			if c.deleting() {
				return // room is being made
			}
			why := c.fullError(head.size)
			c.queue[write].Pop()
			c.refuse(head.id, why)
			c.full(now, why)
			continue
		}
		c.since += head.size
		c.startNext(now, write)
	}
}

func (c *core) deleting() bool { return len(c.running[remove])+c.queue[remove].Len() > 0 }

func (c *core) startNext(now int64, k kind) bool {
	if c.queue[k].Len() == 0 {
		return false
	}
	r := c.queue[k].Pop()
	var with []uint64
	if k == read {
		with = c.join(r)
	}
	c.run(now, r, with)
	c.out = append(c.out, start{r.id, with})
	return true
}

func (c *core) run(now int64, r request, with []uint64) {
	r.at = now
	c.running[r.kind][r.id] = r
	if len(with) > 0 {
		c.joined[r.id] = with
	}
}

func (c *core) refuseAll(k kind, why error) {
	for c.queue[k].Len() > 0 {
		c.refuse(c.queue[k].Pop().id, why)
	}
}

func (c *core) refuse(id uint64, why error) {
	delete(c.known, id)
	c.out = append(c.out, refuse{id: id, why: why})
}

func (c *core) ask(now int64, tryWrite bool) {
	c.probing, c.askedAt, c.unseen = true, now, 0
	for _, r := range c.running[write] {
		c.unseen += r.size
	}
	c.out = append(c.out, probe{tryWrite})
}

// limit is how much of the medium spilling uses: what is spilled can be read back into mapped files only while a disk has room for
// two of the largest objects.
func (c *core) limit() uint64 {
	total := c.capacity.Total
	return min(uint64(c.cfg.CapacityThreshold*float64(total)), total-min(2*c.largest, total/4))
}

func (c *core) fits(size uint64) bool {
	return c.capacity.Total == 0 || c.capacity.Used+c.since+size <= c.limit()
}

func (c *core) fullError(size uint64) error {
	return fmt.Errorf("%w: %d of %d bytes are used, %d are being written and %d more would pass the threshold of %g",
		storage.ErrFull, c.capacity.Used, c.capacity.Total, c.since, size, c.cfg.CapacityThreshold)
}

func (c *core) become(h Health, why error) {
	c.why = why
	if c.health != h {
		c.health = h
		c.out = append(c.out, turn{h, why})
	}
}
