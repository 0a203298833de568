package objectstore

import (
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
	for o := range c.pinned {
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
			delete(c.pinned, o)
		}
		c.relist(o)
	}
	for _, g := range c.grants {
		if g.client == client {
			c.dropGrant(g)
		}
	}
	for _, d := range c.waiting {
		if d.client == client {
			c.withdraw(d)
		}
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
	for _, l := range c.sets {
		for _, s := range slices.Clone(l) {
			if s.req.Worker == client {
				c.dropSet(s)
			}
		}
	}
	c.declared(client)
	delete(c.jobOf, client)
	c.freeOrphanCopies()
}
