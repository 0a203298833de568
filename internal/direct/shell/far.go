package shell

import (
	"sync"
	"sync/atomic"

	"mobula/internal/direct"
)

// This file is where a channel leads to another process (package wired): the Callee of one with a Far, and the Mailbox of one with a Near.

// Far is the mailbox at the other end of a channel from this process. All but Flush is called under the Callee's lock, in order: it hands over.
type Far interface {
	Send(k *Call) // the next one
	Withdraw(no uint64, w direct.Wish, unbegun *direct.Outcome)
	Took(upTo uint64) // answers
	HangUp()          // nothing follows
	Begun() []uint64  // of each group, the last call that has begun
	Unread() int64    // bytes of answers that may be left unacknowledged
	Flush()           // without a lock: what was said is on its way
}

// OpenFar answers AskWay with a channel to a mailbox of another process. What comes back Came is told.
func (c *Callee) OpenFar(far Far, w Way) { c.open(&link{id: w.Channel, from: c, far: far}, w) }

// Came takes what has come of such a channel, in order: answers; with last that the mailbox says no more; with over that the channel was read to its end. What the answers
// have is kept, and they are not.
func (c *Callee) Came(ch direct.Channel, answers []direct.Answered, last, over bool) {
	c.mu.Lock()
	defer c.leave()
	for i := range answers {
		l := c.link(ch)
		if l == nil || l.broken {
			return
		}
		l.got = answers[i].AckNo
		if o := answers[i].Outcome; o != nil {
			l.unread += o.Bytes
		}
		c.step(&answers[i])
		if answers[i].Holds {
			c.p.up.AskHeld(c, ch, answers[i].AckNo, answers[i].Outcome)
		}
	}
	if l := c.link(ch); l != nil && !l.broken && last {
		c.step(direct.Broke{Channel: ch, Last: true})
	}
	if l := c.link(ch); l != nil && !l.broken && over {
		l.broken = true
		c.step(direct.Broke{Channel: ch})
	}
}

// Sent is a call that is under way on a channel; nil: it has ended.
func (c *Callee) Sent(ch direct.Channel, no uint64) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.core.Sent(ch, no)
	if k == nil {
		return nil
	}
	call := callOf(k)
	call.shown = true
	return call
}

// flush has what was said on a link to another process go, when no lock is held any more.
func (l *link) flush() after { return after{far: l.far} }

// takenFar is taken of a link to another process: that hears with the next call, or at a sweep; at once where the bytes are many.
func (l *link) takenFar() after {
	many := l.unread > l.far.Unread()/4
	if !many && l.ack-l.acked < ackEvery {
		return after{}
	}
	if later := l.ackTo(); many {
		return later
	}
	return after{}
}

// ackTo tells another process which answers were taken, with what was said before.
func (l *link) ackTo() after {
	if l.ack != l.acked {
		if l.acked = l.ack; l.acked == l.got {
			l.unread = 0
		}
		l.far.Took(l.ack)
	}
	return l.flush()
}

// hangUp ends a link.
func (l *link) hangUp() after {
	if l.far == nil {
		return l.to.unlink(l)
	}
	l.far.HangUp()
	return l.flush()
}

func (l *link) withdraw(f *direct.Effect) after {
	if l.far == nil {
		return l.to.unwanted(l, f)
	}
	l.far.Withdraw(f.No, f.Wish, f.Outcome)
	return l.flush()
}

// flushed notes that a channel to another process is to be flushed.
func (a *after) flushed(far Far) {
	if a.far != nil && a.far != far {
		a.far.Flush() // of one that is over, under the lock
	}
	a.far = far
}

// Near is a process that calls, at the other end of a channel to a mailbox of this one. One goroutine at a time is in Answer and Last, in order, and no lock is held.
type Near interface {
	Answer(a *direct.Answered) // it is not kept, but what it has
	Last()                     // nothing follows
	Flush()                    // what was said is on its way
}

// near is a link's Near.
type near struct {
	Near
	mu sync.Mutex // of who takes and tells
}

// Serve has the mailbox take calls of another process: Arrive, Withdrawn and Took tell what has come. Of each group begun says, for who looks on, the last call that has
// begun.
func (m *Mailbox) Serve(ch direct.Channel, begun []uint64, n Near) {
	m.link(&link{id: ch, to: m, near: &near{Near: n}, begun: begun}).do()
}

// Unserve says that the channel was read to its end. Nothing is told any more, and begun is not written.
func (m *Mailbox) Unserve(ch direct.Channel) {
	m.mu.Lock()
	var later after
	l := m.links[ch]
	if l != nil {
		delete(m.links, ch)
		m.last = nil
		m.step(direct.Unlinked{Channel: ch})
		later = m.takeAfter()
	}
	m.mu.Unlock()
	later.do()
}

// deliver tells the other process what is on its way.
func (l *link) deliver() {
	n := l.near
	n.mu.Lock()
	got := l.take()
	for i := range got {
		if got[i].last {
			n.Last()
		} else {
			n.Answer(&got[i].Answered)
		}
	}
	clear(got)
	l.spare = got
	n.mu.Unlock()
	n.Flush()
}

// begins counts a call that is about to begin.
func (l *link) begins(group int, nth uint64) {
	if l.near != nil {
		atomic.StoreUint64(&l.begun[group], nth)
		return
	}
	l.begun[group] = nth
}

// Groups is how many concurrency groups the actor has.
func (m *Mailbox) Groups() int { return len(m.cfg.Groups) }

// Unread is how many bytes of answers a channel may leave unacknowledged.
func (m *Mailbox) Unread() int64 { return m.cfg.Unread }
