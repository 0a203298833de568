package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner"
	"mobula/wire"
	"mobula/wire/conn"
)

// session is one client as the node knows it.
type session struct {
	id     ids.ClientID
	role   wire.Role
	job    ids.JobID
	pid    int32
	root   ids.TaskID
	nth    int                      // the number of the return that began it, 0: none; immutable
	ref    *actors.Ref[memberEvent] // its component; nil for a tool
	system bool                     // it runs the node's own functions; immutable
	told   chan struct{}            // closed when everyone knows that it is gone
	once   sync.Once                // of told
	parted atomic.Bool              // it has said goodbye: only what it gives back is heard
	done   context.Context          // ends when nothing of the client's is read any more
	finish context.CancelFunc       // of done
	outlet
	faults *faulty // a test's; nil: none. Immutable

	mu   sync.Mutex
	jobs []ids.JobID          // whose owners know the client; guarded by mu
	asks map[uint64]ids.JobID // by epoch; guarded by mu
	left *errs.Error          // guarded by mu: why the session ended; nil: it has not
}

func makeSession(id ids.ClientID, role wire.Role, job ids.JobID, pid int32) *session {
	s := &session{id: id, role: role, job: job, pid: pid, root: ids.RootTask(job, uint64(id)), told: make(chan struct{})}
	s.done, s.finish = context.WithCancel(context.Background())
	return s
}

