package direct

import (
	"mobula/internal/ids"
	"mobula/internal/queue"
)

// This file is how calls get from their lines on their way.

// line is the calls of one caller that were not sent, in order. There is one only while some wait, or are with the owner: a call that nothing is before goes
// without.
type line struct {
	id    ids.TaskID
	at    int // in the list
	calls queue.Queue[*Call]
	waits bool // for credit
	sent  int  // of this caller, on the channel; notCounted
	owned int  // with the owner
}

// notCounted says that nobody has counted, since a line begins, and only a call that goes by the owner needs to know.
const notCounted = -1

func (c *Caller) line(of ids.TaskID) *line {
	if l := c.lines[of]; l != nil {
		return l
	}
	l := &line{id: of, at: len(c.list), sent: notCounted}
	if c.lines == nil {
		c.lines = make(map[ids.TaskID]*line)
	}
	c.lines[of] = l
	c.list = append(c.list, l)
	return l
}

// onChannel is how many calls of a line are on the channel.
func (c *Caller) onChannel(l *line) int {
	if l.sent != notCounted {
		return l.sent
	}
	l.sent = 0
	if c.ch == nil {
		return 0
	}
	for _, k := range c.ch.flight.All() {
		if k != nil && k.Caller == l.id {
			l.sent++
		}
	}
	return l.sent
}

// goOn sends what may go since a call of this caller has ended.
func (c *Caller) goOn(of ids.TaskID) {
	if len(c.lines) == 0 {
		return
	}
	if l := c.lines[of]; l != nil {
		c.pump(l)
	}
}

// maybeForget drops a line in which nothing waits.
func (c *Caller) maybeForget(l *line) {
	if l.calls.Len() > 0 || l.owned > 0 || l.waits || c.lines[l.id] != l {
		return
	}
	delete(c.lines, l.id)
	end := len(c.list) - 1
	last := c.list[end]
	c.list[l.at], last.at = last, l.at
	c.list[end] = nil
	c.list = c.list[:end]
}

// pumpAll goes through the lines from the last, since one that is done leaves.
func (c *Caller) pumpAll() {
	for i := len(c.list) - 1; i >= 0; i-- {
		c.pump(c.list[i])
	}
}

// pump sends what is next in a line and can go. The way changes only when all that went the other has ended.
func (c *Caller) pump(l *line) {
	for goOn := true; goOn && l.calls.Len() > 0; {
		goOn = c.next(l)
	}
	c.maybeForget(l)
}

// next sends the first of a line, if it can go. What goes by the owner has its arguments resolved there, and its errors: the same call may have
// been made before. So the way is asked for before an argument is there.
func (c *Caller) next(l *line) bool {
	k := l.calls.Front()
	if c.way == unknown && !k.ByOwner && l.owned == 0 {
		c.way = asked
		c.do(Effect{Do: AskWay})
	}
	owner := k.ByOwner || c.way == byOwner
	if owner && c.onChannel(l) > 0 || !owner && (l.owned > 0 || k.missing > 0) {
		return false
	}
	if owner {
		l.calls.Pop()
		l.owned++
		c.owned++
		c.touch(k).stage, k.submitted = withOwner, true
		c.do(Effect{Do: Submit, Call: k})
		return true
	}
	if c.way != straight {
		return false
	}
	if !c.ch.takes(k) {
		if !l.waits {
			l.waits = true
			c.starved.Push(l)
		}
		return false
	}
	l.calls.Pop()
	if l.sent != notCounted {
		l.sent++
	}
	c.send(k)
	return true
}

// feed goes on with lines that have waited for credit, the one first that has waited longest.
func (c *Caller) feed() {
	for c.way == straight && c.starved.Len() > 0 {
		l := c.starved.Front()
		if l.calls.Len() > 0 && !c.ch.takes(l.calls.Front()) {
			return
		}
		c.starved.Pop()
		l.waits = false
		c.pump(l)
	}
}

// takes tells whether there is credit for a call. One may always go, however large.
func (ch *channel) takes(k *Call) bool { return ch.credit >= k.Bytes || ch.flight.Len() == 0 }

func (c *Caller) send(k *Call) {
	ch := c.touchChannel(c.ch)
	ch.sent++
	for len(ch.groups) <= k.Group {
		ch.groups = append(ch.groups, 0)
	}
	ch.groups[k.Group]++
	c.touch(k).stage, k.no, k.nth, k.said, k.outcome = onChannel, ch.sent, ch.groups[k.Group], SaidNothing, nil
	ch.credit -= k.Bytes
	if ch.flight.Len() == 0 {
		ch.first = k.no
	}
	ch.flight.Push(k)
	if k.adopted {
		c.adopt(k)
	}
	c.do(Effect{Do: Send, Call: k, Channel: ch.id, No: k.no})
}

// leave takes a call that has ended out of what is under way.
func (c *Caller) leave(ch *channel, k *Call) {
	ch.credit += k.Bytes
	if len(c.lines) > 0 {
		if l := c.lines[k.Caller]; l != nil && l.sent != notCounted {
			l.sent--
		}
	}
	ch.flight.All()[k.no-ch.first] = nil
	for ch.flight.Len() > 0 && ch.flight.Front() == nil {
		ch.flight.Pop()
		ch.first++
	}
}
