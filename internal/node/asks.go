package node

import (
	"maps"
	"slices"
	"sync"

	"mobula/internal/node/jobs"
)

// asks is who waits for an answer of the core of jobs. It outlives cores.
type asks struct {
	mu   sync.Mutex
	last jobs.Ask               // guarded by mu
	open map[jobs.Ask]*question // guarded by mu
}

// question is one ask.
type question struct {
	ev   jobs.Event
	s    *session      // that is to be let in; nil: none is
	done chan struct{} // closed behind err
	err  error
}

// add makes an ask of the event that with gives for it.
func (t *asks) add(s *session, with func(jobs.Ask) jobs.Event) *question {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	q := &question{ev: with(t.last), s: s, done: make(chan struct{})}
	if t.open == nil {
		t.open = make(map[jobs.Ask]*question)
	}
	t.open[t.last] = q
	return q
}

// end answers; the first answer counts.
func (t *asks) end(a jobs.Ask, err error) {
	t.mu.Lock()
	q := t.open[a]
	delete(t.open, a)
	t.mu.Unlock()
	if q != nil {
		q.err = err
		close(q.done)
	}
}

// session is the one that an ask is about.
func (t *asks) session(a jobs.Ask) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.open[a]; q != nil {
		return q.s
	}
	return nil
}

// unanswered are the events that a next core is to answer.
func (t *asks) unanswered() []jobs.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []jobs.Event
	for _, a := range slices.Sorted(maps.Keys(t.open)) {
		all = append(all, t.open[a].ev)
	}
	return all
}
