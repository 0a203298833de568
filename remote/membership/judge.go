package membership

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/remote"
)

// JudgeConfig is how long a life may be silent.
type JudgeConfig struct {
	// Beat is how often a node writes its row.
	Beat time.Duration
	// Lease is how long a life may be silent, with nothing else against it.
	Lease time.Duration
	// Accused is how long a life may be silent of which another node has said that it does not hear it either.
	Accused time.Duration
}

// DefaultJudgeConfig ends a life 8 s after its last heartbeat, or 5 s if another node misses it too.
//
// The lower bound is a node that lives: stopped for 2 s it is silent for 3 s, and its server writes what it says within a second; one whose processor is full is late
// too, but within seconds. So 5 s leave a second. A slow disk under the tables takes none of it: it delays what the judge's own server writes as well. The upper bound is what a stopped node may cost: every other node must know within 10 s that its
// actors may begin again. Ray allows 5 misses of 3 s with 10 s each, Kubernetes a lease of 40 s, memberlist with these constants 4 s to 24 s.
func DefaultJudgeConfig() JudgeConfig {
	return JudgeConfig{Beat: time.Second, Lease: 8 * time.Second, Accused: 5 * time.Second}
}

// Validate tells what is wrong.
func (c JudgeConfig) Validate() error {
	var wrong []error
	if c.Beat <= 0 {
		wrong = append(wrong, fmt.Errorf("heartbeats every %v; it must be above 0", c.Beat))
	}
	if c.Accused < 3*c.Beat || c.Lease < c.Accused {
		wrong = append(wrong, fmt.Errorf("a life ends after %v, an accused one after %v; the second must be at least three heartbeats (%v), the first at least the second",
			c.Lease, c.Accused, 3*c.Beat))
	}
	return errors.Join(wrong...)
}

// Judge is the rule by which the control plane ends a life. Each server of the control plane has one and steps it on the rows as its watch
// shows them, in order; whoever finds a life over fences it by compare-and-set.
//
// Time is the judge's own: it passes only while the judge's own heartbeat comes back to it by the same watch. While the tables have no leader, while the judge is
// cut off from them, stopped or short of processor, no heartbeat of its own comes, and nobody's silence grows. When the first one comes again, all that the others
// wrote before it has been shown, since the watch is in order; and however long the pause was, it counts as one heartbeat. No clock of another machine is read.
type Judge struct {
	cfg   JudgeConfig
	self  remote.Life
	time  int64 // that has passed, by own heartbeats
	echo  int64 // when the last own heartbeat came, 0: none
	beat  uint64
	lives map[ids.Home]*suspect
}

// suspect is the latest life of another home.
type suspect struct {
	epoch   uint64
	beat    uint64
	heard   int64 // when, by the judge's time
	accused bool
	since   int64 // when it was accused last, likewise
	ended   bool
}

// NewJudge makes a judge for the server on this node.
func NewJudge(cfg JudgeConfig, self remote.Life) *Judge {
	return &Judge{cfg: cfg, self: self, lives: make(map[ids.Home]*suspect)}
}

// Heard takes a row. It gives the lives that are over, again with each own heartbeat until Ended says that they were fenced.
func (j *Judge) Heard(now int64, l remote.Life, beat uint64) []remote.Life {
	if l == j.self {
		return j.passed(now, beat)
	}
	s := j.lives[l.Home]
	switch {
	case s == nil || l.Epoch > s.epoch:
		j.lives[l.Home] = &suspect{epoch: l.Epoch, beat: beat, heard: j.at(now)}
	case l.Epoch == s.epoch && beat > s.beat: // else the watch shows an old row again
		s.beat, s.heard = beat, j.at(now)
		s.accused = s.accused && s.heard-s.since < int64(j.cfg.Beat)
	}
	return nil
}

// Accused notes that a node does not hear a life. That alone ends nothing, and a heartbeat contradicts it: not one that comes just behind it, since heartbeats are
// shown when they are as old as the time between two of them. The judge's own node does not count: when its network is cut it hears nobody, and it is the one to blame.
func (j *Judge) Accused(now int64, by ids.Home, l remote.Life) {
	if by == j.self.Home {
		return
	}
	if s := j.lives[l.Home]; s != nil && s.epoch == l.Epoch {
		s.accused, s.since = true, j.at(now)
	}
}

// Ended notes that a home's lives up to this one are over: they were fenced, or the node has left in order.
func (j *Judge) Ended(l remote.Life) {
	if s := j.lives[l.Home]; s == nil || s.epoch <= l.Epoch {
		j.lives[l.Home] = &suspect{epoch: l.Epoch, ended: true} // kept, since an old row may still be shown
	}
}

// passed lets the time since the last own heartbeat pass, and judges.
func (j *Judge) passed(now int64, beat uint64) []remote.Life {
	if beat <= j.beat {
		return nil
	}
	gap := now - j.echo
	if gap > 2*int64(j.cfg.Beat) { // something stood still: this judge, or what its heartbeats pass through
		gap = int64(j.cfg.Beat)
	}
	if j.echo != 0 {
		j.time += gap
	}
	j.echo, j.beat = now, beat
	var over []remote.Life
	for home, s := range j.lives {
		if !s.ended && j.time-s.heard >= j.allowed(s) {
			over = append(over, remote.Life{Home: home, Epoch: s.epoch})
		}
	}
	slices.SortFunc(over, func(a, b remote.Life) int { return cmp.Compare(a.Home, b.Home) })
	return over
}

// at is the judge's time between two of its heartbeats: never later than it will be at the next.
func (j *Judge) at(now int64) int64 {
	if j.echo == 0 {
		return j.time
	}
	return j.time + min(now-j.echo, int64(j.cfg.Beat))
}

// allowed is how long a life may be silent. Heartbeats are shown together with the judge's own, a second apart, and not to the moment: one that comes a little early
// does not let the life go on for another second.
func (j *Judge) allowed(s *suspect) int64 {
	early := int64(j.cfg.Beat / 4)
	if s.accused {
		return int64(j.cfg.Accused) - early
	}
	return int64(j.cfg.Lease) - early
}
