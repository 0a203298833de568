package shell

import (
	"slices"

	"mobula/internal/direct"
)

// link is a channel between a Callee and a Mailbox of one process.
type link struct {
	id   direct.Channel
	from *Callee
	to   *Mailbox

	broken bool   // guarded by from.mu: nothing is sent on it any more
	got    uint64 // guarded by from.mu: answers
	ack    uint64 // guarded by from.mu: of these, what may be acknowledged
	acked  uint64 // guarded by from.mu: of which the mailbox knows that
	unread int64  // guarded by from.mu: bytes of answers of which it does not
	spare  []mail // guarded by from.mu

	out    []mail   // guarded by to.mu: on their way to the Callee
	listed bool     // guarded by to.mu: it is among the links that are to be delivered
	next   *link    // of these; guarded by to.mu until listed, then of who delivers
	begun  []uint64 // guarded by to.mu: of each group, the last call that has begun
}

// mail is an answer, or the word that nothing follows.
type mail struct {
	direct.Answered
	last bool
}

// links is a list of links with mail.
type links struct{ first, last *link }

func (ls *links) add(l *link) { ls.join(links{l, l}) }

func (ls *links) join(more links) {
	switch {
	case more.first == nil:
	case ls.first == nil:
		*ls = more
	default:
		ls.last.next, ls.last = more.first, more.last
	}
}

// deliver has Callees take what is on its way to them. No lock is held.
func (ls links) deliver() {
	for l := ls.first; l != nil; {
		next := l.next // another one may list it again as soon as its mail is taken
		l.next = nil
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
			c.step(&x.Answered)
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
func (l *link) send(k *Call) links {
	in := &k.in
	if k.went { // an earlier instance may have it still
		in = new(direct.Incoming)
	}
	k.went = true
	in.ID, in.Group, in.Payload = k.ID, k.Group, k
	m := l.to
	m.mu.Lock()
	defer m.mu.Unlock()
	l.acknowledgeLocked()
	m.step(direct.Arrived{Channel: l.id, Call: in})
	return m.takeDirty()
}

// ackEvery is how many answers are taken before the mailbox hears of it, unless a call takes the word along or their bytes are many.
const ackEvery = 256

// taken notes which answers may be acknowledged. The Callee's lock is held.
func (l *link) taken(upTo uint64) links {
	l.ack = upTo
	if l.ack-l.acked < ackEvery && l.unread <= l.to.cfg.Unread/4 {
		return links{}
	}
	return l.acknowledge()
}

// acknowledge tells the mailbox which answers were taken. The Callee's lock is held.
func (l *link) acknowledge() links {
	if l.ack == l.acked {
		return links{}
	}
	l.to.mu.Lock()
	defer l.to.mu.Unlock()
	l.acknowledgeLocked()
	return l.to.takeDirty()
}

func (l *link) acknowledgeLocked() {
	if l.ack == l.acked {
		return
	}
	if l.acked = l.ack; l.acked == l.got { // else some are held back, and it counts too many
		l.unread = 0
	}
	l.to.step(direct.Acked{Channel: l.id, UpTo: l.ack})
}

// counts is what has begun.
func (l *link) counts() []uint64 {
	l.to.mu.Lock()
	defer l.to.mu.Unlock()
	return slices.Clone(l.begun)
}
