package client

import (
	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// This file is what calls that go straight ask for (shell.Up), and what the owner says to them. A dead connection is not reported here: every use of a handle says so.

var _ shell.Up = (*straight)(nil)

// messageOf is the call that package shell speaks of.
func messageOf(k *shell.Call) *message { return k.Own.(*message) }

// AskWay asks the owner how calls get to an actor.
func (s *straight) AskWay(c *shell.Callee) {
	s.sweepLater()
	_ = s.outbox.send(&wire.AskWay{Actor: c.Actor()})
}

// AskWord asks the owner what has become of a channel.
func (s *straight) AskWord(_ *shell.Callee, ch direct.Channel) {
	_ = s.outbox.send(&wire.AskWord{Channel: uint64(ch)})
}

// Linked tells the owner of a channel that one before it has given.
func (s *straight) Linked(c *shell.Callee, ch direct.Channel, to direct.Instance) {
	_ = s.outbox.send(&wire.Linked{Actor: c.Actor(), Channel: uint64(ch), Instance: to})
}

// HangUp tells the owner that a channel is needed no more.
func (s *straight) HangUp(ch direct.Channel) { _ = s.outbox.send(&wire.HangUp{Channel: uint64(ch)}) }

// Adopt tells the owner of a call. What is known of it may be dropped from then on: the owner has it too.
func (s *straight) Adopt(k *shell.Call, where direct.Effect) {
	m := messageOf(k)
	a := &wire.Adopt{Spec: m.spec, Order: k.Order(), Channel: uint64(where.Channel), No: where.No, Tries: k.Tries()}
	if where.Outcome != nil {
		a.Spec = withoutArgs(m.spec)
		o := outcomeOf(where.Outcome)
		a.Outcome = &o
		s.tellTimed(k) // before what takes the result, to which its span is linked
	}
	if where.Outcome == nil {
		s.maker(m.tc)
	}
	first := !m.told.Swap(true)
	if first {
		s.mu.Lock()
		s.adopting[k.ID] = m
		s.mu.Unlock()
	}
	_ = s.outbox.send(a)
	if first {
		m.letGone()
	}
	if where.Outcome != nil {
		for _, h := range m.hs {
			s.handles.mayForget(h)
		}
	}
}

// Report tells the owner what an adopted call has come to.
func (s *straight) Report(k *shell.Call, o *direct.Outcome) {
	to := outcomeOf(o)
	_ = s.outbox.send(&wire.Adopt{Spec: withoutArgs(messageOf(k).spec), Order: k.Order(), Tries: k.Tries(), Outcome: &to})
}

// withoutArgs is a task that has ended: what its arguments were may be gone.
func withoutArgs(spec *wire.TaskSpec) *wire.TaskSpec {
	if len(spec.Args) == 0 {
		return spec
	}
	own := *spec
	own.Args = nil
	return &own
}

// outcomeOf is an outcome as the owner is told it.
func outcomeOf(o *direct.Outcome) wire.CallOutcome {
	if o.Err != nil {
		return wire.CallOutcome{Err: o.Err, Ran: ranOf(o)}
	}
	to := wire.CallOutcome{Ran: ranOf(o)}
	if a, ok := o.Value.(*talk.Answer); ok {
		to.Results, to.Items = a.Results, a.Items
	}
	return to
}

// ranOf says when a call ran; nil: nobody has taken the time.
func ranOf(o *direct.Outcome) *wire.Run {
	if a, ok := o.Value.(*talk.Answer); ok {
		return a.Ran
	}
	return nil
}

// resultsOf are the results of a call that has not failed.
func resultsOf(o *direct.Outcome) []wire.Result {
	if a, ok := o.Value.(*talk.Answer); ok {
		return a.Results
	}
	return nil
}

// Departs says that the owner knows of a call. References to it did not wait for that: what follows to the owner is behind what it was told, and what goes by a channel waits by
// itself.
func (s *straight) Departs(k *shell.Call) { s.isShown(messageOf(k)) }

// Revoke asks the owner to cancel a call that was submitted.
func (s *straight) Revoke(k *shell.Call, w direct.Wish) {
	_ = s.outbox.send(&wire.Cancel{Task: k.ID, Force: w.Force, Recursive: w.Recursive, Insist: w.Insist})
}

// Panicked logs a fault of what makes calls.
func (s *straight) Panicked(event string, reason any, n int) {
	s.log.Error("what makes calls of an actor has panicked, and was made anew", "event", event, "panic", reason, "times", n)
}

// Holds holds an actor, as long as its calls are under way. It is not let go of between two calls, but when nobody else holds it.
func (s *straight) Holds(c *shell.Callee) any {
	if h := s.handles.table.retain(ids.TaskID(c.Actor()).Return(0), called); h != nil {
		return h
	}
	return nil
}

// heldAlone notes that what Holds has held nobody else does.
func (s *straight) heldAlone(h *Handle) { s.calls.HoldsAlone(ids.ActorID(h.id.Task)) }

// LetsGo lets go of an actor.
func (s *straight) LetsGo(held any) {
	h := held.(*Handle)
	h.unmark(called)
	h.Release()
}

// Settles counts a call, and holds what its results have references to.
func (s *straight) Settles(k *shell.Call, o *direct.Outcome) {
	s.count(k, o)
	var refs []ids.ObjectID
	if o.Err != nil {
		refs = o.Err.AllRefs()
	}
	for _, r := range resultsOf(o) {
		refs = append(refs, r.Value.Refs...)
	}
	if len(refs) == 0 {
		return
	}
	inner := make([]*Handle, len(refs))
	for i, id := range refs {
		inner[i] = s.outbox.Bind(id)
	}
	messageOf(k).inner.Store(&inner)
}

// Settled tells who waits for a call.
func (s *straight) Settled(k *shell.Call, o *direct.Outcome) {
	m := messageOf(k)
	s.isOver(m)
	if !m.task.Load() {
		for i, h := range m.hs {
			s.resolve(h, resultOf(m, o, i))
		}
		if m.end != nil {
			s.resolve(m.end, &wire.Result{Kind: wire.ResultInline})
		}
	}
	if m.end != nil {
		m.end.Release()
	}
	m.forgetArguments()
	for _, h := range m.args {
		h.Release()
	}
	if m.inner.Load() != nil && m.left.Load() <= 0 { // nobody reads the results
		m.letInner()
	}
	s.room.add(m.cost)
}

// Spare keeps a call that nobody has any more for another one.
func (s *straight) Spare(k *shell.Call) {
	m := messageOf(k)
	*m = message{}
	s.spare.Put(m)
}

// isOver notes that a call is under way no more.
func (s *straight) isOver(m *message) {
	if m.spec.Deadline == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
	m.done = true
}

// resultOf is one result of a call.
func resultOf(m *message, o *direct.Outcome, i int) *wire.Result {
	if o.Err != nil {
		return &wire.Result{Kind: wire.ResultError, Err: o.Err}
	}
	if rs := resultsOf(o); i < len(rs) {
		return &rs[i]
	}
	return &wire.Result{Kind: wire.ResultError, Err: errs.New(errs.CodeReturnMismatch, "%s came to no result %d", m.spec.Opts.Func, i)}
}

// way takes the owner's answer to AskWay.
func (s *straight) way(w *wire.Way) {
	c := s.calls.Callee(w.Actor)
	switch {
	case w.ByOwner:
		c.ByOwner()
	case w.Err != nil:
		c.NoWay(w.Dead, w.Err)
	case w.Apart:
		s.openFar(c, w)
	default:
		c.Open(s.boxes.Of(w.Instance), shell.Way{Instance: w.Instance, Channel: direct.Channel(w.Channel), Credit: straightCredit, Retries: w.Retries, Groups: w.Groups})
	}
}

// adopted takes the owner's answer to Adopt.
func (s *straight) adopted(task ids.TaskID) {
	s.mu.Lock()
	m := s.adopting[task]
	delete(s.adopting, task)
	s.mu.Unlock()
	if m != nil {
		m.Adopted()
		m.ownerKnows()
	}
}

// ownerLost has an owner that was made anew told what the one before knew, before it is told what this process holds.
func (s *straight) ownerLost() {
	if s.boxes != nil {
		s.tellMakers()
		s.calls.OwnerLost()
		s.marks.again()
	}
}

// over takes the node's word on a channel.
func (s *straight) over(o *wire.Over) {
	s.calls.Callee(o.Actor).Over(direct.Over{Channel: direct.Channel(o.Channel), Next: direct.Next(o.Next), Keeps: o.Keeps, Err: o.Err})
}
