package world

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/internal/node/member"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/wire"
)

// session is a client as its node knows it, for one connection.
type session struct {
	n      *Node
	id     ids.ClientID
	role   wire.Role
	job    ids.JobID
	pid    int32
	nth    int
	conn   *conn
	met    []ids.JobID
	asks   map[uint64]ids.JobID
	why    *errs.Error // it has left
	parted bool        // it has said goodbye
	member *part[member.Event, member.Effect]
	over   bool
	away   bool // it is a worker of another node
}

func (n *Node) newSession(id ids.ClientID, role wire.Role, job ids.JobID, c *conn) *session {
	s := &session{n: n, id: id, role: role, job: job, pid: c.proc.pid, conn: c}
	c.session = s
	return s
}

func (s *session) client() jobs.Client {
	return jobs.Client{ID: s.id, Role: s.role, Job: s.job, Nth: s.nth, Apart: true, Knows: slices.Clone(s.met)}
}

func (s *session) joined(job ids.JobID) owner.ClientJoined {
	return owner.ClientJoined{Client: s.id, Role: s.role, Guest: s.job != job}
}

func (s *session) meet(job ids.JobID) {
	if s != nil && !slices.Contains(s.met, job) {
		s.met = append(s.met, job)
	}
}

// begin makes the client's own component: it tells, once each and in this order, that the client has left, and that it reads no more.
func (s *session) begin() {
	s.member = &part[member.Event, member.Effect]{do: s.do}
	s.member.build = func(int) (core[member.Event, member.Effect], []member.Event) {
		if s.why != nil {
			return &member.Core{}, []member.Event{member.Watch, member.Leaves}
		}
		return &member.Core{}, []member.Event{member.Watch}
	}
	startPart(s.n, kindMember, "client/"+s.id.String(), s.member)
}

func (s *session) do(e member.Effect) {
	j := s.n.jobs
	switch e {
	case member.AwaitExit:
		life := s.n.life
		s.conn.proc.watch(0, func() {
			if s.n.life == life && !s.over {
				s.member.box.put(member.Exited)
			}
		})
	case member.EndReading: // it ends by itself: no other process has its end
	case member.TellPeers:
		j.box.put(jobs.Gone{Client: s.id, Nth: s.nth, Err: s.why})
	case member.DropPins:
		j.box.put(jobs.Unread{Client: s.id, Nth: s.nth})
	case member.Stop:
		s.over = true
		s.member.stop()
	}
}

// leave ends the session, once.
func (s *session) leave(why *errs.Error) {
	if s == nil || s.why != nil {
		return
	}
	if why == nil {
		why = errs.New(errs.CodeDisconnected, "client %v is gone", s.id)
	}
	s.why = why
	if s.n.sessions[s.id] == s {
		delete(s.n.sessions, s.id)
	}
	if s.member != nil {
		s.member.box.put(member.Leaves)
	}
}

// hungUp is the end of the connection.
func (s *session) hungUp(why *errs.Error) {
	s.leave(why)
	if s.parted && s.member != nil && !s.over {
		s.member.box.put(member.Done)
	}
}

// IsLocal is false: every client of a simulated node has a process of its own.
func (s *session) IsLocal() bool { return false }

// AskedBy is the job whose owner an answer is for.
func (s *session) AskedBy(m *wire.Holdings) ids.JobID {
	if job, ok := s.asks[m.Epoch]; ok && m.Component == wire.ComponentOwner {
		return job
	}
	return s.job
}

// asked notes that the owner of another job asks the client what it holds.
func (s *session) asked(job ids.JobID, epoch uint64) {
	if s.asks == nil {
		s.asks = make(map[uint64]ids.JobID)
	}
	s.asks[epoch] = job
}

// send queues a message for a client; one that is gone gets nothing.
func (n *Node) send(id ids.ClientID, m any) {
	if s := n.sessions[id]; s != nil {
		s.put(m)
	}
}

// put sends what its node has for the client, on whichever node that is.
func (s *session) put(m any) {
	if !s.away {
		s.conn.put(m)
		return
	}
	if r, ok := m.(receipt); ok { // what was before it is on its way
		r.to.put(r.ev)
		return
	}
	s.n.links.say(s.id.Home(), &internode.ToClients{Job: s.job, Items: []internode.ClientMsgs{{Client: s.id, Msgs: []wire.Msg{m.(wire.Msg)}}}})
}

// tellGone tells the owners that knew a client that it is gone.
func (n *Node) tellGone(e jobs.TellGone) {
	for _, job := range e.Jobs {
		n.toOwner(job, owner.ClientGone{Client: e.Client, Err: e.Err})
	}
}
