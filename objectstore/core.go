package objectstore

import (
	"slices"

	"mobula/internal/ids"
	"mobula/wire"
)

// Step takes an event at a time in Unix nanoseconds. The slice is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	clear(c.out)
	c.out, c.now, c.wake = c.out[:0], now, 0
	if c.counts.Since == 0 {
		c.counts.Since = now
	}
	c.handle(ev)
	c.pump()
	c.arm()
	return c.out
}

func (c *Core) handle(ev Event) {
	switch e := ev.(type) {
	case FromClient:
		c.fromClient(e)
	case ClientJoined:
		c.clientJoined(e)
	case ClientGone:
		c.clientGone(e.Client)
	case SealObject:
		c.seal(e)
	case DropAttempt:
		c.dropAttempt(grantKey{e.ID, e.Attempt})
	case Pack:
		c.pack(e)
	case PinForGet:
		c.pinForGet(e)
	case UnpinForGet:
		c.unpinForGet(e)
	case PinArgs:
		c.pinArgs(e, false)
	case heldArgs:
		c.holdArgs(e)
	case ReadAhead:
		c.readAhead(e.IDs)
	case UnpinArgs:
		c.unpinArgs(e.Task, e.Attempt)
	case KeepArgs:
		c.keepArgs(e)
	case ArgsIdle:
		c.argsIdle(e)
	case Free:
		for _, id := range e.IDs {
			c.free(id)
		}
	case DropJob:
		c.dropJob(e.Job)
	case Located:
		c.located(e)
	case Export:
		c.export(e)
	case ExportDone:
		c.endExport(exportKey{e.To, e.Token}, nil)
	case NodeGone:
		c.nodeGone(e.Node)
	case SpillDone:
		c.spillDone(e)
	case RestoreDone:
		c.restoreDone(e)
	case ReserveDone:
		c.reserveDone(e)
	case FallbackDone:
		c.fallbackDone(e)
	case SetMemoryTarget:
		c.memoryTarget = e.Bytes
	case IndexSize:
		c.index = max(c.index, e.Bytes)
	case Tick:
		c.timer = 0
	case Drained:
		if e.Epoch == c.epoch {
			c.inFlightReadsDone()
			c.emit(SpillReady{})
		}
	case Inspect:
		e.Do(c)
	case recalled:
		c.emit(Forget{e.Key})
		c.handle(e.Event)
	case RecoverSpill:
		c.emit(e)
	case begin:
		c.begin(e)
	}
}

func (c *Core) fromClient(e FromClient) {
	switch m := e.Msg.(type) {
	case *wire.Create:
		c.create(e.Client, m)
	case *wire.Abort:
		c.abort(e.Client, grantKey{m.ID, m.Attempt})
	case *wire.Unpin:
		c.unpin(e.Client, m.ID, m.N)
	case *wire.Holdings:
		c.holdings(e.Client, m)
	}
}

// pump serves what waits, as far as there is room, and makes room for the rest.
func (c *Core) pump() {
	c.reserveForIndex()
	c.admitArgs()
	c.startReadRetries()
	for c.serve() {
	}
	c.trim()
	c.shrinkToTarget()
	c.reserveForIndex()
	c.purgeFree()
	c.startReadahead()
	if len(c.over) > 0 {
		c.dropFiles()
	}
}

// dropJob frees everything of a job. Extents that are still being written stay until their
// writer is done or gone.
func (c *Core) dropJob(job ids.JobID) {
	if _, known := c.over[job]; !known {
		c.note++
		c.over[job] = NoteKey{N: c.note}
		c.emit(Remember{c.over[job], DropJob{job}}) // a new core lets the file go too
	}
	c.dropCopiesOf(job)
	for id := range c.objs {
		if id.Job() == job {
			c.free(id)
		}
	}
	for id := range c.packing {
		if id.Job() == job {
			c.free(id)
		}
	}
	for k, g := range c.grants {
		if k.id.Job() == job {
			g.doomed = true
		}
	}
	for k, d := range c.waiting {
		if k.id.Job() == job {
			c.withdraw(d)
		}
	}
	for _, l := range c.sets {
		for _, s := range slices.Clone(l) {
			if s.req.Job == job {
				c.dropSet(s)
			}
		}
	}
	for t := range c.idle {
		if t.Job() == job {
			delete(c.idle, t)
		}
	}
}
