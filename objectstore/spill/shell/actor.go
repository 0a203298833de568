package shell

import (
	"context"
	"fmt"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/objectstore/spill"
)

// mailbox bounds the queue of a target's actor: reads are posted one by one, and a whole job's arguments may be
// restored at once.
const mailbox = 1 << 16

// spawn starts a target's actor and watches for its end.
func (s *Spiller) spawn(parent actors.Parent, t *target) error {
	ref, err := actors.Spawn(parent, actors.Spec[spill.Event, spill.Effect]{
		Kind: "spiller",
		Name: fmt.Sprintf("spiller/%d", t.n),
		New: func(actors.Start) (actors.Core[spill.Event, spill.Effect], []spill.Event, error) {
			return spill.NewCore(s.cfg.Config), s.currentJobs(t), nil
		},
		Do:      func(self *actors.Ref[spill.Event], f spill.Effect) { s.do(t, self, f) },
		Mailbox: mailbox,
	})
	if err != nil {
		return fmt.Errorf("spill target %s: %w", t.url.Redacted(), err)
	}
	s.mu.Lock()
	t.ref = ref
	s.mu.Unlock()
	s.work.Go(func() {
		<-ref.Done()
		s.down(t)
	})
	return nil
}

// currentJobs gives a new core the running and the waiting jobs. Waiting ones get new numbers, so that late events for
// old numbers do not count for them.
func (s *Spiller) currentJobs(t *target) []spill.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []spill.Event
	var waiting []*job
	for _, j := range s.jobs {
		if j.target != t.n {
			continue
		}
		if j.running {
			if j.lead {
				a := spill.Adopt{Req: j.request()}
				for _, w := range j.with {
					a.With = append(a.With, w.id)
				}
				out = append(out, a)
			}
		} else {
			waiting = append(waiting, j)
		}
	}
	for _, j := range waiting {
		delete(s.jobs, j.id)
		s.lastJob++
		j.id = s.lastJob
		s.jobs[j.id] = j
		out = append(out, spill.Submit{Req: j.request()})
	}
	if s.stopping > 0 {
		out = append(out, spill.Cancel{})
	}
	return out
}

// do runs one effect.
func (s *Spiller) do(t *target, self *actors.Ref[spill.Event], f spill.Effect) {
	switch f := f.(type) {
	case spill.Start:
		s.mu.Lock()
		j := s.jobs[f.ID]
		ok := j != nil && !j.running
		if ok {
			j.running, j.lead, j.with = true, true, nil
			for _, id := range f.With {
				if w := s.jobs[id]; w != nil && !w.running {
					w.running, w.lead = true, false
					j.with = append(j.with, w)
				}
			}
		}
		s.mu.Unlock()
		if ok {
			s.work.Go(func() { s.run(t, j) })
		} else if j == nil { // renumbered
			self.Deliver(spill.Finished{ID: f.ID, Err: context.Canceled})
		}
	case spill.Refuse:
		s.refuse(f)
	case spill.Probe:
		s.work.Go(func() {
			ctx, cancel := context.WithTimeout(s.io, s.cfg.IOTimeout)
			defer cancel()
			var c spill.Capacity
			err := guard(func() (err error) {
				c, err = t.storage.Probe(ctx, f.Write)
				return err
			})
			s.mu.Lock()
			s.stats.Probes++
			if err == nil {
				t.capacity = c
			}
			s.mu.Unlock()
			t.ref.Deliver(spill.Probed{Capacity: c, Err: err})
		})
	case spill.Wake:
		self.After(f.After, spill.Tick{})
	case spill.Turn:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.router.Turned(t.n, f.To)
		t.why = f.Why
		if f.To != spill.Healthy {
			s.complain("spill target "+t.url.Redacted()+" is "+f.To.String(), f.Why)
		}
	}
}

// refuse takes a job back from a target.
func (s *Spiller) refuse(f spill.Refuse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[f.ID]
	if j == nil || j.running != f.Overdue {
		return
	}
	delete(s.jobs, f.ID)
	if f.Overdue { // the I/O that hangs keeps this job; another target gets a copy
		j.abandoned = true
		again := *j
		again.abandoned = false
		j = &again
	}
	switch {
	case j.kind == spill.Write && f.Why != nil && s.stopping == 0:
		s.refused(j, f.Why)
		s.route(j)
	case j.kind == spill.Write:
		s.router.Settled(j.target, j.size, false)
		s.fail(j, s.stopError())
	case j.kind == spill.Read && f.Why != nil:
		s.fail(j, fmt.Errorf("spill target %s: %w", s.targets[j.target].url.Redacted(), f.Why))
	case j.kind == spill.Read:
		s.fail(j, s.stopError())
	default:
		s.complain("spill file could not be deleted", f.Why)
		s.fail(j, f.Why)
	}
}

func (s *Spiller) stopError() error {
	if s.closed {
		return s.goneError()
	}
	return errSuperseded()
}

// down takes over the jobs of a target's actor that has stopped for good.
func (s *Spiller) down(t *target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.router.Turned(t.n, spill.Failed)
	err := errs.New(errs.CodeComponentFailed, "the actor of spill target %s has stopped", t.url.Redacted())
	t.why = err
	for id, j := range s.jobs {
		if j.target != t.n || j.running {
			continue
		}
		delete(s.jobs, id)
		switch {
		case j.kind == spill.Write && s.stopping == 0 && !s.closed:
			s.refused(j, err)
			s.route(j)
		case j.kind == spill.Write:
			s.router.Settled(j.target, j.size, false)
			s.fail(j, s.stopError())
		default:
			s.fail(j, err)
		}
	}
}
