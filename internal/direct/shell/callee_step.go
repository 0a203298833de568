package shell

import (
	"reflect"
	"slices"

	"mobula/internal/direct"
	"mobula/internal/errs"
)

// step takes an event, and does what follows. The lock is held.
func (c *Callee) step(e direct.Event) {
	c.used = true
	effects, ok := c.try(e, 1)
	if !ok {
		c.rebuild()
		if effects, ok = c.try(e, 2); !ok {
			c.rebuild()
			c.giveUp(e)
			return
		}
	}
	c.doAll(effects)
	if now := c.core.Held(); now != c.held {
		over := c.p.held.Add(now-c.held) - c.p.budget
		if c.held = now; over > 0 && now > 0 {
			c.step(direct.Relieve{Bytes: over})
		}
	}
}

// try has the core take an event; false: it has panicked, and is of no use any more.
func (c *Callee) try(e direct.Event, n int) (effects []direct.Effect, ok bool) {
	defer func() {
		if !ok {
			c.p.up.Panicked(reflect.TypeOf(e).String(), recover(), n)
		}
	}()
	return c.core.Step(0, e), true
}

// rebuild makes a core of what the last one has left.
func (c *Callee) rebuild() { c.core = direct.NewCaller(c.memory, c.all()) }

// all are the calls that a core must know.
func (c *Callee) all() (calls []*direct.Call) {
	for k := c.calls; k != nil; k = k.next {
		calls = append(calls, &k.Call)
	}
	return calls
}

// giveUp leaves an event out that has brought two cores down. The call that it begins ends; of any other nobody knows what it would have come to, so all calls
// that are under way end, and the channels.
func (c *Callee) giveUp(e direct.Event) {
	o := &direct.Outcome{Err: errs.New(errs.CodeComponentFailed, "a call of actor %v has brought what makes it down, twice: the log says how", c.actor)}
	if begin, ok := e.(direct.Begin); ok {
		c.doAll(direct.Fail([]*direct.Call{begin.Call}, o))
		return
	}
	effects := append(direct.Fail(c.all(), o), c.memory.Clear()...)
	c.rebuild()
	c.doAll(effects)
}

func (c *Callee) doAll(effects []direct.Effect) {
	for i := range effects {
		c.do(&effects[i])
	}
	clear(effects) // what they have is not kept until the next step
}

// callOf is the call that a core speaks of.
func callOf(k *direct.Call) *Call { return k.Payload.(*Call) }

// needsNoHold says that a call does not need this process to hold the actor any more.
func (c *Callee) needsNoHold(k *Call) {
	if !k.holds {
		return
	}
	k.holds = false
	c.under--
	c.eases()
	c.maybeLetGo()
}

// settled has who waits for a call told, when the lock is given back.
func (c *Callee) settled(k *Call, o *direct.Outcome) {
	c.p.up.Settles(k, o)
	k.settled, k.end = true, o
	c.needsNoHold(k)
	c.unlist(k)
	if k.comesBack(o) {
		c.p.up.Settled(k, o)
		c.from.ended.Push(ended{call: k, ackNo: c.from.got})
		return
	}
	if c.last == nil {
		c.first = k
	} else {
		c.last.also = k
	}
	c.last = k
}

func (c *Callee) do(f *direct.Effect) {
	up := c.p.up
	switch f.Do {
	case direct.AskWay:
		up.AskWay(c)
	case direct.AskWord:
		up.AskWord(c, f.Channel)
	case direct.Send:
		if l := c.link(f.Channel); l != nil && !l.broken {
			c.after.join(l.send(callOf(f.Call)))
		}
	case direct.Withdraw:
		if l := c.link(f.Channel); l != nil && !l.broken {
			c.after.join(l.withdraw(f))
		}
	case direct.Submit:
		callOf(f.Call).shown = true
		up.Submit(callOf(f.Call))
		c.needsNoHold(callOf(f.Call)) // the owner holds the actor
	case direct.Revoke:
		up.Revoke(callOf(f.Call), f.Wish)
	case direct.Settle:
		c.settled(callOf(f.Call), f.Outcome)
	case direct.Adopt:
		callOf(f.Call).shown = true
		up.Adopt(callOf(f.Call), *f)
	case direct.Report:
		up.Report(callOf(f.Call), f.Outcome)
	case direct.Depart:
		up.Departs(callOf(f.Call))
	case direct.AckUpTo:
		if l := c.link(f.Channel); l != nil && !l.broken {
			c.after.join(l.taken(f.No))
		}
	case direct.HangUp:
		if l := c.link(f.Channel); l != nil {
			c.links = slices.DeleteFunc(c.links, func(x *link) bool { return x == l })
			if !l.broken {
				c.after.join(l.acknowledge())
				l.broken = true
				c.after.join(l.hangUp())
			}
		}
		up.HangUp(f.Channel)
	case direct.TellChannel:
		up.Linked(c, f.Channel, f.Instance)
	}
}
