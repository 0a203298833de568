package objectstore

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/wire"
)

// argsDelay is how many later arrivals may go before a restore that only arguments need: running
// tasks' creates and gets let memory go, tasks that have not started do not.
const argsDelay = 256

// pump serves what waits, as far as there is room, and makes room for the rest.
func (c *Core) pump() {
	c.withhold()
	c.admitArgs()
	c.pumpRereads()
	for c.serve() {
	}
	c.trim()
	c.giveWay()
	c.withhold()
	c.warmth()
	c.pumpAhead()
	if len(c.over) > 0 {
		c.dropFiles()
	}
}

// senior is the head that has waited longest, with the lane's handicap; nil if none waits that
// could be served now. While memory is being reserved for a create the later ones wait:
// answers keep the order.
func (c *Core) senior() *demand {
	var best *demand
	var at uint64
	if c.diskFull() && c.canRestore() {
		for _, l := range []lane{laneGet, laneArgs} {
			if d := c.queues[l].peek(l); d != nil {
				return d
			}
		}
	}
	for l := range lanes {
		d := c.queues[l].peek(l)
		if d == nil || d.o != nil && !c.canRestore() || (l == laneCreate && c.reservingCreates > 0) {
			continue
		}
		t := d.ticket
		if l == laneArgs {
			t += argsDelay
		}
		if best == nil || t < at {
			best, at = d, t
		}
	}
	return best
}

// serve makes one step of progress for the head, and tells whether there may be another.
func (c *Core) serve() bool {
	d := c.senior()
	if d == nil {
		c.nobodyWaits()
		return false
	}
	if c.place(d) {
		return true
	}
	if d.held {
		return false // the reservation's end steps the core
	}
	if d.since == 0 {
		d.since = c.now
		c.stall.best = c.potential()
	}
	placed, coming := c.makeRoom(d)
	if placed {
		return true
	}
	if coming {
		return false
	}
	if c.diskFull() {
		if h := c.nextHolder(); h != nil && h != d && c.reservingCreates == 0 && c.place(h) {
			return true
		}
		return c.escape(d)
	}
	// Everything is pinned. What others ask may still fit where this does not.
	if d.lane == laneCreate {
		if g := c.queues[laneGet].peek(laneGet); g != nil && c.canRestore() && c.place(g) {
			return true
		}
	} else if r := c.queues[laneCreate].peek(laneCreate); r != nil && d.lane == laneGet && c.reservingCreates == 0 && c.place(r) {
		return true
	}
	return c.escape(d)
}

// place gives a waiting demand a block, if there is one.
func (c *Core) place(d *demand) bool {
	d.held = false
	if c.tight(alloc.Rounded(d.need)) {
		return false
	}
	b, ok := c.alloc.Alloc(c.owner(d), d.need, c.now < c.coldAt)
	if !ok && c.now < c.coldAt {
		b, ok = c.exchange(d)
	}
	if !ok || c.held(d, b) {
		return false
	}
	c.punchTaken()
	c.warmFor, c.warmAny = b.Owner, true
	c.dequeue(d)
	c.letGo()
	d.block, d.since, d.cold = b, 0, false
	c.stall.stuck = false
	if rs := c.alloc.Unbacked(b); len(rs) > 0 {
		d.stage = stageReserving
		d.cold = d.o == nil && d.pack == nil && c.cfg.ColdFrom > 0 && d.need >= c.cfg.ColdFrom && !b.Slab && len(rs) == 1 && rs[0] == b.Range()
		c.reserve(d, rs)
		return true
	}
	c.placed(d)
	return true
}

// dequeue takes a demand off its queue; one that is not the head stays there until it is, and is passed over.
func (c *Core) dequeue(d *demand) {
	if c.queues[d.lane].peek(d.lane) == d {
		c.queues[d.lane].Pop()
	}
}

// placed goes on with a demand that has its room.
func (c *Core) placed(d *demand) {
	switch {
	case d.pack != nil:
		c.packInto(d)
	case d.o != nil:
		c.read(d)
	default:
		c.grantDemand(d)
	}
}

// potential is what is free or could be made free without anyone letting go of anything.
func (c *Core) potential() uint64 {
	return c.forObjects() - min(c.forObjects(), c.alloc.Used()) + c.cold.bytes + c.second.bytes + c.spillingBytes
}

// makeRoom evicts copies until the demand is placed, or else sees to it that enough is being
// spilled: then room is coming.
func (c *Core) makeRoom(d *demand) (placed, coming bool) {
	need := alloc.Rounded(d.need)
	if c.potential() < need {
		return false, false
	}
	for c.second.head != nil {
		c.counts.Evictions++
		c.evict(c.second.head)
		if c.place(d) {
			return true, false
		}
		if d.held {
			return false, true
		}
	}
	free := c.freeBytes()
	missing := uint64(1) // enough is free, in parts too small
	if need > free {
		missing = need - free
	}
	c.spill(missing, true)
	return false, c.spills > 0 || (c.cold.n > 0 && c.canSpill())
}

