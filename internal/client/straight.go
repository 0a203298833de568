package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"mobula/internal/direct/shell"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// straight makes the calls of actors that go straight (decision 0038). Package internal/direct has what decides about them; this part is what its process says to the
// owner, and what the results of its calls are to the handles.
type straight struct {
	*base
	handles *handles
	outbox  *outbox
	gets    *gets
	clock   *clock
	boxes   *shell.Mailboxes // the actors of this process; nil: no call goes straight
	calls   *shell.Process
	room    straightRoom
	untimed atomic.Int32 // calls that are to be timed, until the next sweep
	spare   sync.Pool    // messages that nobody has any more

	marks marks

	argsMu sync.Mutex // taken under a shard's lock
	makers struct {
		mu sync.Mutex                  // taken before the outbox' lock
		of map[ids.TaskID]*TaskContext // guarded by mu: calls that run here and of which the owner was told that they make something; nil: none
	}

	mu       sync.Mutex
	adopting map[ids.TaskID]*message // guarded by mu: of which the owner was told, and has not answered
	sweeper  *time.Timer             // guarded by mu
	sweeping bool                    // guarded by mu
	shut     bool                    // guarded by mu
}

const (
	straightCredit = 4 << 20     // bytes of calls that may be under way to one actor; what is more waits here
	sweepEvery     = time.Second // acknowledgements that wait for others are passed on then
	idleSweeps     = 60          // channels that were not used for so many are closed
)

// message is one call that goes straight.
type message struct {
	shell.Call
	spec  *wire.TaskSpec
	tc    *TaskContext // of its caller
	hs    []*Handle    // of its results; not in it, since who is left with one keeps what the call came to
	end   *Handle      // of its end, if somebody asks for that; held until then
	args  []*Handle    // that its arguments are, or have references to; held until it has ended
	timer *time.Timer  // of its deadline
	cost  int64        // of the process' room

	inputs *arguments // nil: no argument is a reference
	passes bool       // its error is that of an argument; written before it ends

	told  atomic.Bool               // the owner knows of it, by Adopt or as a task
	task  atomic.Bool               // it was submitted
	left  atomic.Int32              // results that somebody holds
	done  bool                      // it has ended; guarded by straight.mu
	shown []func(*errs.Error)       // to be called when the owner knows of it; guarded by straight.mu
	inner atomic.Pointer[[]*Handle] // that its results have references to, held as long as these; nil: none
}

// TaskSpec is what is called. With Announce it is talk.Straight.
func (m *message) TaskSpec() *wire.TaskSpec { return m.spec }

// Announce has the owner know of the call before a reference to a result leaves, or a result is stored.
func (m *message) Announce() error {
	if !m.told.Load() {
		m.Leaves()
	}
	return nil
}

// enter gets ready for calls of the actors of this process.
func (s *straight) enter(boxes *shell.Mailboxes) {
	if s.boxes = boxes; boxes == nil {
		return
	}
	s.adopting = make(map[ids.TaskID]*message)
	s.marks.base, s.marks.outbox = s.base, s.outbox
	s.calls = shell.NewProcess(s.cfg.CacheBytes, s)
	s.room.base = s.base
	s.room.add(straightWindow)
	s.untimed.Store(timedEach)
}

// takes tells whether a call goes straight, or may: its caller does not run again, so nobody makes it a second time, and its actor is of this job.
func (s *straight) takes(tc *TaskContext, spec *wire.TaskSpec) bool {
	return s.boxes != nil && spec.Kind == wire.TaskActorCall && spec.Seq == 0 && (tc.Spec == nil || tc.Once) && spec.Actor.Job() == s.cfg.Welcome.Job
}

