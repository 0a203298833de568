package objectstore

import (
	"fmt"
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
		c.dropAttempt(grantKey{e.ID, e.Attempt}, e.Client)
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
	case AbandonArgs:
		c.abandonArgs(e)
	case KeepArgs:
		c.keepArgs(e)
	case ArgsIdle:
		c.argsIdle(e)
	case GoOn:
		c.goOn(lenderKey{e.Task, e.Client})
	case lentCPU:
		c.lentBefore(e)
	case Free:
		for _, id := range e.IDs {
			c.free(id)
		}
	case DropJob:
		c.dropJob(e.Job)
	case JobOpened:
		c.jobOpened(e.Job)
	case ListObjects:
		c.listObjects(e)
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
			c.files.told(e.Sizes)
			c.emit(SpillReady{})
		}
	case Inspect:
		e.Do(c)
	case recalled:
		at := len(c.out)
		c.handle(e.Event)
		for i, f := range c.out[at:] {
			if r, is := f.(Remember); is {
				r.Place = e.Key
				c.out[at+i] = r
			}
		}
		if !slices.ContainsFunc(c.out[at:], func(f Effect) bool { return about(f, e.Key) }) {
			c.emit(Forget{e.Key}) // last: a core that is lost before leaves it to the next one
		}
	case RecoverSpill:
		c.emit(e)
	case begin:
		c.begin(e)
	default:
		panic(unknown(e))
	}
}

// unknown is what an event or message has to say that the store does not take: a fault of the program, which supervision reports. It is not passed over.
func unknown(e any) string { return fmt.Sprintf("objectstore: %T is not for the store", e) }

func (c *Core) fromClient(e FromClient) {
	switch m := e.Msg.(type) {
	case *wire.Create:
		c.create(e.Client, m)
	case *wire.Abort:
		c.abort(e.Client, grantKey{m.ID, m.Attempt})
	case *wire.Unpin:
		if c.old[e.Client] == nil { // else its holdings, which are to come, leave it out: this core may have pinned the object for it once more
			c.unpin(e.Client, m.ID, m.N)
		}
	case *wire.Holdings:
		c.holdings(e.Client, m)
	default:
		panic(unknown(m))
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
	c.compact(c.oldestDemand() == nil)
	c.reserveForIndex()
	c.purgeFree()
	c.startReadahead()
	if len(c.over) > 0 {
		c.dropFiles()
	}
}

// dropJob frees everything of a job. What its tasks still read or write stays until they are done or their workers are gone.
func (c *Core) dropJob(job ids.JobID) {
	if _, known := c.over[job]; !known {
		c.note++
		c.over[job] = NoteKey{N: c.note}
		c.keepNote(c.over[job], DropJob{job}) // a new core lets the file go too
	}
	c.dropCopiesOf(job)
	var all []ids.ObjectID
	for id := range c.objs {
		if id.Job() == job {
			all = append(all, id)
		}
	}
	for id := range c.packing {
		if id.Job() == job {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, ids.ObjectID.Compare)
	for _, id := range all {
		c.free(id)
	}
	for _, x := range c.sortedExports() {
		if x.ID.Job() == job && !x.r.o.resident { // it would be restored to a file that may go at any time
			c.endExport(x.key(), lostError(x.ID, "belongs to a job that is over"))
		}
	}
	for _, k := range c.grantKeys(func(g *grant) bool { return g.id.Job() == job }) {
		if g := c.grants[k]; g.left {
			c.dropGrant(g)
		} else {
			g.doomed = true
		}
	}
	for _, k := range c.waitingKeys(func(d *demand) bool { return d.id.Job() == job }) {
		c.withdraw(c.waiting[k])
	}
	c.endSets(job)
	c.dropLenders(func(l *lender) bool { return l.job == job })
	for t := range c.idle {
		if t.Job() == job {
			delete(c.idle, t)
		}
	}
}
