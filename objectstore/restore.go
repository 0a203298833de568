package objectstore

import (
	"errors"

	"mobula/internal/errs"
	"mobula/objectstore/alloc"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// want asks for an object's bytes in memory. A get moves it before what only arguments need.
func (c *Core) want(o *object, l lane) *demand {
	d := o.restore
	if d == nil {
		d = &demand{lane: l, need: o.size, o: o}
		o.restore = d
		c.enqueue(d)
	} else if l == laneGet && d.lane == laneArgs {
		d.lane = laneGet
		if d.stage == stageWaiting {
			c.queues[laneGet].Push(d)
		}
	}
	return d
}

// unwanted withdraws a restore that nobody waits for any more.
func (c *Core) unwanted(o *object) {
	d := o.restore
	if d == nil || len(d.gets) > 0 || len(d.sets) > 0 {
		return
	}
	if d.stage == stageWaiting {
		d.stage = stageDone
		o.restore = nil
		c.settle(o)
	}
}

// eachRestore visits every restore that waits or is under way.
func (c *Core) eachRestore(visit func(*demand)) {
	var all []*demand
	collect := func(d *demand) {
		if d.o != nil {
			all = append(all, d)
		}
	}
	c.queues[laneGet].each(laneGet, collect)
	c.queues[laneArgs].each(laneArgs, collect)
	for _, j := range c.jobs {
		switch j := j.(type) {
		case *demand:
			collect(j)
		case *reservation:
			if j.d != nil {
				collect(j.d)
			}
		}
	}
	for _, d := range all {
		visit(d)
	}
}

// read starts a restore that has its room.
func (c *Core) read(d *demand) {
	d.stage = stageReading
	c.restores++
	c.record(d.o) // so that a new core does not use the extent while it is written
	c.readInto(d, c.newJob(d))
}

func (c *Core) restoreDone(e RestoreDone) {
	d, ok := takeJob[*demand](c, e.Job)
	if !ok {
		return
	}
	c.restores--
	o := d.o
	fromMemory := c.copied(d)
	if d.cancelled {
		o.filling = nil
		c.giveBack(d.block, d.file, o.size, d.path)
		if c.settle(o); !o.dead { // copies for other jobs keep it
			c.record(o)
		}
		return
	}
	if e.Err != nil {
		lasting := errors.Is(e.Err, spill.ErrCorrupt) || errors.Is(e.Err, spill.ErrMissing)
		if d.tries++; !lasting && d.tries < maxTries {
			c.log("a spilled object could not be read, trying again", e.Err)
			c.readLater(d)
			return
		}
		if o.of != nil {
			c.copyFailed(d, fromMemory, e.Err)
			return
		}
		c.giveBack(d.block, d.file, o.size, d.path)
		d.stage = stageWaiting
		c.failRestore(d, c.unreadable(o, e.Err))
		c.forget(o)
		return
	}
	d.stage = stageDone
	o.resident, o.block, o.file, o.path = true, d.block, d.file, d.path
	if o.of != nil {
		c.counts.CopiesMade++
		c.counts.CopiedBytes += o.size
	} else {
		c.counts.Restores++
		c.counts.RestoredBytes += o.size
	}
	c.record(o)
	for _, g := range d.gets {
		c.emit(Forget{NoteKey{N: g.note}})
		c.answerGet(g.client, g.id, ref{o, g.sub}, g.refs)
	}
	for _, s := range d.sets {
		if s.missing--; s.missing == 0 && !s.answered {
			c.answerSet(s)
		}
	}
	o.restore = nil // not before all who waited have their pins
	c.settle(o)
}

// unreadable is the error of an object whose spilled copy is lost.
func (c *Core) unreadable(o *object, cause error) *errs.Error {
	err := errs.New(errs.CodeObjectLost, "object %v: its spilled copy cannot be read: %v", o.id, cause)
	err.Cause = []*errs.Error{errs.From(cause)}
	c.log("a spilled object is lost", err)
	c.counts.Lost++
	return err
}

// failRestore ends a restore for everyone who waits for it. If something is under way for
// it, its room is given back when that ends.
func (c *Core) failRestore(d *demand, err *errs.Error) {
	o := d.o
	d.cancelled = d.stage != stageWaiting
	if d.stage == stageReading {
		o.filling = d
		c.record(o)
	}
	d.stage = stageDone
	o.restore = nil
	for _, g := range d.gets {
		c.emit(Forget{NoteKey{N: g.note}})
		if errors.Is(err, errs.ErrObjectLost) {
			c.emit(ToOwner{g.job, Lost{ID: g.id, Client: g.client, Err: err}})
		} else {
			c.toClient(g.client, &wire.Resolved{ID: g.id, Fetch: true, Result: wire.Result{Kind: wire.ResultError, Err: err}})
		}
	}
	sets := d.sets
	d.gets, d.sets = nil, nil
	for _, s := range sets {
		if !errors.Is(err, errs.ErrObjectLost) {
			c.noRoom(s, err)
			continue
		}
		for i, r := range s.objs {
			if r.o == o {
				c.failSet(s, s.req.IDs[i], err)
				break
			}
		}
	}
}

// forget drops an object that cannot be read any more; nothing waits for it but copies for other jobs. Those that are pinned stay.
func (c *Core) forget(o *object) {
	c.failCopies(o, lostError(o.id, "has no spilled copy any more"))
	for id, r := range c.idsOf(o) {
		delete(c.objs, id)
		if len(o.copies) > 0 {
			c.orphan(id, r)
		}
	}
	o.gone = true
	c.settle(o)
}

// fallbackDone gives the escape's file to the demand that waited for it.
func (c *Core) fallbackDone(e FallbackDone) {
	d, ok := takeJob[*demand](c, e.Job)
	if !ok {
		if e.Err == nil {
			c.dropFile(e.File, e.Path) // of an earlier core
		}
		return
	}
	c.fallbacks--
	if e.Err != nil || d.cancelled {
		c.fallbackBytes -= d.need
		if e.Err == nil {
			c.dropFile(e.File, e.Path)
		}
		if !d.cancelled {
			c.noFile(d, e.Err)
		}
		return
	}
	c.drain.fileErr = nil
	c.counts.Fallbacks++
	c.log("an object is served from a file outside the store: nothing in it can be unpinned", nil)
	d.block, d.file, d.path = alloc.Block{}, e.File, e.Path
	c.placed(d)
}
