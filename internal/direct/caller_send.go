package direct

import "mobula/internal/ids"

// This file is how calls get from their lines on their way.

func (a *callee) line(of ids.TaskID) *line {
	if a.last != nil && a.last.id == of {
		return a.last
	}
	l := a.lines[of]
	if l == nil {
		l = &line{of: a, id: of, at: len(a.list)}
		a.lines[of] = l
		a.list = append(a.list, l)
	}
	a.last = l
	return l
}

// manyLines is how many lines of an actor are kept though nothing waits in them: most callers call again.
const manyLines = 64

// maybeForget drops a line of which nothing waits or is under way.
func (l *line) maybeForget() {
	a := l.of
	if len(a.list) <= manyLines || l.calls.Len() > 0 || l.out > 0 || l.waits || a.lines[l.id] != l {
		return
	}
	delete(a.lines, l.id)
	if a.last == l {
		a.last = nil
	}
	last := a.list[len(a.list)-1]
	a.list[l.at], last.at = last, l.at
	a.list[len(a.list)-1] = nil
	a.list = a.list[:len(a.list)-1]
}

// maybeForget drops an actor with which there is nothing any more.
func (c *Caller) maybeForget(a *callee) {
	if a.ch != nil || a.submitted > 0 || a.way != unknown && a.way != dead {
		return
	}
	for _, l := range a.list {
		if l.calls.Len() > 0 || l.out > 0 {
			return
		}
	}
	delete(c.actors, a.id)
	c.touchActor(a)
}

// pumpAll goes through the lines from the last, since one that is done leaves.
func (c *Caller) pumpAll(a *callee) {
	for i := len(a.list) - 1; i >= 0; i-- {
		c.pump(a.list[i])
	}
}

// pump sends what is next in a line and can go. The way changes only when all that went the other has ended.
func (c *Caller) pump(l *line) {
	for goOn := true; goOn && l.calls.Len() > 0; {
		goOn = c.next(l)
	}
	l.maybeForget()
}

// next sends the first of a line, if it can go. What is the owner's from the start has its arguments resolved there, and its errors: the same call may have
// been made before.
func (c *Caller) next(l *line) bool {
	a, k := l.of, l.calls.Front()
	owner := k.ByOwner || a.way == byOwner
	if k.missing > 0 && !k.ByOwner || l.out > 0 && l.owner != owner {
		return false
	}
	if !owner && a.way == unknown {
		c.touchActor(a).way = asked
		c.do(Effect{Do: AskWay, Actor: a.id})
	}
	if !owner && a.way != straight {
		return false
	}
	if !owner && !a.ch.takes(k) {
		if !l.waits {
			l.waits = true
			a.starved.Push(l)
		}
		return false
	}
	l.calls.Pop()
	l.owner = owner
	l.out++
	if owner {
		a.submitted++
		c.touch(k).stage, k.submitted = withOwner, true
		c.do(Effect{Do: Submit, Call: k})
	} else {
		c.send(a.ch, k)
	}
	return true
}

// feed goes on with lines that have waited for credit, the one first that has waited longest.
func (c *Caller) feed(a *callee) {
	for a.way == straight && a.starved.Len() > 0 {
		l := a.starved.Front()
		if l.calls.Len() > 0 && !a.ch.takes(l.calls.Front()) {
			return
		}
		a.starved.Pop()
		l.waits = false
		c.pump(l)
	}
}

// takes tells whether there is credit for a call. One may always go, however large.
func (ch *channel) takes(k *Call) bool { return ch.credit >= k.Bytes || ch.flight.Len() == 0 }

func (c *Caller) send(ch *channel, k *Call) {
	c.touchChannel(ch).sent++
	for len(ch.groups) <= k.Group {
		ch.groups = append(ch.groups, 0)
	}
	ch.groups[k.Group]++
	c.touch(k).stage, k.channel, k.no, k.nth, k.said, k.outcome = onChannel, ch.id, ch.sent, ch.groups[k.Group], SaidNothing, nil
	ch.credit -= k.Bytes
	ch.flight.Push(k)
	if k.adopted {
		c.adopt(k)
	}
	c.do(Effect{Do: Send, Call: k, Channel: ch.id, No: k.no})
}

// leave takes a call that has ended out of what is under way.
func (c *Caller) leave(ch *channel, k *Call) {
	ch.credit += k.Bytes
	k.line.out--
	ch.flight.All()[k.no-ch.first] = nil
	for ch.flight.Len() > 0 && ch.flight.Front() == nil {
		ch.flight.Pop()
		ch.first++
	}
}
