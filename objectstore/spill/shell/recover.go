package shell

import (
	"context"
	"errors"
	"fmt"

	"mobula/objectstore/spill"
)

// Recover is called after the store was rebuilt, with every location in its index. Queued requests, and those given to
// Write or Read until Recover returns, are answered with errs.ErrCancelled. Recover waits for I/O in flight, so no
// earlier request touches segment memory after it. Then it counts references again, and deletes files and mapped files
// without one. It blocks for as long as the I/O in flight. It gives the sizes of the files that it keeps.
//
// The answer to a Write from before may still be on its way; its files are gone, unless live has them.
func (s *Spiller) Recover(live []spill.Location) map[spill.FileKey]uint64 {
	defer s.resume()
	_ = s.quiesce(context.Background(), true) // without a deadline there is no error
	s.mu.Lock()
	s.refs = spill.NewRefs()
	for _, l := range live {
		if l, known := s.toIndex(l); known {
			s.refs.Add(l)
		}
	}
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.dropMapped()
	sizes := make(map[spill.FileKey]uint64)
	for _, t := range s.targets {
		if err := s.dropOrphans(t, sizes); err != nil {
			s.mu.Lock()
			s.complain("spill files of before cannot be listed", err)
			s.mu.Unlock()
		}
	}
	return sizes
}

// dropOrphans deletes the files of a target without references, and notes the sizes of the others.
func (s *Spiller) dropOrphans(t *target, sizes map[spill.FileKey]uint64) error {
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
		} else {
			sizes[spill.FileKey{Target: t.number, File: f.Number}] = f.Size
		}
	}
	return nil
}

// quiesce drops queued requests and waits for running ones; with supersede, earlier answers do not count.
func (s *Spiller) quiesce(ctx context.Context, supersede bool) error {
	s.mu.Lock()
	s.stopping++
	if supersede {
		s.epoch++
	}
	for _, t := range s.targets {
		if t.ref != nil {
			t.ref.Deliver(spill.Cancel{}) // if it has stopped, down has answered its jobs
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

// Close answers queued requests with errs.ErrShutdown and waits for I/O in flight until ctx ends; then it
// interrupts I/O that can be interrupted. It deletes the session's files, unless Config.Keep is set, or Start was not called: what is there then was an earlier
// node's, or is that of one which runs on another machine.
func (s *Spiller) Close(ctx context.Context) error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	return s.shut(ctx, s.started && !s.cfg.Keep)
}

func (s *Spiller) shut(ctx context.Context, remove bool) error {
	err := s.quiesce(ctx, false)
	s.stopIO()
	// After its deadline a stop still gets a little time, for interrupted I/O to return.
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