// trim asks for what is no longer used, and spills, while the store is above its thresholds.
func (c *Core) trim() {
	used := c.alloc.Used() - c.second.bytes
	if used > c.share(c.cfg.CollectThreshold) {
		c.askCollect()
	}
	if most := c.share(c.cfg.SpillThreshold); used > most {
		c.spill(used-most, false)
	}
}

// share is so much of the store.
func (c *Core) share(of float64) uint64 { return uint64(float64(c.alloc.Limit()) * of) }

func (c *Core) minSpill() uint64 { return min(c.cfg.MinSpillBytes, c.alloc.Limit()/8) }

func (c *Core) canRestore() bool { return !c.recovering && c.restores < c.cfg.MaxRestores }

// canSpill tells whether a write may be started, apart from how many are under way.
func (c *Core) canSpill() bool {
	if c.recovering {
		return false
	}
	if c.now < c.disk.retryAt {
		c.wakeAt(c.disk.retryAt)
		return false
	}
	return true
}

// spillJob is one write under way.
type spillJob struct {
	objs  []*object
	bytes uint64
}

// spill starts writes until bytes more than before are on their way out, coldest first. With urgent it
// writes what there is; else only what makes a file of its own.
func (c *Core) spill(bytes uint64, urgent bool) {
	for c.cold.n > 0 && c.spillingBytes < bytes && c.spills < c.cfg.MaxSpills && c.canSpill() {
		if !urgent && c.cold.bytes < c.minSpill() && c.cold.n < c.cfg.MaxFused {
			return
		}
		if !c.askCollect() {
			return
		}
		j := &spillJob{}
		var items []SpillItem
		for c.cold.head != nil && j.bytes < c.minSpill() && len(items) < c.cfg.MaxFused {
			o := c.cold.head
			c.cold.remove(o)
			o.spilling = true
			j.objs = append(j.objs, o)
			j.bytes += o.block.Size
			items = append(items, SpillItem{o.id, o.attempt, o.job, wire.Extent{Off: o.block.Off, Size: o.size}})
		}
		c.spills++
		c.spillingBytes += j.bytes
		c.emit(SpillWrite{Job: c.newJob(j), Items: items})
	}
}

// askCollect asks clients to drop handles they no longer use before anything is written to
// disk; false while they are given time for it.
func (c *Core) askCollect() bool {
	if c.now < c.spillAt {
		c.wakeAt(c.spillAt)
		return false
	}
	if len(c.clients) == 0 || (c.collected != 0 && c.now-c.collected < int64(c.cfg.CollectEvery)) {
		return true
	}
	c.collect()
	if c.spillAt = c.after(c.cfg.CollectWait); c.spillAt > c.now {
		c.wakeAt(c.spillAt)
		return false
	}
	return true
}

func (c *Core) spillDone(e SpillDone) {
	j, ok := takeJob[*spillJob](c, e.Job)
	if !ok {
		if len(e.Locs) > 0 {
			c.emit(SpillRemove{e.Locs}) // written for an earlier core, which is no more
		}
		return
	}
	c.spills--
	c.spillingBytes -= j.bytes
	if e.Err == nil && len(e.Locs) != len(j.objs) {
		e.Err = errs.New(errs.CodeUnknown, "%d locations for %d objects", len(e.Locs), len(j.objs))
	}
	if e.Err != nil {
		c.spillFailed(j, e.Err)
		return
	}
	c.disk, c.drain.fileErr = diskState{}, nil
	c.letGo()
	c.counts.Spills++
	for i, o := range j.objs {
		o.spilling = false
		o.spilled, o.loc = true, e.Locs[i]
		c.counts.SpilledObjects++
		c.counts.SpilledBytes += o.size
		if o.gone || o.pinned() {
			c.record(o)
		} else {
			c.evict(o)
		}
		c.settle(o)
	}
}

func (c *Core) spillFailed(j *spillJob, err error) {
	if c.disk.err == nil {
		c.disk.first = c.now
	}
	c.disk.err = err
	c.disk.retryAt = c.after(c.cfg.RetrySpill << min(c.disk.fails, 5))
	c.disk.fails++
	c.counts.SpillErrors++
	c.wakeAt(c.disk.retryAt)
	c.log("objects cannot be spilled: every spill directory is full, missing or failing", err)
	for _, o := range j.objs {
		o.spilling = false
		c.settle(o)
	}
}

// giveUp ends a demand for which no room can be had anywhere.
func (c *Core) giveUp(d *demand, err *errs.Error) {
	switch {
	case d.pack != nil:
		c.dropPack(d)
	case d.o != nil:
		c.failRestore(d, err)
		c.settle(d.o)
	default:
		c.refuseDemand(d, err)
	}
	c.counts.GaveUp++
}

func (c *Core) sortedClients() []ids.ClientID { return sortedKeys(c.clients) }
