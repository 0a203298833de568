package world

import (
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// client is what a process holds of its node: handles, pins and extents that it writes.
type client struct {
	handles map[ids.ObjectID]*handle
	pins    map[ids.ObjectID]*pinned
	creates map[uint64]*creation
	reads   map[ids.TaskID]*reading
	mapped  map[uint32]bool // fallback files that were announced
	req     uint64
	replays replays
}

// handle is the one entry of an object in a process.
type handle struct {
	refs  int
	asked bool // a Get with fetch is under way
	known bool // it was resolved once
	names bool // its value is the id of an actor
	res   *outcome
	inner []ids.ObjectID // references that came in the value
}

// outcome is what became of an object.
type outcome struct {
	val    uint64
	stored bool
	actor  ids.ActorID // where the value is an actor's id
	err    *errs.Error
}

// pinned is an object that the process reads in place.
type pinned struct {
	n      uint32
	file   []byte // of its job, as it was mapped then
	extent wire.Extent
	val    uint64
}

// creation is an extent that was asked for.
type creation struct {
	m      *wire.Create
	answer *wire.Created
	file   []byte // of its job, as it was mapped then
}

func (c *client) init(w *World) {
	c.handles, c.pins = make(map[ids.ObjectID]*handle), make(map[ids.ObjectID]*pinned)
	c.replays.asked, c.replays.last = -1, keepsLast[w.rng.IntN(len(keepsLast))]
	c.creates, c.mapped, c.reads = make(map[uint64]*creation), make(map[uint32]bool), make(map[ids.TaskID]*reading)
}

// send sends messages, in order. Without a connection they wait in what is repeated.
func (p *process) send(msgs ...wire.Msg) {
	if p.worker == 0 {
		for _, m := range msgs {
			p.replays.add(m)
		}
	}
	p.put(msgs)
}

func (p *process) put(msgs []wire.Msg) {
	if p.conn != nil && p.conn.welcomed {
		p.conn.up.put(msgs)
	}
}

// hold takes a reference, and tells the owner where it is the first and was found in a value.
func (p *process) hold(id ids.ObjectID, found bool) *handle {
	h := p.handles[id]
	if h == nil {
		h = &handle{}
		p.handles[id] = h
		p.w.model.held(p, id, 1)
		if found {
			p.send(&wire.AddRef{ID: id})
		}
	}
	h.refs++
	return h
}

// release gives references back.
func (p *process) release(list ...ids.ObjectID) {
	var out []ids.ObjectID
	for len(list) > 0 {
		id := list[0]
		list = list[1:]
		h := p.handles[id]
		if h == nil {
			p.w.fail("%s releases %s, which it does not hold", p.name, briefObject(id))
		}
		if h.refs--; h.refs > 0 {
			continue
		}
		delete(p.handles, id)
		p.w.model.held(p, id, -1)
		out = append(out, id)
		list = append(list, h.inner...)
	}
	if len(out) > 0 {
		p.send(&wire.Release{IDs: out})
	}
}

// submit sends a task; the process has a handle on each return.
func (p *process) submit(s *wire.TaskSpec) {
	for i := range max(s.Opts.NumReturns, 0) {
		p.hold(s.ID.Return(int(i)), false)
	}
	p.w.model.submits[s.ID]++
	if s.Parent != p.root {
		p.w.model.callers[s.ID] = s.Parent
	}
	p.send(&wire.Submit{Spec: s})
}

// ask subscribes to an object, if nobody in the process has.
func (p *process) ask(id ids.ObjectID) {
	h := p.handles[id]
	if h == nil {
		p.w.fail("%s asks for %s, which it does not hold", p.name, briefObject(id))
	}
	if !h.asked && h.res == nil {
		h.asked = true
		p.send(&wire.Get{ID: id, Fetch: true})
	}
}

// resolved takes the answer to a get.
func (p *process) resolved(m *wire.Resolved) {
	out := &outcome{err: m.Result.Err}
	refs := m.Result.Value.Refs
	h := p.handles[m.ID]
	switch m.Result.Kind {
	case wire.ResultInline:
		if h == nil {
			return // released meanwhile
		}
		if h.names {
			id, _ := ids.TaskOf(m.Result.Value.Data)
			out.actor = ids.ActorID(id)
			break
		}
		v, whole := valueOf(m.Result.Value.Data)
		if out.val = v; !whole {
			p.w.fail("the inline value of %s is not whole", briefObject(m.ID))
		}
	case wire.ResultStored:
		out.stored, out.val = true, p.pin(m.ID, m.Extent)
	case wire.ResultError:
		refs = m.Result.Err.AllRefs()
	default:
		p.w.fail("%s is resolved without a result", briefObject(m.ID))
	}
	if h == nil {
		if out.stored {
			p.unpin(m.ID)
		}
		return
	}
	h.asked = false
	p.w.model.saw(p, m, out)
	if !h.known {
		for _, id := range refs {
			p.hold(id, true)
			h.inner = append(h.inner, id)
		}
	}
	h.known, h.res = true, out
	if out.stored {
		p.w.after(p.w.rng.Int64N(int64(3*time.Millisecond)), func() { p.unpin(m.ID) })
	}
}

// pin notes that the store has pinned an object for the process, and reads it.
func (p *process) pin(id ids.ObjectID, e wire.Extent) uint64 {
	if e.File != 0 && !p.mapped[e.File] {
		p.w.fail("%s is given %+v, in a file that was not announced", p.name, e)
	}
	v, whole := valueOf(p.touch(e))
	if !whole {
		p.w.fail("%s reads %s at %+v, and finds other bytes", p.name, briefObject(id), e)
	}
	x := p.pins[id]
	if x == nil {
		x = &pinned{}
		p.pins[id] = x
	}
	x.n++
	x.file, x.extent, x.val = p.file, e, v
	return v
}

// unpin reads a pinned object for the last time, and gives the pins back.
func (p *process) unpin(id ids.ObjectID) {
	x := p.pins[id]
	if x == nil || p.dead {
		return
	}
	delete(p.pins, id)
	if v, whole := valueOf(p.in(x.file, x.extent)); !whole || v != x.val {
		p.w.fail("%s has pinned %s at %+v, and its bytes have changed", p.name, briefObject(id), x.extent)
	}
	p.send(&wire.Unpin{ID: id, N: x.n})
}

func (p *process) unmap(file uint32) {
	delete(p.mapped, file)
	for id, x := range p.pins {
		if x.extent.File == file {
			p.w.fail("%s is to unmap file %d, in which it has pinned %s", p.name, file, briefObject(id))
		}
	}
}

func (p *process) created(m *wire.Created) {
	if c := p.creates[m.Req]; c != nil {
		delete(p.creates, m.Req)
		c.answer, c.file = m, p.file
	}
}

// declare tells a component that has lost what it knew what the process holds of it.
func (p *process) declare(component wire.Component, epoch uint64) {
	h := &wire.Holdings{Component: component, Epoch: epoch}
	if component == wire.ComponentStore {
		for _, id := range slices.SortedFunc(maps.Keys(p.pins), ids.ObjectID.Compare) {
			h.Pins = append(h.Pins, wire.Unpin{ID: id, N: p.pins[id].n})
		}
		p.send(h)
		for _, r := range slices.Sorted(maps.Keys(p.creates)) {
			p.send(p.creates[r].m)
		}
		return
	}
	for _, id := range slices.SortedFunc(maps.Keys(p.handles), ids.ObjectID.Compare) {
		h.Handles = append(h.Handles, id)
		if p.handles[id].asked {
			h.Gets = append(h.Gets, wire.Get{ID: id, Fetch: true})
		}
	}
	for _, id := range p.streams() {
		h.Handles = append(h.Handles, id.Stream())
		if r := p.reads[id]; r.asked {
			h.Streams = append(h.Streams, wire.StreamNext{Task: id, Index: r.next, Leaves: true})
		}
	}
	p.holdings(h)
	if epoch != 0 {
		p.replays.declares()
	}
	p.send(h)
}

// asked lists what gets wait for.
func (p *process) asked() (out []ids.ObjectID) {
	for _, id := range slices.SortedFunc(maps.Keys(p.handles), ids.ObjectID.Compare) {
		if p.handles[id].asked {
			out = append(out, id)
		}
	}
	return out
}

// replay repeats to a node that has started again everything that it may not know.
func (p *process) replay() {
	p.declare(wire.ComponentOwner, 0)
	p.declare(wire.ComponentStore, 0)
	var gets []wire.Msg
	for _, id := range p.asked() {
		gets = append(gets, &wire.Get{ID: id, Fetch: true})
	}
	if again := p.replays.again(); len(again) > 0 {
		p.put(again)
	}
	if len(gets) > 0 {
		p.send(gets...)
	}
}
