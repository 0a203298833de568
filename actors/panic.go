package actors

import (
	"runtime/debug"
)

// panicked discards the core, decides about the present message, and returns the report for supervision. It runs
// before the stack is unwound.
func (s *shell[E, F]) panicked(v any, stack []byte) *PanicError {
	message := ""
	inHand := (s.phase == inStep || s.phase == inDo) && s.m.pos < len(s.m.batch)
	if inHand {
		message = typeName(s.m.batch[s.m.pos])
	}
	pe := s.n.panicError(phaseNames[s.phase], message, v, stack)
	if inHand {
		s.retry(pe)
	}
	if s.phase == inStart {
		s.blamed = s.first
	}
	s.m.account()
	if s.phase != inFlush { // writes of other messages' effects must be there when New reads
		s.flushQuietly()
	}
	s.discard()
	return pe
}

// retry keeps the present message for the next core, or drops it after its second panic, unless it is vital.
func (s *shell[E, F]) retry(pe *PanicError) {
	if !s.m.redelivered || s.spec.Vital != nil && s.spec.Vital(s.m.batch[s.m.pos]) {
		s.m.redelivered = true
		if s.phase == inDo && s.spec.Same != nil {
			s.ran = append(s.ran, s.effects[:s.effect]...)
		}
		return
	}
	s.poison(s.m.batch[s.m.pos], pe)
	s.next()
}

func (s *shell[E, F]) poison(ev E, pe *PanicError) {
	err := &PoisonError{pe}
	restarts := s.n.poisoned()
	s.n.sys.emit(s.n, Event{Kind: EventPoisoned, Restarts: restarts, Err: err})
	if s.spec.OnPoison != nil {
		s.quietly(inNothing, func() { s.spec.OnPoison(s.self, ev, err) })
	}
}

func (n *node) poisoned() (restarts int) {
	n.sys.mu.Lock()
	defer n.sys.mu.Unlock()
	n.npoisoned++
	return n.nrestarts
}

// discard drops the core and its timers.
func (s *shell[E, F]) discard() {
	s.core, s.effects = nil, nil
	s.m.cancelTimers(s.m.inc)
}

// flushQuietly is flush that does not pass a panic on: the core is being discarded, or the component is stopping.
func (s *shell[E, F]) flushQuietly() {
	phase := s.phase
	s.quietly(inFlush, s.flush)
	s.phase = phase
}

// quietly runs f and reports a panic in it as an event.
func (s *shell[E, F]) quietly(phase int, f func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			s.n.sys.emit(s.n, Event{Kind: EventPanicked, Err: s.n.panicError(phaseNames[phase], "", v, debug.Stack())})
		}
	}()
	f()
	return true
}

// stopping drains the mailbox into a core that is alive, and then stops.
func (s *shell[E, F]) stopping() {
	s.m.close()
	if s.core != nil {
		for s.drain() {
		}
	}
	s.flushQuietly()
	if s.spec.Stop != nil && s.built {
		s.quietly(inNothing, s.spec.Stop)
	}
	s.discard()
}

// drain steps one batch. A panic ends the drain: no core is built to stop it.
func (s *shell[E, F]) drain() (more bool) {
	defer func() {
		if v := recover(); v != nil {
			more = false
			ev := s.m.batch[s.m.pos]
			s.poison(ev, s.n.panicError(phaseNames[s.phase], typeName(ev), v, debug.Stack()))
			s.next()
		}
	}()
	s.m.mu.Lock()
	more = s.m.take()
	s.m.mu.Unlock()
	s.tick()
	for s.m.pos < len(s.m.batch) {
		if isClosed(s.n.abandoned) {
			return false
		}
		s.dirty = true
		s.message(s.m.batch[s.m.pos])
		s.next()
	}
	return more
}
