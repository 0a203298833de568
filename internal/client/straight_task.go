package client

import (
	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/ids"
	"mobula/wire"
)

// This file is calls that go by the owner, and so as tasks, in their place among those that go straight.

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
