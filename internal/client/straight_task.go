package client

import (
	"context"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/ids"
	"mobula/wire"
)

// This file is calls that go by the owner, and so as tasks, in their place among those that go straight.

// awaitsSubmit has readers of a stream wait until the owner knows it.
func (s *straight) awaitsSubmit(m *message) {
	if len(m.hs) == 0 && m.end == nil { // something has to tell of its end
		m.spec.Promises = endOfCall
		m.end = s.handles.Promised(ids.Derive(m.spec.ID, uint64(wire.EndOfCall)).Return(0))
		m.end.comes(m)
	}
	m.gone = make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[m.ID] = m
}

// isGone lets those go on that wait until a call was submitted. The lock is held.
func (s *straight) isGone(m *message) {
	if m.gone != nil && s.waiting[m.ID] == m {
		delete(s.waiting, m.ID)
		close(m.gone)
	}
}

// unsubmitted is the call of a task that was not submitted yet; nil: there is none.
func (s *straight) unsubmitted(task ids.TaskID) *message {
	if s.boxes == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[task]
}

// awaitSubmit waits until a call was submitted.
func (s *straight) awaitSubmit(ctx context.Context, task ids.TaskID) error {
	m := s.unsubmitted(task)
	if m == nil {
		return nil
	}
	select {
	case <-m.gone:
		return nil
	case <-ctx.Done():
		return ctxError(ctx)
	case <-s.dead:
		return s.cause
	}
}

// Submit sends a call to the owner, as a task. From then on its handles are like those of any other.
func (s *straight) Submit(k *shell.Call) {
	m := messageOf(k)
	s.maker(m.tc)
	m.task.Store(true)
	m.told.Store(true)
	o := m.tc.orderOf(m.spec.Actor)
	o.mu.Lock()
	if o.seq++; len(m.hs) == 0 && m.end == nil { // its way turned out to be the owner's
		m.spec.Promises = endOfCall
		m.end = s.handles.Promised(ids.Derive(m.spec.ID, uint64(wire.EndOfCall)).Return(0))
	}
	m.spec.Seq = o.seq
	_ = s.outbox.submit(&wire.Submit{Spec: m.spec})
	o.mu.Unlock()
	s.mu.Lock()
	s.isGone(m)
	s.mu.Unlock()
	of := m.end
	if len(m.hs) > 0 {
		of = m.hs[0]
	}
	var msgs []wire.Msg
	for _, h := range m.hs {
		msgs = append(msgs, m.isTask(h, of)...)
	}
	if m.end != nil {
		msgs = append(msgs, m.isTask(m.end, of)...)
	}
	_ = s.outbox.Send(msgs...)
}

// answered is told when the owner has resolved a call that was submitted. The shard's lock is held, so it is passed on.
func (m *message) answered() {
	if !m.tc.Client.start(func() { m.OwnerAnswered(&direct.Outcome{}) }) {
		return // the client is closing
	}
}
