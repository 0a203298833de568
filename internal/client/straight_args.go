package client

import (
	"mobula/internal/direct/shell"
	"mobula/internal/errs"
	"mobula/wire"
)

// This file is references as arguments of calls that go straight, each by itself: this process waits for the values, since it keeps the order of its calls. The owner knows
// the objects (Handle.Passed). A value in the store is read by the actor's process.

// arguments are what a call's references resolve to.
type arguments struct {
	left   int32 // guarded by straight.argsMu: that are not there yet, and one until the call has begun
	values []wire.ArgValue
	nodes  []waitNode
}

// resolve asks for the arguments that are references.
func (s *straight) resolveArguments(m *message) {
	n := 0
	for i := range m.spec.Args {
		if !m.spec.Args[i].Ref.IsZero() {
			n++
		}
	}
	if n == 0 {
		return
	}
	a := &arguments{left: int32(n) + 1, values: make([]wire.ArgValue, 0, n), nodes: make([]waitNode, n)}
	m.inputs = a
	var asks []wire.Msg
	for i := range m.spec.Args {
		id := m.spec.Args[i].Ref
		if id.IsZero() {
			continue
		}
		k := len(a.values)
		a.values = append(a.values, wire.ArgValue{Index: int32(i)})
		h := s.outbox.Bind(id)
		m.args = append(m.args, h)
		a.nodes[k] = waitNode{h: h, i: k, argOf: m}
		if ask, _ := s.gets.link(&a.nodes[k]); ask { // it was not released: we hold it
			asks = append(asks, &wire.Get{ID: id})
		}
	}
	_ = s.outbox.Send(asks...) // where the connection is gone, so is the call
}

// begin begins a call: one whose arguments are there, or one that waits for them. It gives the Callee if the actor has many calls before it.
func (s *straight) begin(m *message) (crowded *shell.Callee) {
	if m.inputs == nil {
		return s.calls.Begin(m.spec.Actor, &m.Call)
	}
	if m.argumentsLeft() == 1 && m.argumentError() == nil { // nothing comes any more
		m.argued()
		m.Bytes = m.size()
		return s.calls.Begin(m.spec.Actor, &m.Call)
	}
	m.Missing = 1
	crowded = s.calls.Begin(m.spec.Actor, &m.Call)
	if m.argued() {
		m.argumentsCame()
	}
	return crowded
}

// argument takes a value. The shard's lock is held.
func (m *message) argument(i int, r *wire.Result) {
	m.inputs.values[i].Result = *r
	if m.argued() {
		m.tc.Client.start(m.argumentsCame) // unless the client is closing
	}
}

// argued counts an argument that is there, and tells whether it was the last one.
func (m *message) argued() bool {
	m.tc.Client.straight.argsMu.Lock()
	defer m.tc.Client.straight.argsMu.Unlock()
	m.inputs.left--
	return m.inputs.left == 0
}

// argumentsCame has the call go, or fail as one of its arguments has.
func (m *message) argumentsCame() { m.Argument(m.size(), m.argumentError()) }

// size is what the call takes of the credit, its arguments with it.
func (m *message) size() int64 {
	n := m.cost
	for i := range m.inputs.values {
		v := &m.inputs.values[i].Result.Value
		n += int64(len(v.Data) + len(v.Meta))
	}
	return n
}

// argumentError is the error of the first argument that has failed. The first call in a chain wraps the cause; those after it pass the same error on.
func (m *message) argumentError() *errs.Error {
	for i := range m.inputs.values {
		r := &m.inputs.values[i].Result
		if r.Kind != wire.ResultError {
			continue
		}
		err := errs.From(failureOf(m.inputs.nodes[i].h.id, r))
		if k := m.inputs.nodes[i].h.call.Load(); k != nil && k.passes {
			m.passes = true
			return err
		}
		m.passes = true
		return &errs.Error{Code: err.Code, Name: err.Name, Task: m.ID.String(), Msg: "an argument of " + nameOf(m.spec) + " failed: " + err.Error(), Cause: []*errs.Error{err}}
	}
	return nil
}

// argumentsLeft is how many are not there.
func (m *message) argumentsLeft() int32 {
	if m.inputs == nil {
		return 0
	}
	m.tc.Client.straight.argsMu.Lock()
	defer m.tc.Client.straight.argsMu.Unlock()
	return m.inputs.left
}

// forgetArguments waits for nothing any more.
func (m *message) forgetArguments() {
	if m.argumentsLeft() > 0 {
		m.tc.Client.straight.gets.unlink(m.inputs.nodes)
	}
}

// Arguments are the values of the references among the arguments.
func (m *message) Arguments() []wire.ArgValue {
	if m.inputs == nil {
		return nil
	}
	return m.inputs.values
}
