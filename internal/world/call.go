package world

import (
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// call is what a thread does its work in: one attempt at a task, or the main function of a driver.
type call struct {
	p      *process
	thread *thread
	task   ids.TaskID
	calls  uint64 // submissions
	puts   uint32
	seqs   map[ids.ActorID]uint64 // calls of actors
	held   []ids.ObjectID         // that it has to release

	// Of a task.
	item      item
	lane      *lane
	args      []argument
	started   int64
	cpu       cpu
	cancelled *errs.Error
	over      bool   // it was reported
	made      uint32 // items of a stream
	consumed  uint32
}

// argument is an argument as a function sees it.
type argument struct {
	val  uint64
	refs []ids.ObjectID
}

// cpu is whether a task has its CPU.
type cpu uint8

const (
	cpuHeld cpu = iota
	cpuReturned
	cpuAsked
	cpuLent // while a create of it waits
)

// abandoned unwinds a call whose context has ended.
type abandoned struct{ err *errs.Error }

// run is the thread of a task.
func (c *call) run(t *thread) {
	c.thread = t
	res, err := c.invoke()
	if c.over {
		c.p.returned(c)
	} else {
		c.report(res, err)
	}
	c.letGo() // its owner holds what the results refer to
}

// report says what has become of the task.
func (c *call) report(res []wire.Result, err *errs.Error) {
	d := &wire.Done{Results: res, Items: c.made, Err: err}
	if a := c.p.actors[ids.ActorID(c.task)]; a != nil && c.item.Spec.Kind == wire.TaskActorCreate {
		if err != nil {
			c.p.dropInstance(a.id, errs.CodeActorDied)
		} else {
			a.lane.held = false
		}
		c.p.finished(c, d)
		c.p.startNext(a.lane)
		return
	}
	c.p.finished(c, d)
}

// invoke runs the function, to its end or to that of its context.
func (c *call) invoke() (res []wire.Result, err *errs.Error) {
	defer func() {
		if e := recover(); e != nil {
			a, ok := e.(abandoned)
			if !ok {
				panic(e)
			}
			res, err = nil, a.err
		}
	}()
	c.readArgs()
	c.await("a moment", func() bool { return false }, c.p.w.between(10*time.Microsecond, runTime))
	return functions[c.item.Spec.Opts.Func](c)
}

// runTime is how long a task takes at most, besides what it waits for.
const runTime = 1500 * time.Microsecond

// await waits until ready says so, the context has ended or, where it is not 0, the time has passed.
func (c *call) await(what string, ready func() bool, most int64) {
	late := false
	if most > 0 {
		c.p.w.after(most, func() {
			late = true
			c.p.wake()
		})
	}
	c.thread.await(what, func() bool { return late || c.cancelled != nil || ready() })
	if c.cancelled != nil {
		panic(abandoned{c.cancelled})
	}
}

// readArgs reads the arguments, stored ones where they lie.
func (c *call) readArgs() {
	s := c.item.Spec
	c.args = make([]argument, len(s.Args))
	for i := range s.Args {
		if s.Args[i].Ref.IsZero() {
			c.args[i] = c.argument(s.Args[i].Value)
		}
	}
	for _, a := range c.item.Args {
		switch a.Result.Kind {
		case wire.ResultInline:
			c.args[a.Index] = c.argument(a.Result.Value)
		case wire.ResultStored:
			v, whole := valueOf(c.p.touch(a.Extent))
			if !whole {
				c.p.w.fail("task %v reads argument %d at %+v, and finds other bytes", brief(c.task), a.Index, a.Extent)
			}
			c.args[a.Index] = argument{v, a.Result.Value.Refs}
		default:
			c.p.w.fail("task %v was pushed, and its argument %d is not there", brief(c.task), a.Index)
		}
	}
}

func (c *call) argument(v wire.Value) argument {
	val, whole := valueOf(v.Data)
	if !whole {
		c.p.w.fail("an inline argument of task %v is not whole", brief(c.task))
	}
	return argument{val, v.Refs}
}

// vals are the arguments' values.
func (c *call) vals() []uint64 {
	out := make([]uint64, len(c.args))
	for i, a := range c.args {
		out[i] = a.val
	}
	return out
}

// submit calls a function. The call holds the returns.
func (c *call) submit(o *wire.TaskOptions, args ...wire.Arg) []ids.ObjectID {
	c.calls++
	s := &wire.TaskSpec{ID: ids.Derive(c.task, c.calls), Parent: c.task, Opts: o, Args: args}
	return c.send(s)
}

func (c *call) send(s *wire.TaskSpec) []ids.ObjectID {
	c.p.submit(s)
	out := make([]ids.ObjectID, max(s.Opts.NumReturns, 0))
	for i := range out {
		out[i] = s.ID.Return(i)
	}
	c.held = append(c.held, out...)
	return out
}

// get waits for objects, and gives what became of them. A task gives its CPU back meanwhile.
func (c *call) get(list ...ids.ObjectID) []outcome {
	p := c.p
	there := func() bool {
		for _, id := range list {
			if p.handles[id].res == nil {
				return false
			}
		}
		return true
	}
	for _, id := range list {
		p.ask(id)
	}
	p.w.model.gets += len(list)
	if !there() && c.lane != nil {
		c.block(list)
		c.await("objects", there, 0)
		c.unblock()
	} else {
		c.await("objects", there, 0)
	}
	out := make([]outcome, len(list))
	for i, id := range list {
		out[i] = *p.handles[id].res
	}
	return out
}

// block gives the CPU back, and what is queued behind the task.
func (c *call) block(list []ids.ObjectID) {
	l := c.lane
	var back []ids.TaskID
	if l.actor == nil {
		l.blocked = true
		for _, t := range l.queue {
			back = append(back, t.Spec.ID)
		}
		l.queue = nil
	}
	c.p.w.model.ends(c.p.w, c)
	c.cpu = cpuReturned
	m := &wire.Blocked{Task: c.task, Lease: c.item.lease, Returned: back}
	if c.p.w.rng.IntN(2) == 0 {
		m.WaitsFor = list
	}
	c.p.send(m)
}

// unblock asks for the CPU, and waits for it.
func (c *call) unblock() {
	c.cpu = cpuAsked
	c.p.send(&wire.Unblocked{Task: c.task, Lease: c.item.lease})
	c.await("its CPU", func() bool { return c.cpu == cpuHeld }, 0)
}

// put makes an object, which the call holds.
func (c *call) put(v uint64, size int) ids.ObjectID {
	c.puts++
	id := c.task.In(c.p.job).Put(c.puts)
	if c.lane != nil {
		c.p.w.model.puts[id] = v
	}
	if size <= inlineMax {
		c.p.hold(id, false)
		c.p.send(&wire.PutValue{ID: id, Value: wire.Value{Meta: c.meta(), Data: bytesOf(v, size)}})
	} else {
		c.store(id, v, size)
		c.p.hold(id, false)
	}
	c.held = append(c.held, id)
	return id
}

// inlineMax is the bytes of the largest value that travels inside messages.
const inlineMax = 1 << 10

// store creates an object, writes it where it is to lie, and seals it.
func (c *call) store(id ids.ObjectID, v uint64, size int) {
	p := c.p
	q := c.create(id, size)
	for ; isShort(q.answer.Err); q = c.create(id, size) { // of memory or disk: for a while
		c.await("room on its machine", func() bool { return false }, p.w.between(time.Millisecond, 50*time.Millisecond))
	}
	a, m := q.answer, q.m
	switch {
	case a.Err != nil && c.lane == nil:
		p.w.fail("%s cannot put %s: %v", p.name, briefObject(id), a.Err)
	case a.Err != nil:
		panic(abandoned{a.Err})
	case a.Extent.File != 0 && !p.mapped[a.Extent.File]:
		p.w.fail("%s is to write %+v, in a file that was not announced", p.name, a.Extent)
	}
	e := a.Extent
	e.Size = uint64(size)
	if !q.lost(p) {
		p.n.memory.bring(p.job, e)
		p.touch(e)
	}
	fill(p.in(q.file, e), v)
	c.whole(m, func() {
		c.await("a write", func() bool { return false }, p.w.rng.Int64N(int64(200*time.Microsecond))+1)
	})
	if !q.lost(p) {
		p.touch(e)
	}
	if got, whole := valueOf(p.in(q.file, e)); !whole || got != v {
		p.w.fail("%s has written %s to %+v, and its bytes have changed before it was sealed", p.name, briefObject(id), e)
	}
	p.w.model.written(id, writing{p.n, m.Attempt})
	if q.lost(p) {
		p.w.model.rot[id] = true
	}
	p.send(&wire.Seal{ID: id, Attempt: m.Attempt, Size: uint64(size), Value: wire.Value{Meta: c.meta()}})
}

// lost tells whether the store that has given the room was not kept.
func (q *creation) lost(p *process) bool { return p.n.memory.unkept[&q.file[0]] }

// create asks the store for room.
func (c *call) create(id ids.ObjectID, size int) *creation {
	p := c.p
	p.req++
	m := &wire.Create{Req: p.req, ID: id, Attempt: c.item.Attempt, Size: uint64(size)}
	if c.lane != nil {
		m.Task = c.task
	}
	q := &creation{m: m}
	p.creates[m.Req] = q
	p.send(m)
	c.whole(m, func() { c.await("room for an object", func() bool { return q.answer != nil }, 0) })
	if c.cpu == cpuLent {
		c.cpu = cpuHeld
		p.w.model.resumes(p.w, c)
	}
	return q
}

// isShort tells whether something has failed since the machine had no memory or disk for it.
func isShort(err *errs.Error) bool {
	if err == nil {
		return false
	}
	switch err.Code {
	case errs.CodeStoreFull, errs.CodeOutOfDisk, errs.CodeSegmentUnavailable:
		return true
	}
	return slices.ContainsFunc(err.Cause, isShort)
}

// whole gives an extent back where what is done ends early.
func (c *call) whole(m *wire.Create, do func()) {
	done := false
	defer func() {
		if !done && !c.p.dead {
			delete(c.p.creates, m.Req)
			c.p.send(&wire.Abort{ID: m.ID, Attempt: m.Attempt})
		}
	}()
	do()
	done = true
}

// meta tells which attempt has made a value.
func (c *call) meta() []byte { return []byte{byte(c.item.Attempt), byte(c.item.Attempt >> 8)} }

// inline is a result inside the message.
func (c *call) inline(v uint64, size int, refs ...ids.ObjectID) wire.Result {
	b := bytesOf(v, size)
	return wire.Result{Kind: wire.ResultInline, Value: wire.Value{Meta: c.meta(), Data: b, Refs: refs}, Size: uint64(len(b))}
}

// stored is a result in the store.
func (c *call) stored(i int, v uint64, size int) wire.Result {
	c.store(c.task.Return(i), v, size)
	return wire.Result{Kind: wire.ResultStored, Value: wire.Value{Meta: c.meta()}, Size: uint64(size)}
}

// letGo releases what the call still holds.
func (c *call) letGo() {
	held := c.held
	c.held = nil
	if len(held) > 0 {
		c.p.release(held...)
	}
}
