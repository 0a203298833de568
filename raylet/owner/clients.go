package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

func (c *Core) client(id ids.ClientID) *clientRec {
	if cl := c.lastClient; cl != nil && cl.id == id {
		return cl
	}
	cl := c.clients[id]
	if cl != nil {
		c.lastClient = cl
	}
	return cl
}

func (c *Core) addClient(id ids.ClientID, role wire.Role) *clientRec {
	cl := &clientRec{id: id, role: role}
	c.clients[id] = cl
	c.lastClient = nil
	return cl
}

func (c *Core) clientJoined(ev ClientJoined) {
	cl := c.clients[ev.Client]
	if cl == nil || cl.gone && len(cl.leases) == 0 { // of one that is gone, the handles are being taken
		cl = c.addClient(ev.Client, ev.Role)
	}
	if cl.joined {
		return
	}
	cl.joined, cl.role, cl.guest = true, ev.Role, ev.Guest
	if ev.Role == wire.RoleDriver {
		c.sweepAll() // of the last driver: what this one submits is not to be cancelled
		c.drivers++
		c.orphan = c.ended
	}
	if c.cfg.CreditWindow > 0 {
		c.toClient(cl, &wire.Credit{Bytes: c.cfg.CreditWindow})
	}
}

// clientGone drops a client's handles and, of a worker, what ran on it.
func (c *Core) clientGone(ev ClientGone) {
	cl := c.clients[ev.Client]
	if cl == nil || cl.gone {
		return
	}
	cl.gone = true
	c.dropUnread(cl)
	if cl.lostErr == nil {
		cl.lostErr = ev.Err
	}
	if cl.role == wire.RoleDriver && cl.joined {
		if c.drivers--; c.drivers == 0 && c.pause == nil {
			c.endJob(ev.Err)
		}
	}
	if !c.ended { // else what it holds goes with the job
		c.startSweep(cl)
	}
	c.callerGone(cl)
	c.foreignWorkerGone(cl)
	if len(cl.leases) > 0 {
		c.workerLost(cl)
	}
	c.maybeForget(cl)
}

// dropHandles takes every handle a client has, at once: of one that says what it holds. One that
// is gone is swept. Either looks at every object: clients end seldom, and a set of handles for
// each would cost every task.
func (c *Core) dropHandles(cl *clientRec) {
	if cl.handles > 0 {
		c.eachObject(func(o *objRec) { c.dropHandle(cl, o) })
	}
}

func (c *Core) dropHandle(cl *clientRec, o *objRec) {
	o.ungetAll(cl)
	c.takeHandle(cl, o)
}

// eachObject calls f for every object there is a record of.
func (c *Core) eachObject(f func(*objRec)) {
	c.tasks.eachTask(func(t *taskRec) { t.eachReturn(f) })
	c.puts.each(f)
	for _, o := range c.strays {
		f(o)
	}
}

func (t *taskRec) eachReturn(f func(*objRec)) {
	if t.nret == wire.Streaming {
		t.x.stream.eachItem(f)
		return
	}
	for i := range uint32(max(t.nret, 0)) {
		f(t.ret(i))
	}
}

// maybeForget removes a client that is gone, or of which only a lease was known, and that has no lease to settle.
func (c *Core) maybeForget(cl *clientRec) {
	if (cl.gone || !cl.joined) && len(cl.leases) == 0 && cl.handles == 0 {
		if cl.settle != nil {
			c.timers.remove(cl.settle)
			cl.settle = nil
		}
		if c.clients[cl.id] == cl {
			delete(c.clients, cl.id)
		}
		if c.lastClient == cl {
			c.lastClient = nil
		}
	}
}

// spend counts what a client's messages took of its credit, to give it back.
func (c *Core) spend(cl *clientRec, bytes int64) {
	if cl.used == 0 {
		c.creditors = append(c.creditors, cl)
	}
	cl.used += bytes
}

// flushCredit gives credit back, in steps of an eighth of the window.
func (c *Core) flushCredit() {
	keep := c.creditors[:0]
	for _, cl := range c.creditors {
		if cl.used < c.cfg.CreditWindow/8 && !cl.gone {
			keep = append(keep, cl)
			continue
		}
		c.toClient(cl, &wire.Credit{Bytes: cl.used})
		cl.used = 0
	}
	clear(c.creditors[len(keep):])
	c.creditors = keep
}

// workerName is how errors call a worker.
func (cl *clientRec) workerName() string { return "worker " + cl.id.String() }

func (cl *clientRec) deathCause() *errs.Error {
	if cl.lostErr != nil {
		return cl.lostErr
	}
	return errs.New(errs.CodeWorkerCrashed, "the connection of %s ended", cl.workerName())
}
