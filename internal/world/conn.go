package world

import (
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/objectstore"
	"mobula/raylet/pool"
	"mobula/wire"
)

// conn is a connection of a process to its node.
type conn struct {
	proc     *process
	n        *Node
	up       *box // to the node
	down     *box // to the process
	session  *session
	early    []any // sent before the welcome; it comes first
	opened   bool  // the welcome was sent
	welcomed bool  // the process has it
	ended    bool  // of the process nothing more comes
	broken   bool  // of the node nothing more comes
}

// What goes over a connection besides messages.
type (
	hello   struct{}             // opens it
	hangUp  struct{ why string } // the process' end of it is closed
	welcome struct {
		session *session
		file    []byte // of its job
	}
	refusal struct{ err *errs.Error }
	closed  struct{} // the node's end of it is closed
)

// dial connects a process to its node. A node that is not up refuses at once.
func (p *process) dial() {
	n := p.n
	c := &conn{proc: p, n: n}
	p.conn = c
	c.down = p.w.newBox("to "+p.name, func(ev any) {
		if p.conn == c {
			p.receive(ev)
		}
	})
	if !n.up {
		c.down.put(refusal{refused(n)})
		return
	}
	c.up = n.box("from "+p.name, c.take)
	c.up.put(hello{})
}

func (c *conn) take(ev any) {
	switch ev := ev.(type) {
	case hello:
		if c.proc.role == wire.RoleDriver {
			c.n.welcomeDriver(c)
		} else {
			c.n.welcomeWorker(c)
		}
	case []wire.Msg:
		if !c.ended { // else it was sent by a process that had yet to hear that its connection broke
			c.n.route(c.session, ev)
		}
	case hangUp:
		if c.ended = true; c.opened {
			c.session.hungUp(errs.New(errs.CodeDisconnected, "process %d: %s", c.proc.pid, ev.why))
		}
	}
}

// put sends what the node has for the process.
func (c *conn) put(ev any) {
	if !c.opened {
		c.early = append(c.early, ev)
		return
	}
	c.down.put(ev)
}

// open ends the handshake, with the file of the client's job: the store gives it.
func (c *conn) open() {
	c.n.store.box.put(objectstore.Inspect{Do: func(*objectstore.Core) {
		if c.opened {
			return // by the core before
		}
		file, err := c.n.memory.segment(c.session.job)
		if err != nil {
			c.session.leave(err)
			c.refuse(err)
			return
		}
		c.welcome(file)
	}})
}

func (c *conn) welcome(file []byte) {
	c.opened = true
	c.down.put(welcome{c.session, file})
	for _, ev := range c.early {
		c.down.put(ev)
	}
	c.early = nil
	if c.ended {
		c.session.hungUp(errs.New(errs.CodeDisconnected, "process %d closed its connection", c.proc.pid))
	}
}

func (c *conn) refuse(err *errs.Error) { c.down.put(refusal{err}) }

// nodeLost is the end of the node, or of its end of the connection: of what it had sent some arrives.
func (c *conn) nodeLost() {
	if c.up == nil || c.broken {
		return
	}
	c.broken = true
	c.lose(c.down)
	c.down.put(closed{})
}

// processLost is the end of the process, or of its end of the connection: of what it had sent some arrives, or all.
func (c *conn) processLost(why string, all bool) {
	c.down.close()
	if c.up == nil || c.broken {
		return
	}
	if !all {
		c.lose(c.up)
	}
	c.up.put(hangUp{why})
}

// cut breaks the connection while both live.
func (c *conn) cut() {
	c.lose(c.up)
	c.up.put(hangUp{"the connection broke"})
	c.nodeLost()
}

// lose leaves some of what is on its way, from the front.
func (c *conn) lose(b *box) { b.cutOff(c.proc.w.rng.IntN(b.len() + 1)) }

// welcomeDriver lets a driver in, to a new job or back to its own.
func (n *Node) welcomeDriver(c *conn) {
	p := c.proc
	if p.job != 0 {
		n.jobs.returns++
		ev := jobs.Return{Job: p.job, Client: p.id, Nth: n.jobs.returns, Proved: true}
		n.jobs.ask(nil, func(a jobs.Ask) jobs.Event { ev.Ask = a; return ev }, func(err *errs.Error) {
			if err != nil {
				n.jobs.box.put(jobs.Withdrawn{Job: ev.Job, Nth: ev.Nth})
				c.refuse(err)
				return
			}
			s := n.newSession(p.id, wire.RoleDriver, p.job, c)
			s.nth = ev.Nth
			n.admitDriver(c, s)
		})
		return
	}
	id, job := n.numbers.nextClient(), n.numbers.nextJob()
	o := n.startOwner(job, false)
	n.jobs.begin(o, func(a jobs.Ask) jobs.Event { return jobs.Began{Ask: a, Job: job} }, func(err *errs.Error) {
		if err != nil {
			if n.owners[job] != nil {
				n.jobs.box.put(jobs.Over{Job: job})
			} else {
				delete(n.jobs.coming, job)
				delete(n.disk.jobs, job)
				o.stop()
			}
			c.refuse(err)
			return
		}
		n.admitDriver(c, n.newSession(id, wire.RoleDriver, job, c))
	})
}

func (n *Node) admitDriver(c *conn, s *session) {
	if f := n.disk.jobs[s.job]; f != nil {
		f.driver = c.proc
	}
	n.jobs.ask(s, func(a jobs.Ask) jobs.Event { return jobs.Join{Ask: a, Client: s.client()} }, func(err *errs.Error) {
		if err != nil {
			s.leave(err)
			n.jobs.box.put(jobs.Withdrawn{Job: s.job, Nth: s.nth})
			if s.nth == 0 {
				n.jobs.box.put(jobs.Over{Job: s.job})
			}
			if n.owners[s.job] == nil {
				delete(n.disk.jobs, s.job)
			}
			c.refuse(err)
			return
		}
		n.jobs.startJob(s.job, func(err *errs.Error) {
			if err != nil {
				s.leave(err)
				c.refuse(err)
				return
			}
			c.open()
		})
	})
}

const admitTimeout = 10 * time.Second

// welcomeWorker lets a worker in, if the pool says that it is one.
func (n *Node) welcomeWorker(c *conn) {
	s := n.newSession(n.numbers.nextClient(), wire.RoleWorker, 0, c)
	life, answered := n.life, false
	n.jobs.ask(s, func(a jobs.Ask) jobs.Event { return jobs.Arrived{Ask: a, Client: s.id} }, func(err *errs.Error) {
		if answered = true; err != nil {
			s.leave(err)
			c.refuse(err)
			return
		}
		c.open()
	})
	n.raylet.box.put(pool.Registered{Client: s.id, Token: c.proc.token, PID: c.proc.pid})
	n.w.after(int64(admitTimeout), func() {
		if n.life == life && !answered {
			n.jobs.box.put(jobs.GaveUp{Client: s.id, Err: errs.New(errs.CodeRuntimeSetup, "the pool did not answer in %v", admitTimeout)})
		}
	})
}

// root is the id of a client's own, implicit task.
func (s *session) root() ids.TaskID { return ids.RootTask(s.job, uint64(s.id)) }
