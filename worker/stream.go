package worker

import (
	"context"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/registry"
	"mobula/wire"
)

// stream is the producing side of one streaming task.
type stream struct {
	e    *Executor
	lane *lane
	cl   *call
	spec *wire.TaskSpec

	emitting sync.Mutex // items are sent in order

	mu       sync.Mutex
	items    uint32        // guarded by mu: produced
	consumed uint32        // guarded by mu
	moved    chan struct{} // guarded by mu: closed when consumed grows; nil: nobody waits
	closed   bool          // guarded by mu: the function has returned
}

func (e *Executor) openStream(l *lane, cl *call, spec *wire.TaskSpec) *stream {
	s := &stream{e: e, lane: l, cl: cl, spec: spec}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streams[spec.ID] = s
	return s
}

func (e *Executor) closeStream(s *stream) {
	e.mu.Lock()
	if e.streams[s.spec.ID] == s {
		delete(e.streams, s.spec.ID)
	}
	e.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

func (e *Executor) acknowledge(m *wire.StreamAck) {
	e.mu.Lock()
	s := e.streams[m.Task]
	e.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.consumed = max(s.consumed, m.Consumed)
	if s.moved != nil {
		close(s.moved)
		s.moved = nil
	}
}

func (s *stream) count() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items
}

// emit sends the next item once the consumer is near enough.
func (s *stream) emit(o registry.Output) error {
	s.emitting.Lock()
	defer s.emitting.Unlock()
	i, err := s.room()
	if err != nil {
		return err
	}
	m := &wire.StreamItem{Task: s.spec.ID, Attempt: s.cl.tc.Attempt, Index: i}
	r := &runner{lane: s.lane, call: s.cl, task: wire.ExecTask{Spec: s.spec}}
	defer func() {
		for _, b := range r.made { // sealed, unless writing failed
			b.Abort()
		}
	}()
	if err := r.result(&s.cl.ctx, &o, s.spec.ID.Return(int(i)), &m.Result, wire.MessageValues); err != nil {
		return err
	}
	if err := s.e.c.Send(m); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = i + 1
	return nil
}

// room waits until the next item may be produced and gives its index.
func (s *stream) room() (uint32, error) {
	if s.cl.ctx.Err() != nil {
		return 0, s.cl.ctx.cause()
	}
	limit := uint32(max(0, s.spec.Opts.Backpressure))
	s.mu.Lock()
	if ok, err := s.freeLocked(limit); ok || err != nil {
		defer s.mu.Unlock()
		return s.items, err
	}
	s.mu.Unlock()
	if b := s.cl.tc.Blocker; b != nil { // one that has come straight holds nothing
		b.Blocked(s.cl.ctx.std(), nil) // the consumer may need the CPU
		defer b.Unblocked(&s.cl.ctx)
	}
	for {
		s.mu.Lock()
		if ok, err := s.freeLocked(limit); ok || err != nil {
			defer s.mu.Unlock()
			return s.items, err
		}
		if s.moved == nil {
			s.moved = make(chan struct{})
		}
		moved := s.moved
		s.mu.Unlock()
		select {
		case <-moved:
		case <-s.cl.ctx.Done():
			return 0, context.Cause(&s.cl.ctx)
		case <-s.e.c.Done():
			return 0, s.e.c.Err()
		}
	}
}

func (s *stream) freeLocked(limit uint32) (bool, error) {
	if s.closed {
		return false, errs.New(errs.CodeInvalid, "an item was emitted after the function of %v had returned", s.spec.ID)
	}
	return limit == 0 || s.items < s.consumed+limit, nil
}
