package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

func (c *Core) fromStore(m any) {
	switch m := m.(type) {
	case objectstore.ArgsPinned:
		c.argsPinned(m)
	case objectstore.ArgsWait:
		c.argsWait(m)
	case objectstore.ArgsRefused:
		c.argsRefused(m)
	case objectstore.CreateWaits:
		c.createWaits(m)
	case objectstore.Lost:
		c.lost(m)
	case objectstore.Packed:
		c.packed(m)
	case objectstore.Inventory:
		c.inventory(m)
	}
}

// createWaits gives the CPU of a task to others: its create waits until they let go of what fills the disk. The task goes on when the store
// has room, and its lease is closed when it has ended.
func (c *Core) createWaits(m objectstore.CreateWaits) {
	t := c.tasks.task(m.Task)
	if t == nil || t.lease == nil || t.state != task.Running || t.lease.actor != nil || !c.moveLease(t.lease, lease.Block) {
		return
	}
	c.move(t, task.Block)
	c.giveBackFetching(t.lease)
	c.toSched(sched.BlockCPU{Lease: t.lease.id})
}

// lost says that the store has no copy of an object. It is made again, or an error stands
// for it from now on; whoever had asked for it waits or gets the error.
func (c *Core) lost(m objectstore.Lost) {
	o := c.object(m.ID)
	if o != nil && o.state == object.Stored {
		switch {
		case o.flags&objForeign != 0:
			c.foreignGone(o, m)
		case !c.sealAgain(o, m.Unsealed):
			c.stats.Lost++
			c.recoverObject(o, m.Err)
		}
	}
	if t := c.tasks.task(m.Task); t != nil && t.start == m.Attempt && c.ask(t) == m.Ask && (t.state == task.PendingFetch || t.state == task.PendingStore) {
		l := t.lease
		c.unfetch(l, t)
		t.flags &^= taskPinned // all or none: nothing was pinned
		t.lease = nil
		t.start--
		c.requeue(t, true)
		c.touchLease(l)
		if l.actor == nil {
			c.touch(l.class)
		}
	}
	if cl := c.client(m.Client); cl != nil {
		c.get(cl, m.ID, true)
	}
}

// sealAgain seals an object that this owner's log has as sealed and the store as being written: the node was killed in between. The
// client that wrote it says so again when it is back, but a reader may come first. It is false where the store has no such extent.
func (c *Core) sealAgain(o *objRec, unsealed []objectstore.Unsealed) bool {
	for _, u := range unsealed {
		if u.Attempt == o.attempt {
			c.toStore(objectstore.SealObject{Client: u.Client, ID: o.id, Attempt: o.attempt, Size: o.res.Size, Meta: o.res.Value.Meta})
			return true
		}
	}
	return false
}

// recoverObject finds a way to a lost object's value: the log has packed ones, lineage makes
// others again.
func (c *Core) recoverObject(o *objRec, cause *errs.Error) {
	if o.flags&objPacked != 0 && c.unpack(o) {
		return
	}
	if c.remake(o) {
		return
	}
	err := c.cannotRemake(o)
	if cause != nil {
		err.Cause = []*errs.Error{cause}
		err.Msg += " (" + cause.Error() + ")"
	}
	c.dropInner(inside(o.res))
	c.moveObject(o, object.SetError)
	o.res = errorResult(err)
	c.holdInner(inside(o.res))
}

// inventory is what a store that was rebuilt has. What it lacks shows when it is asked for;
// what nobody owns is freed. What the store had been asked is asked again, of clients too.
func (c *Core) inventory(m objectstore.Inventory) {
	var free []ids.ObjectID
	for i := range m.Objects {
		s := &m.Objects[i]
		switch o := c.object(s.ID); {
		case o == nil || o.state == object.Freed || o.state == object.Failed:
			free = append(free, s.ID)
		case o.state == object.Inline && o.flags&objPacking == 0, o.state == object.Pending && c.unpacking(o):
			free = append(free, s.ID) // packed, and nobody told: the value is here, and its end would not be told there
		case o.state == object.Pending:
			c.toStore(objectstore.DropAttempt{ID: s.ID, Attempt: s.Attempt})
		}
	}
	if len(free) > 0 {
		c.toStore(objectstore.Free{IDs: free})
	}
	for _, l := range c.leases {
		for _, t := range l.fetching {
			c.pinAgain(t, l)
		}
	}
	for _, cl := range c.clients {
		if !cl.gone && cl.joined {
			c.toClient(cl, &wire.Resync{Component: wire.ComponentOwner})
		}
	}
}

// unpacking tells whether an object's value is on its way back from the log.
func (c *Core) unpacking(o *objRec) bool {
	for _, f := range c.fetches {
		if f.obj == o {
			return true
		}
	}
	return false
}

// ask tells a task's PinArgs from those that it withdrew, and from those of the cores before this one: whose answers come later name
// extents that are pinned no more.
func (c *Core) ask(t *taskRec) uint64 { return c.epoch<<32 | uint64(t.gen) }

// pinAgain repeats a PinArgs that the store has forgotten.
func (c *Core) pinAgain(t *taskRec, l *leaseRec) {
	c.toStore(objectstore.PinArgs{Job: c.cfg.Job, Task: t.id(), Attempt: t.start, Worker: l.worker.id, IDs: c.storedArgs(t), Ask: c.ask(t)})
}

func (c *Core) idleArgs(t *taskRec, idle bool) {
	c.toStore(objectstore.ArgsIdle{Task: t.id(), Idle: idle})
}
