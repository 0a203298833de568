package direct

import (
	"cmp"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Memory is what a Caller leaves for the next one, beside the calls of its process: written when a step has ended. Whoever drives the core keeps it, and looks
// into nothing.
type Memory struct {
	order    uint64 // of the last call
	actors   map[ids.ActorID]keptActor
	channels map[Channel]*facts
}

// keptActor is an actor that is called.
type keptActor struct {
	way     way
	channel Channel // 0: none
	dead    *errs.Error
}

// NewMemory is that of a process that has called nobody.
func NewMemory() *Memory {
	return &Memory{actors: make(map[ids.ActorID]keptActor), channels: make(map[Channel]*facts)}
}

// NewCaller makes the core of a process of which memory and calls, in any order, are what another core has left. It keeps so many bytes of results: what is more
// the owner is given. Calls that are over and whose results nobody has a reference to may be left out.
func NewCaller(budget int64, m *Memory, calls []*Call) *Caller {
	c := &Caller{budget: budget, memory: m, order: m.order, actors: make(map[ids.ActorID]*callee), channels: make(map[Channel]*channel)}
	for id, kept := range m.channels {
		ch := &channel{id: id, credit: kept.limit, first: kept.sent + 1, facts: *kept, kept: kept}
		ch.groups, ch.holds = slices.Clone(kept.groups), maps.Clone(kept.holds)
		c.channels[id] = ch
	}
	for id, k := range m.actors {
		a := c.newActor(id)
		a.way, a.dead, a.ch = k.way, k.dead, c.channels[k.channel]
	}
	for _, ch := range c.channels {
		if ch.of = c.actors[ch.actor]; ch.of == nil {
			ch.of = &callee{id: ch.actor} // it is over, and the actor is called no more
		}
	}
	calls = slices.Clone(calls)
	slices.SortFunc(calls, func(a, b *Call) int { return cmp.Compare(a.kept.order, b.kept.order) })
	for _, k := range calls {
		k.standing, k.touched, k.line = k.kept, false, nil
		if k.order > 0 {
			c.take(k)
		}
	}
	slices.SortFunc(calls, func(a, b *Call) int { return cmp.Compare(a.no, b.no) })
	for _, k := range calls {
		if k.stage == onChannel {
			k.line.of.ch.takeBack(k)
		}
	}
	for _, ch := range c.channels {
		ch.skipTo(ch.sent + 1)
	}
	for _, a := range c.actors {
		a.touched = false
		for _, l := range a.list {
			if l.calls.Len() > 0 && a.way == straight {
				l.waits = true
				a.starved.Push(l)
			}
		}
	}
	c.touchedActors = nil
	return c
}

// take puts a call where it stands.
func (c *Caller) take(k *Call) {
	if k.stage == ended {
		if k.held > 0 {
			c.held += k.held
			c.kept++
			c.results.Push(k)
		}
		return
	}
	a := c.actors[k.Actor]
	l := a.line(k.Caller)
	k.line = l
	switch k.stage {
	case inLine:
		l.calls.Push(k)
	case onChannel:
		l.out++
		l.owner = false
	case withOwner:
		l.out++
		l.owner = true
		a.submitted++
	case ended:
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

func (c *Caller) newActor(id ids.ActorID) *callee {
	a := &callee{id: id, lines: make(map[ids.TaskID]*line)}
	c.actors[id] = a
	return c.touchActor(a)
}

// touch notes that a call changes in this step.
func (c *Caller) touch(k *Call) *Call {
	if !k.touched {
		k.touched = true
		c.touchedCalls = append(c.touchedCalls, k)
	}
	return k
}

func (c *Caller) touchActor(a *callee) *callee {
	if !a.touched {
		a.touched = true
		c.touchedActors = append(c.touchedActors, a)
	}
	return a
}

func (c *Caller) touchChannel(ch *channel) *channel {
	if !ch.touched {
		ch.touched = true
		c.touchedChannels = append(c.touchedChannels, ch)
	}
	return ch
}

// commit writes down what a step has changed.
func (c *Caller) commit() {
	c.memory.order = c.order
	for _, k := range c.touchedCalls {
		k.kept, k.touched = k.standing, false
	}
	for _, a := range c.touchedActors {
		a.touched = false
		if c.actors[a.id] != a {
			if c.actors[a.id] == nil {
				delete(c.memory.actors, a.id)
			}
			continue
		}
		kept := keptActor{way: a.way, dead: a.dead}
		if a.ch != nil {
			kept.channel = a.ch.id
		}
		c.memory.actors[a.id] = kept
	}
	for _, ch := range c.touchedChannels {
		ch.touched = false
		if c.channels[ch.id] != ch {
			delete(c.memory.channels, ch.id)
			continue
		}
		if ch.kept == nil {
			ch.kept = new(facts)
			c.memory.channels[ch.id] = ch.kept
		}
		groups := append(ch.kept.groups[:0], ch.groups...)
		*ch.kept = ch.facts
		ch.kept.groups, ch.kept.holds = groups, maps.Clone(ch.holds)
	}
	clear(c.touchedCalls)
	clear(c.touchedActors)
	clear(c.touchedChannels)
	c.touchedCalls, c.touchedActors, c.touchedChannels = c.touchedCalls[:0], c.touchedActors[:0], c.touchedChannels[:0]
}
