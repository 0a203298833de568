package shell

import (
	"context"
	"errors"
	"fmt"

	"mobula/objectstore/spill"
)

// Recover is called once the store was rebuilt, with every location that its index names. What is queued, and what
// is given to Write or Read until Recover returns, is answered with errs.ErrCancelled. I/O in flight is waited for: after
// Recover nothing of before touches segment memory any more. Then references are counted anew, and files and mapped files
// without one are deleted. It blocks for as long as the I/O in flight.
//
// The answer to a Write from before may still be on its way; its files are gone, unless live has them.
func (s *Spiller) Recover(live []spill.Location) {
	defer s.resume()
	_ = s.quiesce(context.Background(), true) // no deadline, no error
	s.mu.Lock()
	s.refs = spill.NewRefs()
	for _, l := range live {
		if l, known := s.inward(l); known {
			s.refs.Add(l)
		}
	}
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return
	}
	s.dropMapped()
	for _, t := range s.targets {
		if err := s.dropOrphans(t); err != nil {
			s.mu.Lock()
			s.complain("spill files of before cannot be listed", err)
			s.mu.Unlock()
		}
	}
}

// dropOrphans deletes the files of a target that no reference names.
func (s *Spiller) dropOrphans(t *target) error {
	ctx, cancel := context.WithTimeout(s.io, s.cfg.IOTimeout)
	defer cancel()
	files, err := t.storage.List(ctx)
	if err != nil {
		return fmt.Errorf("spill target %s: %w", t.url.Redacted(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range files {
		t.nextFile = max(t.nextFile, f.Number+1)
		if k := (spill.FileKey{Target: t.n, File: f.Number}); !s.refs.Has(k) {
			s.stats.Orphans++
			s.deleteFile(k)
		}
	}
	return nil
}

// quiesce gives up what is queued and waits for what moves; with supersede, no answer from before counts.
func (s *Spiller) quiesce(ctx context.Context, supersede bool) error {
	s.mu.Lock()
	s.stopping++
	if supersede {
		s.epoch++
	}
	for _, t := range s.targets {
		if t.ref != nil {
			t.ref.Deliver(spill.Cancel{}) // or it has stopped, and down has answered for it
		}
	}
	var idle chan struct{}
	if s.moving > 0 {
		if s.idle == nil {
			s.idle = make(chan struct{})
		}
		idle = s.idle
	}
	s.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Spiller) resume() {
	s.mu.Lock()
	s.stopping--
	s.mu.Unlock()
}

// Close answers what is queued with errs.ErrShutdown and waits for I/O in flight until ctx ends, then interrupts
// what can be interrupted. The session's files are deleted, unless Config.Keep is set.
func (s *Spiller) Close(ctx context.Context) error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	return s.shut(ctx, !s.cfg.Keep)
}

func (s *Spiller) shut(ctx context.Context, remove bool) error {
	err := s.quiesce(ctx, false)
	s.stopIO()
	// Past its deadline a stop still gets a moment: what was interrupted has to return.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if ctx.Err() == nil {
		grace, cancel = context.WithCancel(ctx)
		defer cancel()
	}
	for _, t := range s.targets {
		if t.ref != nil {
			err = errors.Join(err, t.ref.Stop(grace))
		}
	}
	if s.own != nil {
		err = errors.Join(err, s.own.StopTree(grace))
	}
	done := make(chan struct{})
	go func() {
		s.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-grace.Done():
		return errors.Join(err, fmt.Errorf("spill I/O did not end %v after it was interrupted: %w", stopTimeout, context.Cause(grace)))
	}
	s.releaseMapped(remove)
	for _, t := range s.targets {
		err = errors.Join(err, t.storage.Close(remove))
	}
	s.bufs.Trim()
	return err
}
