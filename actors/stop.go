package actors

import (
	"context"
	"slices"
	"time"

	"mobula/internal/errs"
)

// stopGrace is how long after its deadline a stop checks which components still run.
const stopGrace = 100 * time.Millisecond

// StopTree stops every component, children before parents and of siblings the last started first, and then the
// system itself; Spawn fails from then on. When ctx ends first, the remaining components are told to stop at once
// and are not drained. A *StopError names those that still run 100 ms later; if there are none, the tree is
// stopped and the error is nil.
func (s *System) StopTree(ctx context.Context) error {
	err := s.stop(ctx, s.root)
	waited := make(chan struct{})
	go func() { // waits for stops that were begun elsewhere
		s.background.Wait()
		close(waited)
	}()
	select {
	case <-waited:
	case <-ctx.Done():
	}
	s.pool.close()
	if !s.as.IsStopped() {
		s.as.Shutdown()
	}
	return err
}

// stop stops n and what is below it.
func (s *System) stop(ctx context.Context, n *node) error {
	if s.stopInOrder(ctx, n) {
		return nil
	}
	return s.abandonTree(context.Cause(ctx), n)
}

// stopInOrder tells whether everything had stopped when ctx ended.
func (s *System) stopInOrder(ctx context.Context, n *node) bool {
	s.mu.Lock()
	n.closing = true
	kids := slices.Clone(n.children)
	s.mu.Unlock()
	for _, k := range slices.Backward(kids) {
		if !s.stopInOrder(ctx, k) {
			return false
		}
	}
	select {
	case <-n.spawned:
	case <-ctx.Done():
		return false
	}
	s.tellStop(n)
	select {
	case <-n.done:
		return true
	case <-ctx.Done():
		return isClosed(n.done)
	}
}

func (s *System) tellStop(n *node) {
	if isClosed(n.done) {
		return
	}
	s.mu.Lock()
	n.stopTold = true
	s.mu.Unlock()
	s.as.Root.Stop(n.pid)
}

// abandonTree tells the remaining components to stop without draining, and after a grace names those whose own
// code has not returned.
func (s *System) abandonTree(cause error, n *node) error {
	s.mu.Lock()
	left := n.subtree(nil)
	for _, l := range left {
		l.closing = true
	}
	s.mu.Unlock()
	for _, l := range slices.Backward(left) {
		l.abandon()
		if isClosed(l.spawned) {
			s.tellStop(l)
		}
	}
	passed := make(chan struct{})
	stop := s.clock.AfterFunc(stopGrace, func() { close(passed) })
	defer stop()
	out := &StopError{Cause: cause}
	for _, l := range slices.Backward(left) {
		select {
		case <-l.done:
		case <-passed:
		}
		if l.box != nil && !isClosed(l.done) {
			out.Names = append(out.Names, l.path)
		}
	}
	if len(out.Names) == 0 {
		return nil
	}
	return out
}

// beginStop stops a subtree in the background. StopTree waits for it.
func (s *System) beginStop(n *node) {
	s.mu.Lock()
	if n.gone || s.root.closing { // StopTree stops it
		s.mu.Unlock()
		return
	}
	n.closing = true
	s.background.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.background.Done()
		ctx, cancel := context.WithTimeoutCause(context.Background(), s.stopTimeout,
			errs.New(errs.CodeShutdown, "a stop of %s that was begun did not end in %s", n.path, s.stopTimeout))
		defer cancel()
		if err := s.stop(ctx, n); err != nil {
			s.log.Error("component does not stop", "component", n.path, "err", err)
		}
	}()
}