// submit makes a call, and gives a handle for each of its returns. It blocks only for room, and who tells very much is held up for a moment now and then.
func (s *straight) submit(ctx context.Context, tc *TaskContext, spec *wire.TaskSpec) ([]*Handle, error) {
	var m *message
	if spec.Opts.NumReturns == 0 {
		m, _ = s.spare.Get().(*message)
	}
	if m == nil {
		m = new(message)
	}
	m.spec, m.tc, m.cost = spec, tc, wire.CostOfSpec(spec)
	m.ID, m.Caller, m.Own, m.InGroup, m.Bytes = spec.ID, spec.Caller(), m, spec.Opts.Group, m.cost
	if err := s.room.admit(ctx, tc, m.cost); err != nil {
		return nil, err
	}
	if m.Shared = spec.Opts.NumReturns == wire.Streaming; m.Shared {
		spec.Promises = endOfCall // if it goes by the owner in the end, something tells of its end
	}
	s.resolveArguments(m)
	s.hold(m)
	if len(m.args) > 0 {
		s.outbox.Uncork() // what they are is known to the owner before the actor's process asks for it
	}
	if s.cfg.Apart {
		s.waitForOwner(m)
	}
	m.Tells = len(m.hs) == 0
	m.Quiet = m.Tells && m.end == nil && len(m.args) == 0
	m.Spare = m.Quiet && spec.Deadline == 0
	if !m.Shared && spec.Submitted == 0 && s.times() {
		spec.Submitted = s.clock.Now()
	}
	hs, quiet := m.hs, m.Quiet
	crowded := s.begin(m) // from here on it may be another call, if it is spare
	if crowded != nil && quiet && !ofItself(tc, spec) {
		crowded.Pause(ctx)
	}
	if spec.Deadline != 0 {
		s.timeOut(m)
	}
	return hs, nil
}

// ofItself tells whether a method calls its own actor, which takes the call when the method has returned at the earliest.
func ofItself(tc *TaskContext, spec *wire.TaskSpec) bool {
	return tc.Spec != nil && tc.Spec.Actor == spec.Actor
}

// hold makes the handles of a call's results, and holds what it needs until it has ended.
func (s *straight) hold(m *message) {
	t := &s.handles.table
	n := max(int(m.spec.Opts.NumReturns), 0)
	switch n {
	case 0:
	case 1:
		one := new(singleReturn)
		one.p[0] = &one.h
		m.hs = one.p[:]
	default:
		more := make([]Handle, n)
		m.hs = make([]*Handle, n)
		for i := range more {
			m.hs[i] = &more[i]
		}
	}
	for i, h := range m.hs {
		h.of, h.id, h.flags = s.handles, m.spec.ID.Return(i), comes
		h.call.Store(m)
		m.hs[i], _ = t.adopt(h)
	}
	m.left.Store(int32(n))
	if len(m.spec.Promises) > 0 {
		m.end = s.handles.Promised(ids.Derive(m.spec.ID, uint64(wire.EndOfCall)).Return(0))
		m.end.comes(m)
	}
	for i := range m.spec.Args {
		for _, id := range m.spec.Args[i].Value.Refs {
			m.args = append(m.args, s.outbox.Bind(id))
		}
	}
}

// whenSent has something done when all calls of an actor that were made before are sent or have ended; false: they are.
func (s *straight) whenSent(actor ids.ActorID, then func()) bool {
	return s.boxes != nil && s.calls.Callee(actor).WhenSent(then)
}

// timeOut ends a call at its deadline.
func (s *straight) timeOut(m *message) {
	timer := time.AfterFunc(time.Until(s.clock.Instant(m.spec.Deadline)), m.Expired)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.timer = timer; m.done {
		timer.Stop()
	}
}

// sweepLater has what was not used for some time let go of, as long as there is something.
func (s *straight) sweepLater() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sweeping || s.shut {
		return
	}
	s.sweeping = true
	if s.sweeper == nil {
		s.sweeper = time.AfterFunc(sweepEvery, s.sweep)
	} else {
		s.sweeper.Reset(sweepEvery)
	}
}

func (s *straight) sweep() {
	s.tellEnded()
	s.untimed.Store(timedEach)
	left := s.calls.Sweep(idleSweeps)
	s.mu.Lock()
	s.sweeping = false
	s.mu.Unlock()
	if left > 0 {
		s.sweepLater()
	}
}

// close ends all channels. No lock of the client is held.
func (s *straight) close() {
	if s.boxes == nil {
		return
	}
	s.mu.Lock()
	s.shut = true
	if s.sweeper != nil {
		s.sweeper.Stop()
	}
	s.mu.Unlock()
	s.calls.Close()
}
