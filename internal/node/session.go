package node

import (
	"context"
	"os"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/home"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/internal/node/outlet"
	"mobula/raylet/owner"
	"mobula/wire"
)

func makeSession(id ids.ClientID, role wire.Role, job ids.JobID, pid int32) *session {
	s := &session{id: id, role: role, job: job, pid: pid, root: ids.RootTask(job, uint64(id))}
	s.done, s.finish = context.WithCancel(context.Background())
	return s
}

// joined is what the owner of a job is told of it.
func (s *session) joined(job ids.JobID) owner.ClientJoined {
	return owner.ClientJoined{Client: s.id, Role: s.role, Guest: s.job != job, Straight: s.takesPart()}
}

// asked notes that the owner of another job asks the client what it holds; the answer names the epoch alone.
func (s *session) asked(job ids.JobID, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks == nil {
		s.asks = make(map[uint64]ids.JobID)
	}
	s.asks[epoch] = job
}

// AskedBy is the job whose owner an answer is for.
func (s *session) AskedBy(m *wire.Holdings) ids.JobID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if job, ok := s.asks[m.Epoch]; ok && m.Component == wire.ComponentOwner {
		return job
	}
	return s.job
}

// IsLocal tells whether the client is in this process.
func (s *session) IsLocal() bool {
	_, ok := s.Outlet.(*outlet.Local)
	return ok
}

// takesPart tells whether the client takes part in calls that go straight.
func (s *session) takesPart() bool { return s.IsLocal() || s.straight }

// passesOn tells whether messages between the client and the owner of a job of another node are not read on their way.
func (s *session) passesOn() bool { return !s.IsLocal() && s.faults == nil }

// client is what the core of jobs is told of it.
func (s *session) client() jobs.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return jobs.Client{ID: s.id, Role: s.role, Job: s.job, Nth: s.nth, Apart: s.pid != int32(os.Getpid()), Local: s.IsLocal(), Straight: s.takesPart(), Knows: slices.Clone(s.met)}
}

// meet notes that a job's owner knows the client.
func (s *session) meet(job ids.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.met, job) {
		s.met = append(s.met, job)
	}
}

// isKnownTo tells whether the job's owner knows the client.
func (s *session) isKnownTo(job ids.JobID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.met, job)
}

// leave ends the session; false if it has ended before.
func (s *session) leave(why *errs.Error) bool {
	if why == nil {
		why = errs.New(errs.CodeDisconnected, "client %v is gone", s.id)
	}
	return s.left.CompareAndSwap(nil, why)
}

func (s *session) hasLeft() bool { return s.why() != nil }

func (s *session) why() *errs.Error { return s.left.Load() }

// begin makes the session of a new client.
func (t *sessions) begin(role wire.Role, job ids.JobID, pid int32) (*session, error) {
	id, err := t.numbers.Next(home.Clients)
	if err != nil {
		return nil, err
	}
	return t.of(ids.ClientID(id), role, job, pid), nil
}

// of makes a session of a client.
func (t *sessions) of(id ids.ClientID, role wire.Role, job ids.JobID, pid int32) *session {
	s := makeSession(id, role, job, pid)
	s.faults = t.faults.ofSession(s)
	return s
}

func (t *sessions) add(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = make(map[ids.ClientID]*session)
	}
	t.byID[s.id] = s
}

func (t *sessions) get(id ids.ClientID) *session {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byID[id]
}

// remove takes a session out, and not one that its client has begun since.
func (t *sessions) remove(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[s.id] == s {
		delete(t.byID, s.id)
	}
}

// all gives every session, in order of id.
func (t *sessions) all() []*session {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]*session, 0, len(t.byID))
	for _, s := range t.byID {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *session) int { return int(int64(a.id) - int64(b.id)) })
	return out
}

// send queues a message for a client and lets it go; a client that is gone gets nothing.
func (t *sessions) send(id ids.ClientID, m wire.Msg) {
	if s := t.get(id); s != nil {
		s.Push(m)
		s.Flush()
	}
}

// sayBye tells clients to go, and why.
func (t *sessions) sayBye(why *errs.Error, to func(wire.Role) bool) {
	for _, s := range t.all() {
		if to(s.role) {
			s.Push(&wire.Bye{Err: why})
			s.Flush()
		}
	}
}
