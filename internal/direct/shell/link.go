package shell

import (
	"slices"

	"mobula/internal/direct"
	"mobula/internal/queue"
)

// link is a channel between a Callee and a Mailbox of one process.
type link struct {
	id   direct.Channel
	from *Callee
	to   *Mailbox
	far  Far   // in place of to: it leads to another process
	near *near // in place of from: it comes from another process

	broken bool               // guarded by from.mu: nothing is sent on it any more
	got    uint64             // guarded by from.mu: answers
	ack    uint64             // guarded by from.mu: of these, what may be acknowledged
	acked  uint64             // guarded by from.mu: of which the mailbox knows that
	unread int64              // guarded by from.mu: bytes of answers of which it does not
	spare  []mail             // guarded by from.mu
	ended  queue.Queue[ended] // guarded by from.mu: calls for Up.Spare, as their answers came, once the mailbox has forgotten them

	out     []mail         // guarded by to.mu: on their way to the Callee
	quiet   bool           // guarded by to.mu: it is among those with mail that nobody waits for
	listed  bool           // guarded by to.mu: it is among the links that are to be delivered
	next    *link          // of these; guarded by to.mu until listed, then of who delivers
	arrived direct.Arrived // guarded by to.mu: the event of the last call
	begun   []uint64       // guarded by to.mu: of each group, the last call that has begun
}

// mail is an answer, or the word that nothing follows.
type mail struct {
	direct.Answered
	last bool
}

// after is what is to be done when no lock is held any more: mail is delivered, and goroutines are woken. Those would only wait for a lock before.
type after struct {
	first, last *link   // with mail
	wake        *runner // the first of a list
	tell        boxes   // whose users have something to hand over
	far         Far     // to be flushed; nil: none
}

func (a *after) none() bool { return a.first == nil && a.wake == nil && a.tell.first == nil }

func (a *after) add(l *link) {
	if a.first == nil {
		a.first = l
	} else {
		a.last.next = l
	}
	a.last = l
}

func (a *after) join(more after) {
	a.tell.join(more.tell)
	if more.far != nil {
		a.flushed(more.far)
	}
	if more.first != nil {
		a.add(more.first)
		a.last = more.last
	}
	for more.wake != nil {
		r := more.wake
		more.wake, r.also = r.also, a.wake
		a.wake = r
	}
}

// do does it. No lock is held.
func (a after) do() {
	for r := a.wake; r != nil; {
		also := r.also
		r.also = nil
		r.wake <- struct{}{} // from here on it is its own
		r = also
	}
	a.tell.handOver()
	if a.far != nil {
		a.far.Flush()
	}
	for l := a.first; l != nil; {
		next := l.next // another one may list it again as soon as its mail is taken
		l.next = nil
		if l.near != nil {
			l.deliver()
			l = next
			continue
		}
		l.from.mu.Lock()
		l.from.drain(l)
		l.from.leave()
		l = next
	}
}

// drain has the Callee take what is on its way. Its lock is held.
func (c *Callee) drain(l *link) {
	got := l.take()
	for i := range got {
		switch x := &got[i]; {
		case l.broken:
		case x.last:
			c.step(direct.Broke{Channel: l.id, Last: true})
		default:
			l.got = x.AckNo
			if x.Outcome != nil {
				l.unread += x.Outcome.Bytes
			}
			c.from = l
			c.step(&x.Answered)
			c.from = nil
		}
	}
	clear(got)
	l.spare = got
}

// take gives what is on its way, in order. The Callee's lock is held.
func (l *link) take() []mail {
	m := l.to
	m.mu.Lock()
	defer m.mu.Unlock()
	out := l.out
	l.out, l.spare, l.listed = l.spare[:0], nil, false
	return out
}

// send puts a call into the mailbox. The Callee's lock is held.
func (l *link) send(k *Call) after {
	if l.far != nil {
		l.far.Send(k)
		return l.flush()
	}
	in := &k.in
	if k.went { // an earlier instance may have it still
		in, k.shown = new(direct.Incoming), true
	}
	k.went = true
	in.ID, in.Tries, in.Group, in.Payload = k.ID, k.Tries(), k.Group, k
	m := l.to
	m.mu.Lock()
	defer m.mu.Unlock()
	l.arrived = direct.Arrived{Channel: l.id, Call: in}
	m.step(&l.arrived)
	l.arrived.Call = nil
	return m.takeAfter()
}

// ackEvery is how many answers are taken before the mailbox hears of it, unless their bytes are many. It hears of the rest at a sweep.
const ackEvery = 16

// taken notes which answers may be acknowledged. The Callee's lock is held.
func (l *link) taken(upTo uint64) after {
	l.ack = upTo
	if l.far != nil {
		return l.takenFar()
	}
	if l.ack-l.acked < ackEvery && l.unread <= l.to.cfg.Unread/4 {
		return after{}
	}
	return l.acknowledge()
}

// acknowledge tells the mailbox which answers were taken. The Callee's lock is held.
func (l *link) acknowledge() after {
	if l.far != nil {
		return l.ackTo()
	}
	if l.ack == l.acked {
		return after{}
	}
	m := l.to
	m.mu.Lock()
	if l.acked = l.ack; l.acked == l.got { // else some are held back, and it counts too many
		l.unread = 0
	}
	m.step(direct.Acked{Channel: l.id, UpTo: l.ack})
	forgotten := l.forgotten()
	later := m.takeAfter()
	m.mu.Unlock()
	for range forgotten {
		l.from.p.up.Spare(l.ended.Pop().call)
	}
	return later
}

// counts is what has begun.
func (l *link) counts() []uint64 {
	switch {
	case l.far != nil:
		return l.far.Begun()
	case l.to == nil:
		return l.begun
	}
	l.to.mu.Lock()
	defer l.to.mu.Unlock()
	return slices.Clone(l.begun)
}
