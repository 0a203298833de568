package direct

import (
	"cmp"
	"slices"

	"mobula/internal/queue"
)

// HostMemory is what a Host leaves for the next one: written when a step has ended. Whoever drives the core keeps it, and looks into nothing.
type HostMemory struct {
	order    uint64
	channels int
	stopping bool
	fallen   bool
	sources  map[Channel]*keptSource
	first    *Incoming // of the calls that are pending, or of whose answer it is not known that it was taken
}

// keptSource is what is left of a channel.
type keptSource struct {
	sourceFacts
	came, asked []uint64
}

// NewHostMemory is that of an instance that was just made.
func NewHostMemory() *HostMemory { return &HostMemory{sources: make(map[Channel]*keptSource)} }

// NewHost makes the core of an instance of which another core has left the memory.
func NewHost(cfg HostConfig, m *HostMemory) *Host {
	h := &Host{cfg: cfg, memory: m, order: m.order, channels: m.channels, stopping: m.stopping, fallen: m.fallen, sources: make(map[Channel]*source)}
	for _, most := range cfg.Groups {
		h.boxes = append(h.boxes, mailbox{most: most})
	}
	for id, kept := range m.sources {
		s := h.newSource(id, kept.sourceFacts)
		s.facts, s.came, s.asked = kept, slices.Clone(kept.came), slices.Clone(kept.asked)
	}
	slices.SortFunc(h.list, func(a, b *source) int { return cmp.Compare(a.at, b.at) })
	var calls, over []*Incoming
	for in := m.first; in != nil; in = in.next {
		in.incoming, in.touched = in.kept, false
		id := in.from.id
		if in.from = h.sources[id]; in.from == nil { // its channel is gone, and nobody asks for it
			in.from = &source{id: id, over: true, aside: make([]queue.Queue[*Incoming], len(h.boxes)), sourceFacts: sourceFacts{gone: true, dropped: true}}
		}
		if in.over {
			over = append(over, in)
		} else {
			calls = append(calls, in)
		}
	}
	slices.SortFunc(calls, func(a, b *Incoming) int { return cmp.Compare(a.order, b.order) })
	for _, in := range calls {
		h.take(in)
	}
	slices.SortFunc(over, func(a, b *Incoming) int { return cmp.Compare(a.ackNo, b.ackNo) })
	for _, in := range over {
		in.from.kept.Push(in)
		in.from.unread += in.bytes
	}
	return h
}

// take puts a call where it stands.
func (h *Host) take(in *Incoming) {
	h.pending++
	b := &h.boxes[in.Group]
	switch {
	case in.running:
		b.running = append(b.running, in)
	case in.aside:
		in.from.aside[in.Group].Push(in)
	default:
		b.waiting.Push(in)
	}
}

func (h *Host) newSource(id Channel, f sourceFacts) *source {
	s := &source{id: id, aside: make([]queue.Queue[*Incoming], len(h.boxes)), sourceFacts: f}
	h.sources[id] = s
	h.list = append(h.list, s)
	return s
}

// touch notes that a call changes in this step.
func (h *Host) touch(in *Incoming) *Incoming {
	if !in.touched {
		in.touched = true
		h.touchedCalls = append(h.touchedCalls, in)
	}
	return in
}

func (h *Host) touchSource(s *source) *source {
	if !s.touched {
		s.touched = true
		h.touchedSources = append(h.touchedSources, s)
	}
	return s
}

// commit writes down what a step has changed.
func (h *Host) commit() {
	m := h.memory
	m.order, m.channels, m.stopping, m.fallen = h.order, h.channels, h.stopping, h.fallen
	for i, in := range h.touchedCalls {
		in.kept, in.touched = in.incoming, false
		h.touchedCalls[i] = nil
		if in.over && (in.ackNo <= in.from.acked || in.from.over) {
			m.drop(in)
		} else {
			m.add(in)
		}
	}
	for i, s := range h.touchedSources {
		s.touched = false
		h.touchedSources[i] = nil
		if s.over {
			delete(m.sources, s.id)
			continue
		}
		if s.facts == nil {
			s.facts = &keptSource{came: make([]uint64, len(s.came))}
			m.sources[s.id] = s.facts
		}
		s.facts.sourceFacts = s.sourceFacts
		copy(s.facts.came, s.came)
		if len(s.facts.asked)+len(s.asked) > 0 {
			s.facts.asked = s.asked
		}
	}
	h.touchedCalls, h.touchedSources = h.touchedCalls[:0], h.touchedSources[:0]
}

func (m *HostMemory) add(in *Incoming) {
	if in.listed {
		return
	}
	in.listed, in.prev, in.next = true, nil, m.first
	if m.first != nil {
		m.first.prev = in
	}
	m.first = in
}

func (m *HostMemory) drop(in *Incoming) {
	if !in.listed {
		return
	}
	if in.prev != nil {
		in.prev.next = in.next
	} else {
		m.first = in.next
	}
	if in.next != nil {
		in.next.prev = in.prev
	}
	in.listed, in.prev, in.next = false, nil, nil
}
