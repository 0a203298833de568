package node

import (
	"maps"
	"slices"

	"mobula/actors"
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

// unanswered are the events that the next core is to answer, though it may not find them in its mailbox. One on which two cores panicked that were given it so is answered
// with an error.
func (t *asks) unanswered(start actors.Start) (all []jobs.Event) {
	if ev, ok := start.Blamed.(jobs.Event); ok && t.blame(jobs.AskOf(ev)) {
		t.end(jobs.AskOf(ev), start.Reason)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range slices.Sorted(maps.Keys(t.open)) {
		if ev := t.open[a].ev; jobs.Waits(ev) {
			all = append(all, ev)
		}
	}
	return all
}

// blame notes that an ask has brought down a core that was given it as it began; true: a second one.
func (t *asks) blame(a jobs.Ask) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.open[a]
	if q == nil {
		return false
	}
	q.blamed++
	return q.blamed > 1
}
