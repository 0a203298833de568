package jobs

import (
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/wire"
)

// join lets a client in to its job. A restored job whose driver it is goes on with it.
func (c *Core) join(m Join) {
	j := c.jobs[m.Job]
	switch {
	case j == nil:
		c.answer(m.Ask, c.errOver(m.Job))
		return
	case c.isOutrun(m.Client, j):
		c.answer(m.Ask, errAgain())
		return
	case m.Nth > 0 && j.orphan:
		c.answer(m.Ask, c.errOrphan(m.Job))
		return
	case m.Nth == j.coming:
		j.coming = 0
	}
	c.letIn(m.Ask, m.Client)
	if m.Role == wire.RoleDriver && j.waits {
		j.waits = false
		c.emit(Resume{Job: m.Job})
	}
	c.answer(m.Ask, nil)
	c.nextReturn(j)
}

// isOutrun tells whether another return of the same driver was let in before it: the core that had let it come back is gone.
func (c *Core) isOutrun(cl Client, j *job) bool {
	in := c.clients[cl.ID]
	return in != nil && in.Nth != cl.Nth || cl.Nth > 0 && j.coming != 0 && j.coming != cl.Nth
}

func (c *Core) letIn(a Ask, cl Client) {
	c.clients[cl.ID], c.mapped[cl.ID] = &cl, cl.Nth
	c.emit(LetIn{Ask: a, Client: cl.ID, Job: cl.Job})
	c.introduce(&cl, cl.Job)
}

// introduce makes a client known to a job's owner, before its first message.
func (c *Core) introduce(cl *Client, id ids.JobID) {
	if c.jobs[id] == nil || slices.Contains(cl.Knows, id) {
		return
	}
	cl.Knows = append(cl.Knows, id)
	c.emit(Introduce{Job: id, ClientJoined: owner.ClientJoined{Client: cl.ID, Role: cl.Role, Guest: cl.Job != id, Straight: cl.Straight}})
}

func (c *Core) guest(m Guest) {
	if cl := c.clients[m.Client]; cl != nil {
		c.introduce(cl, m.Job)
	}
	c.answer(m.Ask, nil)
}

// admit lets a worker in that the pool knows. One that did not wait for that word is gone, as the pool has yet to hear.
func (c *Core) admit(m Admit) {
	if a, waits := c.arrivals[m.Client]; waits {
		delete(c.arrivals, m.Client)
		c.letIn(a.Ask, Client{ID: m.Client, Role: wire.RoleWorker, Job: m.Job, Apart: true, Straight: a.Straight})
		c.answer(a.Ask, nil)
	} else {
		c.emit(ToRaylet{pool.Disconnected{Client: m.Client}})
	}
	c.answer(m.Ask, nil)
}

func (c *Core) refuse(m Refuse) {
	if a, waits := c.arrivals[m.Client]; waits {
		delete(c.arrivals, m.Client)
		c.answer(a.Ask, m.Err)
	} else if c.clients[m.Client] != nil {
		c.emit(Expel(m))
	}
}

func (c *Core) gaveUp(m GaveUp) {
	if a, waits := c.arrivals[m.Client]; waits {
		delete(c.arrivals, m.Client)
		c.answer(a.Ask, m.Err)
	}
}

// gone tells everyone who waits for something of a client. What is left of a driver's job does not wait for it after a restart of the node, though its
// process may go on.
func (c *Core) gone(m Gone) {
	cl := c.clients[m.Client]
	if cl == nil || cl.Nth != m.Nth {
		return
	}
	delete(c.clients, m.Client)
	j := c.jobs[cl.Job]
	if cl.Role == wire.RoleDriver && j != nil {
		c.left(cl.Job, j)
	}
	c.emit(TellGone{m.Client, cl.Knows, m.Err})
	if cl.Role == wire.RoleWorker && cl.Apart {
		c.emit(WorkerGone{m.Client})
	}
}

// left ends a job for its driver. One whose connection broke does not come back to what is left of it: all that it waits for has been given up.
func (c *Core) left(id ids.JobID, j *job) {
	j.left = true
	c.emit(ForgetDriver{id})
	for _, m := range j.back {
		c.answer(m.Ask, c.errOver(id))
	}
	j.back = nil
}

// unread lets the store have what a session had pinned, unless a later session of its client has it.
func (c *Core) unread(m Unread) {
	if last, ok := c.mapped[m.Client]; ok && last != m.Nth {
		return
	}
	delete(c.mapped, m.Client)
	c.emit(ToStore{objectstore.ClientGone{Client: m.Client}})
}
