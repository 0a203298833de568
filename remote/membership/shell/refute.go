package shell

import (
	"strings"
	"time"
)

// refutes begins the lines that memberlist prints when it was told that this node is suspected or dead, and has said that it lives. It has no other way to tell.
const refutes = "Refuting a "

// witnesses is with how many nodes this one exchanges all state after a refutation. One of them may not answer.
const witnesses = 2

// noticeRefutation looks whether a line of memberlist's tells of a refutation. It is called with memberlist's locks held.
func (m *Membership) noticeRefutation(text string) {
	if !strings.HasPrefix(text, refutes) {
		return
	}
	select {
	case m.refuted <- struct{}{}:
	default: // an exchange is to come
	}
}

// confirmRefutations exchanges all state with some nodes when this one has refuted that it is dead, after the interval of a probe.
//
// Memberlist gossips a refutation a few times, and it may not gossip it at all: its queue of broadcasts numbers two of one length alike now and then, and drops the
// first (pull request 263 of hashicorp/memberlist). Nodes that suspect this one and do not hear that it lives give it up, four intervals later at the earliest,
// however well it answers their probes: an answer does not end a suspicion, and this node does not refute what it has refuted before. An exchange goes over a
// stream, and whoever learns something by it passes that on. There is at most one in three intervals.
func (m *Membership) confirmRefutations() {
	for {
		select {
		case <-m.refuted:
		case <-m.life.Done():
			return
		}
		if !m.pause(m.cfg.Timing.Probe) {
			return
		}
		for _, address := range m.others(witnesses) {
			if m.begin(func() { _, _ = m.list.Join([]string{address}) }) != nil { // one that does not answer costs what it would by chance
				return
			}
		}
		if !m.pause(2 * m.cfg.Timing.Probe) {
			return
		}
	}
}

// pause waits so long, and tells whether the component goes on.
func (m *Membership) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-m.life.Done():
		return false
	}
}

// others gives the addresses of at most so many nodes that memberlist has alive, by chance.
func (m *Membership) others(most int) (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.alive {
		if len(out) == most {
			break
		}
		out = append(out, n.Addresses.Gossip)
	}
	return out
}
