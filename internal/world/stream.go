package world

import (
	"bytes"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// reading is a stream that a process reads, one item after another.
type reading struct {
	next  uint32
	asked bool
	item  *wire.StreamItem // the answer; nil: there is none yet
}

// streams are those that a process reads, in an order that is the same in each run.
func (p *process) streams() []ids.TaskID {
	return slices.SortedFunc(maps.Keys(p.reads), func(a, b ids.TaskID) int { return bytes.Compare(a[:], b[:]) })
}

// streamItem takes the answer to a StreamNext; the process has a handle on the item from then on.
func (p *process) streamItem(m *wire.StreamItem) {
	r := p.reads[m.Task]
	if r == nil || !r.asked || m.Index != r.next {
		return
	}
	r.asked, r.item = false, m
	if m.Result.Kind == wire.ResultInline || m.Result.Kind == wire.ResultStored {
		p.hold(m.Task.Return(int(m.Index)), true)
	}
}

// acknowledge tells a producer how far its readers are.
func (p *process) acknowledge(m *wire.StreamAck) {
	for _, l := range p.everyLane() {
		if c := l.call; c != nil && c.task == m.Task {
			c.consumed = max(c.consumed, m.Consumed)
		}
	}
}

// openStream is a stream that a program reads.
type openStream struct {
	task ids.TaskID
	vals []uint64
}

// items is how many items a stream has whose first argument is a value.
func items(v uint64) uint32 { return uint32(v % 6) }

// produce is the function of a stream: its items are small and large in turn, and it waits for its readers.
func produce(c *call) ([]wire.Result, *errs.Error) {
	vals := c.vals()
	ahead := uint32(max(c.item.Spec.Opts.Backpressure, 0))
	for i := range items(vals[0]) {
		near := func() bool { return ahead == 0 || c.consumed == ^uint32(0) || i < c.consumed+ahead }
		if !near() {
			c.block(nil)
			c.await("readers of its stream", near, 0)
			c.unblock()
		}
		v := resultOf(vals, int(i))
		m := &wire.StreamItem{Task: c.task, Attempt: c.item.Attempt, Index: i}
		if i%2 == 0 {
			m.Result = c.inline(v, smallSize(v))
		} else {
			m.Result = c.stored(int(i), v, largeSize(v))
		}
		c.p.send(m)
		c.made = i + 1
	}
	return nil, nil
}

// open calls a function that streams.
func (pr *program) open() {
	vals := []uint64{mix(pr.w.rng.Uint64())}
	c := pr.call
	c.calls++
	fn := []string{"stream", "flow"}[pr.w.rng.IntN(2)]
	s := &wire.TaskSpec{ID: ids.Derive(c.task, c.calls), Parent: c.task, Opts: options[fn], Args: []wire.Arg{byValue(vals[0])}}
	pr.proc.reads[s.ID] = &reading{}
	c.send(s)
	pr.reads = append(pr.reads, openStream{s.ID, vals})
}

// read takes the next item of a stream, and is false at its end.
func (pr *program) read(s openStream) bool {
	p, w := pr.proc, pr.w
	r := p.reads[s.task]
	if !r.asked && r.item == nil {
		r.asked = true
		p.send(&wire.StreamNext{Task: s.task, Index: r.next, Leaves: true})
	}
	pr.call.await("an item of a stream", func() bool { return r.item != nil }, 0)
	m := r.item
	r.item = nil
	switch m.Result.Kind {
	case wire.ResultNone:
		if r.next != items(s.vals[0]) {
			w.fail("stream %v ends after %d of %d items", brief(s.task), r.next, items(s.vals[0]))
		}
		pr.leave(s, false)
		return false
	case wire.ResultError:
		if w.model.mayFail(s.task.Return(0)) {
			pr.leave(s, true)
			return false
		}
		w.fail("stream %v ends with an error before item %d: %v", brief(s.task), r.next, m.Result.Err)
	}
	id := s.task.Return(int(r.next))
	r.next++
	pr.call.held = append(pr.call.held, id)
	pr.expect(id, expectation{val: resultOf(s.vals, int(id.Index)), item: true})
	return true
}

// leave reads a stream no more; what it has taken of it is not made again, should it be lost.
func (pr *program) leave(s openStream, early bool) {
	delete(pr.proc.reads, s.task)
	pr.reads = slices.DeleteFunc(pr.reads, func(o openStream) bool { return o.task == s.task })
	if early {
		for id, x := range pr.w.model.want { // of items that it has let go of too: tasks may be about to use them
			if id.Task == s.task {
				x.may = true
			}
		}
	}
	pr.proc.send(&wire.Release{IDs: []ids.ObjectID{s.task.Stream()}})
}
