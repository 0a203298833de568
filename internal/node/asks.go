package node

import (
	"maps"
	"slices"

	"mobula/internal/node/jobs"
)

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
