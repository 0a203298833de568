package objectstore

import "time"

// step is what every part has in common: the configuration, the time and output of the step under way, and what the shell has under way.
type step struct {
	cfg        Config
	now        int64
	out        []Effect
	jobs       map[uint64]any // *demand, *spillJob, *reservation
	job        uint64
	note       uint64
	epoch      uint64
	recovering bool  // Drained is to come: no spill I/O before it
	timer      int64 // armed for, 0: none
	wake       int64 // earliest time wanted by this step
	logged     map[string]int64
	counts     Counters
}

func (s *step) emit(f Effect) { s.out = append(s.out, f) }

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
