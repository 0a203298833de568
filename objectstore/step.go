package objectstore

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

func (s *step) emit(f Effect) { s.out = append(s.out, f) }

// keepNote has a new core step an event first.
func (s *step) keepNote(k NoteKey, ev Event) { s.emit(Remember{Key: k, Event: ev}) }

func (s *step) newJob(what any) uint64 {
	s.job++
	s.jobs[s.job] = what
	return s.job
}

// takeJob finds and ends a job; nil for one of an earlier core.
func takeJob[T any](s *step, job uint64) (T, bool) {
	v, ok := s.jobs[job].(T)
	if ok {
		delete(s.jobs, job)
	}
	return v, ok
}

// wakeAt asks for a Tick no later than at.
func (s *step) wakeAt(at int64) {
	if s.wake == 0 || at < s.wake {
		s.wake = at
	}
}

// arm sets the timer where this step wants an earlier one than is set.
func (c *Core) arm() {
	if c.wake != 0 && (c.timer == 0 || c.wake < c.timer) {
		c.timer = c.wake
		c.emit(SetTimer{c.wake})
	}
}

// log emits a line at most once in LogEvery for each message.
func (s *step) log(msg string, err error) {
	if at, ok := s.logged[msg]; ok && s.now-at < int64(s.cfg.LogEvery) {
		return
	}
	s.logged[msg] = s.now
	s.emit(Log{msg, err})
}

func (s *step) after(d time.Duration) int64 { return s.now + int64(d) }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
