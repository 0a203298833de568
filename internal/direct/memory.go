package direct

import (
	"cmp"
	"maps"
	"slices"

	"mobula/internal/errs"
)

// Memory is what a Caller leaves for the next one, beside the calls: written when a step has ended. Whoever drives the core keeps it, and looks into nothing.
type Memory struct {
	order    uint64 // of the last call
	way      way
	dead     *errs.Error
	channel  Channel // 0: none
	channels []*facts
}

// NewMemory is that of a process that has not called the actor.
func NewMemory() *Memory { return new(Memory) }

// NewCaller makes the core of which memory and calls, in any order, are what another core has left. Calls that are over and whose results nobody has a reference to may be left out.
func NewCaller(m *Memory, calls []*Call) *Caller {
	c := &Caller{memory: m, order: m.order, way: m.way, dead: m.dead}
	for _, kept := range m.channels {
		ch := &channel{credit: kept.limit, first: kept.sent + 1, facts: *kept, kept: kept}
		ch.groups, ch.holds = slices.Clone(kept.groups), maps.Clone(kept.holds)
		c.channels = append(c.channels, ch)
		if ch.id == m.channel {
			c.ch = ch
		}
	}
	calls = slices.Clone(calls)
	slices.SortFunc(calls, func(a, b *Call) int { return cmp.Compare(a.kept.order, b.kept.order) })
	for _, k := range calls {
		k.standing, k.touched, k.older, k.newer = k.kept, false, nil, nil
		if k.order > 0 {
			c.take(k)
		}
	}
	slices.SortFunc(calls, func(a, b *Call) int { return cmp.Compare(a.no, b.no) })
	for _, k := range calls {
		if k.stage == onChannel || k.stage == late {
			c.ch.takeBack(k)
		}
	}
	if c.ch != nil {
		c.ch.skipTo(c.ch.sent + 1)
	}
	for _, l := range c.list {
		if l.calls.Len() > 0 && c.way == straight && c.ch.flight.Len() > 0 {
			l.waits = true
			c.starved.Push(l)
		}
	}
	return c
}

// take puts a call where it stands.
func (c *Caller) take(k *Call) {
	switch k.stage {
	case inLine:
		c.line(k.Caller).calls.Push(k)
	case withOwner:
		c.line(k.Caller).owned++
		c.owned++
	case ended:
		if k.alone {
			c.results.add(k)
		}
	case onChannel, late:
	}
}

// takeBack takes a call that is under way, in the order of their numbers.
func (ch *channel) takeBack(k *Call) {
	ch.credit -= k.Bytes
	if ch.flight.Len() == 0 {
		ch.first = k.no
	}
	ch.skipTo(k.no)
	ch.flight.Push(k)
}

// skipTo leaves room for calls that have ended.
func (ch *channel) skipTo(no uint64) {
	for ch.flight.Len() > 0 && ch.first+uint64(ch.flight.Len()) < no {
		ch.flight.Push(nil)
	}
}

// touch notes that a call changes in this step.
func (c *Caller) touch(k *Call) *Call {
	if !k.touched {
		k.touched = true
		c.touchedCalls = append(c.touchedCalls, k)
	}
	return k
}

func (c *Caller) touchChannel(ch *channel) *channel {
	if !ch.touched {
		ch.touched = true
		c.touchedChannels = append(c.touchedChannels, ch)
	}
	return ch
}

// removeChannel hangs a channel up. Commit takes it out of the memory.
func (c *Caller) removeChannel(ch *channel) {
	c.touchChannel(ch)
	c.channels = slices.DeleteFunc(c.channels, func(x *channel) bool { return x == ch })
}

// commit writes down what a step has changed.
func (c *Caller) commit() {
	m := c.memory
	m.order, m.way, m.dead, m.channel = c.order, c.way, c.dead, 0
	if c.ch != nil {
		m.channel = c.ch.id
	}
	for i, k := range c.touchedCalls {
		k.kept, k.touched = k.standing, false
		c.touchedCalls[i] = nil
	}
	for i, ch := range c.touchedChannels {
		ch.touched = false
		ch.keep(m, slices.Contains(c.channels, ch))
		c.touchedChannels[i] = nil
	}
	c.touchedCalls, c.touchedChannels = c.touchedCalls[:0], c.touchedChannels[:0]
}

func (ch *channel) keep(m *Memory, open bool) {
	switch {
	case !open:
		m.channels = slices.DeleteFunc(m.channels, func(f *facts) bool { return f == ch.kept })
		return
	case ch.kept == nil:
		ch.kept = new(facts)
		m.channels = append(m.channels, ch.kept)
	}
	groups := append(ch.kept.groups[:0], ch.groups...)
	*ch.kept = ch.facts
	ch.kept.groups, ch.kept.holds = groups, maps.Clone(ch.holds)
}
