package direct

import (
	"math"

	"mobula/internal/errs"
	"mobula/internal/queue"
)

// This file is what becomes of calls that were sent.

func (c *Caller) answered(e *Answered) {
	ch := c.channel(e.Channel)
	if ch == nil || e.No > ch.sent {
		return
	}
	k := ch.call(e.No)
	switch {
	case k == nil: // it has ended with a core that was lost
	case k.stage == late:
		c.leave(ch, k)
		c.touch(k).stage = ended
		c.goOn(k.Caller)
	case e.Said != SaidNothing:
		c.touch(k).said, k.outcome = e.Said, e.Outcome
		ch.said = min(ch.said, e.AckNo-1)
		c.doubt(ch)
	default:
		c.leave(ch, k)
		c.settle(k, e.Outcome)
		c.goOn(k.Caller)
	}
	c.touchChannel(ch).answers = e.AckNo
	if e.Holds {
		if ch.holds == nil {
			ch.holds = make(map[uint64]bool)
		}
		ch.holds[e.AckNo] = true
	}
	c.acknowledge(ch)
	c.feed()
}

// call is the call of a number, if it is under way.
func (ch *channel) call(no uint64) *Call {
	if no < ch.first || no-ch.first >= uint64(ch.flight.Len()) {
		return nil
	}
	return ch.flight.All()[no-ch.first]
}

// acknowledge tells the host which answers were taken. Those are not of whose references the owner does not know yet, and those in place of a result, until
// it is known what becomes of the call.
func (c *Caller) acknowledge(ch *channel) {
	was := c.touchChannel(ch).acked
	for ch.acked < ch.answers && (len(ch.holds) == 0 || !ch.holds[ch.acked+1]) && (ch.over || ch.acked < ch.said) {
		ch.acked++
	}
	if ch.acked > was && !ch.gone {
		c.do(Effect{Do: AckUpTo, Channel: ch.id, No: ch.acked})
	}
	if ch.over && (ch.gone || ch.acked == ch.answers) {
		c.removeChannel(ch)
		c.do(Effect{Do: HangUp, Channel: ch.id})
	}
}

// idle lets a channel go on which nothing is under way.
func (c *Caller) idle(ch *channel) {
	if c.way == straight && c.ch == ch && ch.flight.Len() == 0 && ch.acked == ch.answers {
		c.ch, c.way, ch.over = nil, unknown, true
		c.acknowledge(ch)
	}
}

func (c *Caller) opened(e Opened) {
	if c.way != asked { // the answer to a question that was asked twice
		c.do(Effect{Do: HangUp, Channel: e.Channel})
		return
	}
	ch := &channel{credit: e.Credit, first: 1, facts: facts{id: e.Channel, instance: e.Instance, limit: e.Credit, said: math.MaxUint64}}
	c.channels = append(c.channels, c.touchChannel(ch))
	c.ch, c.way = ch, straight
	c.pumpAll()
}

func (c *Caller) noWay(e NoWay) {
	if c.way != asked {
		return
	}
	c.way = unknown
	if e.Dead {
		c.way, c.dead = dead, e.Err
	}
	c.failLines(e.Err)
}

// failLines ends what waits, but for calls that go by the owner: it has its own word on these.
func (c *Caller) failLines(err *errs.Error) {
	for i := len(c.list) - 1; i >= 0; i-- {
		l := c.list[i]
		var stay []*Call
		for l.calls.Len() > 0 {
			if k := l.calls.Pop(); k.ByOwner {
				stay = append(stay, k)
			} else {
				c.settle(k, &Outcome{Err: err})
			}
		}
		for _, k := range stay {
			l.calls.Push(k)
		}
		c.pump(l)
	}
}

func (c *Caller) broke(ch *channel, last bool) {
	if c.touchChannel(ch).gone = !last; ch.over {
		c.acknowledge(ch)
		return
	}
	if ch.broke {
		return
	}
	ch.broke = true
	c.doubt(ch)
	if ch.word != nil {
		c.over(ch, ch.word)
		return
	}
	c.do(Effect{Do: AskWord, Channel: ch.id})
}

// ownerLost asks again what an owner was asked that is lost, and tells again what it was told. What had ended it has in its log.
func (c *Caller) ownerLost() {
	for _, ch := range c.channels {
		c.do(Effect{Do: TellChannel, Channel: ch.id, Instance: ch.instance})
	}
	if c.ch != nil {
		for _, k := range c.ch.flight.All() {
			if k != nil && k.adopted && k.stage == onChannel {
				c.adopt(k)
			}
		}
	}
	for _, l := range c.list {
		for _, k := range l.calls.All() {
			if k.adopted {
				c.adopt(k)
			}
		}
	}
	for _, ch := range c.channels {
		if ch.broke && !ch.over {
			c.do(Effect{Do: AskWord, Channel: ch.id})
		}
	}
	if c.way == asked {
		c.do(Effect{Do: AskWay})
	}
}

// doubt has calls wait for the node's word.
func (c *Caller) doubt(ch *channel) {
	if c.way == straight && c.ch == ch {
		c.way = doubtful
	}
}

func (c *Caller) word(e *Over) {
	ch := c.channel(e.Channel)
	switch {
	case ch == nil || ch.over:
	case !ch.broke:
		c.touchChannel(ch).word = e
	default:
		c.over(ch, e)
	}
}

// over deals with all that is under way on a channel that is over, in order.
func (c *Caller) over(ch *channel, e *Over) {
	c.ch, c.way, c.touchChannel(ch).over = nil, unknown, true
	for c.starved.Len() > 0 {
		c.starved.Pop().waits = false
	}
	if e.Next == NextNone {
		c.way, c.dead = dead, e.Err
	}
	for _, l := range c.list {
		l.sent = 0
	}
	var again []*Call
	for _, k := range ch.flight.All() {
		switch {
		case k == nil:
		case k.stage == late:
			c.touch(k).stage = ended
		case k.final != nil:
			c.settle(k, &Outcome{Err: k.final})
		case e.Next != NextNone && c.again(k, e):
			c.touch(k).stage = inLine
			if again = append(again, k); k.adopted {
				c.adopt(k) // that it is nowhere now, and how many retries are left
			}
		case k.said == SaidCulprit:
			c.settle(k, k.outcome)
		default:
			c.settle(k, &Outcome{Err: e.Err})
		}
	}
	ch.flight, ch.first = queue.Queue[*Call]{}, ch.sent+1
	c.acknowledge(ch)
	for i := len(again) - 1; i >= 0; i-- { // each goes to the head of its line
		c.line(again[i].Caller).calls.PushFront(again[i])
	}
	switch {
	case e.Next == NextNone, e.Next == NextInstance && !e.Keeps:
		c.failLines(e.Err)
	default:
		c.pumpAll()
	}
}

// again tells whether a call is made again: one that has surely not begun, if calls wait for the next instance; else if it has a retry left.
func (c *Caller) again(k *Call, e *Over) bool {
	if e.Next == NextInstance && e.Keeps && !k.begun(e.Begun) {
		return true
	}
	return c.touch(k).charge()
}
