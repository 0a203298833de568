package node

import (
	"context"
	"fmt"
	"os"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/node/jobs"
	"mobula/internal/node/member"
	"mobula/internal/node/outlet"
	"mobula/internal/pidfd"
	"mobula/wire"
)

// open adds the drivers' supervisor to the tree.
func (m *members) open() (err error) {
	m.drivers, err = actors.Supervisor(m.sys, "drivers", "drivers", actors.Policy{MaxRestarts: 10, Window: time.Minute})
	return err
}

// start adds the client's component to the tree.
func (m *members) start(s *session) error {
	var parent actors.Parent = m.drivers
	kind := "driver"
	if s.role == wire.RoleWorker {
		parent, kind = m.raylet.sup, "worker"
	}
	name := kind + "/" + s.id.String()
	if s.nth > 0 {
		name += fmt.Sprintf(".%d", s.nth) // the one before may still wait for the process
	}
	ref, err := actors.Spawn(parent, actors.Spec[member.Event, member.Effect]{
		Kind: kind, Name: name,
		New: func(actors.Start) (actors.Core[member.Event, member.Effect], []member.Event, error) {
			if s.hasLeft() { // what was told is not told again: the session knows
				return &member.Core{}, []member.Event{member.Watch, member.Leaves}, nil
			}
			return &member.Core{}, []member.Event{member.Watch}, nil
		},
		Do:      func(self *actors.Ref[member.Event], e member.Effect) { m.do(s, self, e) },
		Mailbox: 16,
		Policy:  ofOneJob,
	})
	if err != nil {
		return err
	}
	s.ref = ref
	return nil
}

func (m *members) do(s *session, self *actors.Ref[member.Event], e member.Effect) {
	switch e {
	case member.AwaitExit:
		if s.pid == int32(os.Getpid()) {
			return
		}
		m.work.Go(func() {
			ctx, cancel := context.WithCancel(m.life)
			defer cancel()
			defer context.AfterFunc(s.done, cancel)()
			if pidfd.Until(ctx, int(s.pid)) {
				self.Deliver(member.Exited)
			}
		})
	case member.EndReading:
		if out, ok := s.Outlet.(*outlet.Socket); ok {
			out.EndReading()
		}
	case member.TellPeers:
		m.jobs.ref.Deliver(jobs.Gone{Client: s.id, Nth: s.nth, Err: s.why()})
		if s.pid == int32(os.Getpid()) { // the process goes on, and nothing of the client's
			self.Deliver(member.Exited)
		}
	case member.DropPins:
		m.jobs.ref.Deliver(jobs.Unread{Client: s.id, Nth: s.nth})
	case member.Stop:
		s.finish()
		self.BeginStop()
	}
}

// join lets a client in: it is known to the store, and to its job's owner.
func (m *members) join(s *session) error {
	if s.role == wire.RoleTool { // of which nobody needs to know
		m.sessions.add(s)
		return nil
	}
	err := m.jobs.ask(s, func(a jobs.Ask) jobs.Event { return jobs.Join{Ask: a, Client: s.client()} })
	if err != nil {
		m.notLetIn(s, err)
	}
	return err
}

// notLetIn ends what there is of a client that was not let in. A core that was lost may have let it in before; and nobody else ever comes to a driver's new job.
func (m *members) notLetIn(s *session, err error) {
	m.leave(s, errs.From(err))
	if s.role != wire.RoleDriver {
		return
	}
	m.jobs.ref.Deliver(jobs.Withdrawn{Job: s.job, Nth: s.nth})
	if s.nth == 0 {
		m.jobs.ref.Deliver(jobs.Over{Job: s.job})
	}
}

// part is a client's goodbye: its session ends, and its connection stays for the pins that it gives back. What it reads until
// then stays what it is; the end of the connection says that it reads nothing any more.
func (m *members) part(s *session, bye *wire.Bye) {
	why := bye.Err
	if why == nil {
		why = errs.New(errs.CodeDisconnected, "process %d has left the node", s.pid)
	}
	s.parted.Store(true)
	m.leave(s, why)
}

// hungUp ends a session with its connection. closed: the client closed it, perhaps before it had read everything.
func (m *members) hungUp(s *session, why *errs.Error, closed bool) {
	m.leave(s, why)
	if closed && s.parted.Load() && s.ref != nil {
		s.ref.Deliver(member.Done)
	}
}

// leave ends a client's session, once.
func (m *members) leave(s *session, err *errs.Error) {
	if !s.leave(err) {
		return
	}
	m.sessions.remove(s)
	if s.ref != nil {
		s.ref.Deliver(member.Leaves)
	}
}
