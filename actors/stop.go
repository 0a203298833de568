package actors

import (
	"context"
	"errors"
	"slices"

	"mobula/internal/errs"
)

// StopTree stops every component, in each family the last started first and children
// before parents, and then the system itself; Spawn fails from then on. When ctx ends
// first the rest is abandoned: told to stop, not drained, not waited for, and named
// in the *StopError.
func (s *System) StopTree(ctx context.Context) error {
	err := s.stop(ctx, s.root)
	waited := make(chan struct{})
	go func() { // stops that were begun elsewhere
		s.background.Wait()
		close(waited)
	}()
	select {
	case <-waited:
	case <-ctx.Done():
	}
	if !s.as.IsStopped() {
		s.as.Shutdown()
	}
	return err
}

// stop stops n and what is below it.
func (s *System) stop(ctx context.Context, n *node) error {
	s.mu.Lock()
	n.closing = true
	kids := slices.Clone(n.children)
	s.mu.Unlock()
	out := &StopError{}
	for _, k := range slices.Backward(kids) {
		out.add(s.stop(ctx, k))
	}
	select {
	case <-n.spawned:
	case <-ctx.Done():
	}
	if isClosed(n.spawned) && !isClosed(n.done) {
		s.mu.Lock()
		n.told = true
		s.mu.Unlock()
		s.as.Root.Stop(n.pid)
	}
	select {
	case <-n.done:
	case <-ctx.Done():
		if !isClosed(n.done) {
			n.abandon()
			out.add(&StopError{Names: []string{n.path}, Cause: context.Cause(ctx)})
		}
	}
	if len(out.Names) == 0 {
		return nil
	}
	return out
}

func (e *StopError) add(err error) {
	var more *StopError
	if errors.As(err, &more) {
		e.Names = append(e.Names, more.Names...)
		e.Cause = more.Cause
	}
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
