package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"mobula/internal/errs"
)

// strategy is the protoactor supervision strategy of a node: the failures of its
// children arrive here, on its goroutine.
type strategy struct{ n *node }

// HandleFailure implements actor.SupervisorStrategy.
func (s strategy) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	sys := s.n.sys
	pe, ok := reason.(*PanicError)
	if !ok { // protoactor's own code panicked
		pe = &PanicError{Name: child.Id, Phase: "protoactor", Value: reason}
	}
	sys.mu.Lock()
	var n *node
	for _, c := range s.n.children {
		if c.path == child.Id {
			n = c
		}
	}
	if n == nil || n.gone {
		sys.mu.Unlock()
		return
	}
	events, restart, failed := sys.decide(n, sup, pe)
	sys.mu.Unlock()
	for _, e := range events {
		sys.emit(e.n, e.Event)
	}
	switch {
	case restart != nil:
		restart() // after the panic was reported, since the new core is reported too
	case failed != nil:
		sys.beginStop(failed)
	}
}

type nodeEvent struct {
	n *node
	Event
}

// decide is the whole policy: restart n, or ask its parents in turn. It returns a function that begins the
// restart, or the top-level node to stop if the root was reached. mu is held.
func (s *System) decide(n *node, sup actor.Supervisor, reason *PanicError) (events []nodeEvent, restart func(), failed *node) {
	now := s.now()
	n.reason = reason
	if n.stopTold { // a turn was left by runtime.Goexit while it stopped: protoactor must be told again
		sup.RestartChildren(n.pid)
		sup.StopChildren(n.pid)
		return nil, nil, nil
	}
	var stepped uint64
	if n.box != nil {
		stepped = n.box.handledCount() - uint64(n.npoisoned)
	}
	backoff, ok := n.panics.add(now, stepped, n.policy)
	events = append(events, nodeEvent{n, Event{Kind: EventPanicked, Restarts: n.nrestarts, Backoff: backoff, Err: reason}})
	if ok {
		return events, s.restartAfter(backoff, sup, n, []*node{n}, reason), nil
	}
	failing := n
	for p := n.parent; ; failing, p = p, p.parent {
		failing.panics, failing.escalated = failures{}, failures{}
		failing.nescalated++
		events = append(events, nodeEvent{failing, Event{Kind: EventEscalated, Restarts: failing.nrestarts, Err: reason}})
		if p == s.root {
			break
		}
		if backoff, ok := p.escalated.add(now, stepped, p.policy); ok {
			set := failing.subtree(nil)
			if p.policy.Strategy == AllForOne {
				set = p.subtree(nil)[1:]
			}
			return events, s.restartAfter(backoff, sup, n, set, fmt.Errorf("%s restarts its children: %w", p.path, reason)), nil
		}
	}
	failing.failed = fmt.Errorf("%s, reached from %s: %w: %w", failing.path, n.path, errs.ErrComponentFailed, reason)
	for _, c := range failing.subtree(nil) {
		c.failed = failing.failed
	}
	events = append(events, nodeEvent{failing, Event{Kind: EventFailed, Restarts: failing.nrestarts, Err: failing.failed}})
	return events, nil, failing
}

// pending is a restart that waits for its backoff.
type pending struct{ cancel func() bool }

// restartAfter returns a function that makes protoactor restart the set after d, parents first, in order of start. A
// component that waits for an earlier restart takes part in this one instead. mu is held, but must not be held when
// begin is called.
func (s *System) restartAfter(d time.Duration, sup actor.Supervisor, n *node, set []*node, reason error) (begin func()) {
	p := &pending{cancel: func() bool { return true }}
	if n.restart != nil {
		n.restart.cancel()
	}
	n.restart = p
	restart := func() {
		var pids []*actor.PID
		s.mu.Lock()
		if n.restart != p || n.gone {
			s.mu.Unlock()
			return
		}
		n.restart = nil
		for _, c := range set {
			if c.gone || c.box == nil || c != n && !isClosed(c.spawned) {
				continue
			}
			if c != n && c.restart != nil {
				c.restart.cancel()
				c.restart = nil
			}
			c.reason = reason
			pids = append(pids, c.pid)
		}
		s.mu.Unlock()
		sup.RestartChildren(pids...)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n.restart == p {
			p.cancel = s.clock.AfterFunc(d, restart)
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
