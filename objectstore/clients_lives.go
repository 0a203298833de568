package objectstore

import (
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore/record"
	"mobula/wire"
)

// clientJoined makes a client known; one from before a restart that has not said what it holds is asked.
func (c *Core) clientJoined(e ClientJoined) {
	o := c.old[e.Client]
	if _, ok := c.clients.byID[e.Client]; !ok {
		slot := uint32(0)
		if o != nil {
			slot = o.slot
		} else {
			slot = c.newSlot()
		}
		c.clients.byID[e.Client] = slot
		c.jobOf[e.Client] = e.Job
		c.emit(WriteRecord{slot, record.Record{State: record.StateClient, Client: e.Client, PID: e.PID, Job: e.Job, Payload: []byte{}}})
	}
	if o != nil { // even if it was asked: it may have been away
		c.toClient(e.Client, &wire.Resync{Component: wire.ComponentStore, Epoch: c.epoch})
	}
}

// clientGone drops all that a dead client held or waited for.
func (c *Core) clientGone(client ids.ClientID) {
	if slot, ok := c.clients.byID[client]; ok {
		delete(c.clients.byID, client)
		c.clearSlot(slot)
	} else if o := c.old[client]; o != nil {
		c.clearSlot(o.slot)
	}
	for _, o := range slices.SortedFunc(maps.Keys(c.pinned), compareObjects) {
		for i := 0; i < len(o.pins); {
			p := o.pins[i]
			if p.client != client {
				i++
				continue
			}
			o.pins = slices.Delete(o.pins, i, i+1)
			if o.values != nil {
				c.dropFreedValue(p.id, ref{o, p.sub})
			}
		}
		if len(o.pins) == 0 {
			c.unviewed(o)
		}
		c.relist(o)
	}
	c.leave(client)
	for _, k := range c.waitingKeys(func(d *demand) bool { return d.client == client }) {
		c.withdraw(c.waiting[k])
	}
	c.eachRestore(func(d *demand) {
		d.gets = slices.DeleteFunc(d.gets, func(g getter) bool {
			if g.client == client {
				c.emit(Forget{NoteKey{N: g.note}})
			}
			return g.client == client
		})
		c.cancelRestore(d.o)
	})
	c.dropSets(func(s *argSet) bool { return s.req.Worker == client })
	c.dropLenders(func(l *lender) bool { return l.client == client })
	c.declared(client)
	delete(c.jobOf, client)
	c.freeOrphanBlocks()
}