// joined is what the owner of a job is told of it.
func (s *session) joined(job ids.JobID) owner.ClientJoined {
	return owner.ClientJoined{Client: s.id, Role: s.role, Guest: s.job != job}
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

// local tells whether the client is in this process.
func (s *session) local() bool {
	_, ok := s.outlet.(*local)
	return ok
}

// knownTo notes that the job's owner knows the client and tells whether that is new. It
// is not once the client is gone.
func (s *session) knownTo(job ids.JobID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left != nil || slices.Contains(s.jobs, job) {
		return false
	}
	s.jobs = append(s.jobs, job)
	return true
}

// leave ends the session; false if it has ended before.
func (s *session) leave(why *errs.Error) bool {
	if why == nil {
		why = errs.New(errs.CodeDisconnected, "client %v is gone", s.id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left != nil {
		return false
	}
	s.left = why
	return true
}

func (s *session) hasLeft() bool { return s.why() != nil }

func (s *session) why() *errs.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// takeJobs gives, once, the jobs whose owners must hear that the client is gone.
func (s *session) takeJobs() []ids.JobID {
	s.mu.Lock()
	defer s.mu.Unlock()
	jobs := s.jobs
	s.jobs = nil
	return jobs
}

// sessions is the table of all clients. Guarded by mu.
type sessions struct {
	mu   sync.RWMutex
	byID map[ids.ClientID]*session
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

func (t *sessions) remove(id ids.ClientID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, id)
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

// socket is the outlet to a client over a connection. What is pushed before it is open,
// which it is when the client has been welcomed, waits, and so does its end.
type socket struct {
	mu      sync.Mutex
	conn    *conn.Conn // guarded by mu until it is set
	pending []wire.Msg // guarded by mu
	spare   []wire.Msg // guarded by mu
	busy    bool       // guarded by mu
	closed  bool       // guarded by mu
	over    bool       // guarded by mu: the client's process has ended
	broken  error      // guarded by mu: the connection is to fail as soon as it is open; nil: it is not
}

func (o *socket) open(c *conn.Conn) {
	o.mu.Lock()
	o.conn = c
	over := o.closed
	if o.over {
		c.EndReading()
	}
	if o.broken != nil {
		c.Fail(o.broken)
	}
	o.mu.Unlock()
	o.Flush()
	if over {
		_ = c.Close() // see Close
	}
}

// endReading has the connection end behind what the client has sent: its process is gone, and a child of that may hold the socket.
func (o *socket) endReading() {
	o.mu.Lock()
	o.over = true
	c := o.conn
	o.mu.Unlock()
	if c != nil {
		c.EndReading()
	}
}

func (o *socket) Push(m wire.Msg) {
	o.mu.Lock()
	o.pending = append(o.pending, m)
	o.mu.Unlock()
}

// Flush hands the queue to the connection. Of a client that reads nothing until its backlog
// is full the rest stays here, as the messages that they are, until there is room: nobody waits
// for it but a goroutine of the outlet's own.
func (o *socket) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy || o.conn == nil {
		return
	}
	o.busy = true
	for len(o.pending) > 0 {
		batch := o.pending
		o.pending = o.spare[:0]
		o.mu.Unlock()
		n, err := o.write(batch)
		if errors.Is(err, errs.ErrBacklog) {
			go o.trickle(batch, n) // it has the role now
			o.mu.Lock()
			o.spare = nil
			return
		}
		if err != nil {
			o.fail(err)
		}
		clear(batch)
		o.mu.Lock()
		o.spare = batch
	}
	o.busy = false
}

// aTrickle is how many messages follow each time that the connection has room.
const aTrickle = 64

// trickle sends what is left of a batch as the client reads, and then gives the role back. It
// ends with the connection.
func (o *socket) trickle(batch []wire.Msg, sent int) {
	clear(batch[:sent])
	for sent < len(batch) {
		if o.conn.AwaitRoom() != nil {
			break // the connection is over
		}
		some := batch[sent:min(len(batch), sent+aTrickle)]
		n, err := o.write(some)
		if err != nil && !errors.Is(err, errs.ErrBacklog) {
			o.fail(err)
			break
		}
		clear(some[:n])
		sent += n
	}
	for _, m := range batch[sent:] {
		if f, ok := m.(*wire.MapFile); ok && f.Opened != nil {
			_ = f.Opened.Close() // a copy of ours
		}
	}
	o.mu.Lock()
	o.busy = false
	o.mu.Unlock()
	o.Flush()
}

// write sends a batch, and tells how many of it went; a message with a descriptor goes by itself,
// in its turn, and a receipt when little enough waits before it.
func (o *socket) write(batch []wire.Msg) (sent int, err error) {
	for i, m := range batch {
		if r, ok := m.(receipt); ok {
			if err := o.conn.TrySend(batch[sent:i]...); err != nil {
				return sent, err
			}
			if sent = i; !o.conn.HasRoom() {
				return sent, errs.ErrBacklog
			}
			r()
			sent = i + 1
			continue
		}
		f, ok := m.(*wire.MapFile)
		if !ok || f.Opened == nil {
			continue
		}
		if err := o.conn.TrySend(batch[sent:i]...); err != nil {
			return sent, err
		}
		err := o.conn.SendFD(m, f.Opened)
		if errors.Is(err, errs.ErrBacklog) {
			return i, err
		}
		_ = f.Opened.Close() // a copy of ours
		if err != nil {
			return i, err
		}
		sent = i + 1
	}
	if err := o.conn.TrySend(batch[sent:]...); err != nil {
		return sent, err
	}
	return len(batch), nil
}

// fail ends the connection after an error of a send, unless it is closing: then what was sent
// before is still being written. What a client said before it closed the connection is still being read.
func (o *socket) fail(err error) {
	if !errors.Is(err, errs.ErrShutdown) && !o.conn.Gone() {
		o.conn.Fail(err)
	}
}

// cut ends the connection at once, as one that broke.
func (o *socket) cut(err error) {
	o.mu.Lock()
	c := o.conn
	o.broken = err
	o.mu.Unlock()
	if c != nil {
		c.Fail(err)
	}
}

func (o *socket) Close() {
	o.Flush()
	o.mu.Lock()
	o.closed = true
	c := o.conn
	o.mu.Unlock()
	if c != nil {
		_ = c.Close() // the client is done with; what could not be written does not matter
	}
}

// isKnownTo tells whether the job's owner knows the client.
func (s *session) isKnownTo(job ids.JobID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.jobs, job)
}
