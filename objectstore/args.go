package objectstore

import (
	"cmp"
	"math"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// argSet is the stored arguments of one attempt: pinned all or none.
type argSet struct {
	req      PinArgs
	objs     []ref // while admitted, what its worker reads
	admitted bool  // its objects are pinned, or will be when restored
	missing  int   // arguments that are not in memory yet
	answered bool
	idle     bool // admitted, and not counted: its task waits in a get
}

func (c *Core) findSet(task ids.TaskID, attempt uint32) *argSet {
	for _, s := range c.sets[task] {
		if s.req.Attempt == attempt {
			return s
		}
	}
	return nil
}

// pinArgs queues an attempt's arguments. One asked before is answered again; held says that it was
// answered before a panic: it is pinned beyond any rule, and unanswered.
func (c *Core) pinArgs(e PinArgs, held bool) {
	if _, ok := c.clients[e.Worker]; !ok {
		return // the owner learns of the worker's end from the scheduler
	}
	if s := c.findSet(e.Task, e.Attempt); s != nil {
		if s.req.Ask != e.Ask { // a rebuilt owner asks
			s.req.Ask = e.Ask
			c.remember(s)
		}
		if s.answered && !held {
			c.answerSet(s)
		}
		return
	}
	s := &argSet{req: e, objs: make([]ref, len(e.IDs)), answered: held}
	for i, id := range e.IDs {
		r, ok := c.objs[id]
		if !ok {
			m := c.missing(id)
			m.Task, m.Attempt, m.Ask = e.Task, e.Attempt, e.Ask
			c.emit(ToOwner{e.Job, m})
			return
		}
		s.objs[i] = r
		if r.o.list != nil { // it will be used soon: not the next to be spilled
			l := r.o.list
			l.remove(r.o)
			l.push(r.o)
		}
	}
	c.sets[e.Task] = append(c.sets[e.Task], s)
	if held {
		c.admit(s)
		c.remember(s)
		return
	}
	if err := c.tooMuch(s); err != nil {
		c.refuseSet(s, err)
		return
	}
	c.argWait = append(c.argWait, s)
	c.admitArgs()
	if !s.answered && c.findSet(e.Task, e.Attempt) == s {
		c.remember(s)
		c.emit(ToOwner{e.Job, ArgsWait{e.Task, e.Attempt, e.Ask}})
	}
}

// admitArgs lets waiting sets in, in order, while running tasks' arguments stay within their share.
// A set that would run alone is always let in, and one whose objects are all in use already: it takes nothing more.
func (c *Core) admitArgs() {
	if len(c.argWait) > 0 && c.now < c.argsAt {
		c.wakeAt(c.argsAt)
		return
	}
	most := c.share(c.cfg.ArgsFraction)
	for len(c.argWait) > 0 && !c.argsFull {
		s := c.argWait[0]
		if n := c.added(s); c.activeSets > 0 && n > 0 && c.argBytes+n > most {
			c.argsFull = true // until a set leaves
			return
		}
		c.argWait[0] = nil
		c.argWait = c.argWait[1:]
		c.admit(s) // or says what is missing
	}
}

// added is by how much a set would raise argBytes: objects that others use count once.
func (c *Core) added(s *argSet) uint64 {
	var n uint64
	c.mark++
	for _, r := range s.objs {
		if x, ok := c.readAt(s.req.Worker, r); ok {
			r = x
		}
		if r.o.argActive == 0 && r.o.mark != c.mark {
			r.o.mark = c.mark
			n += r.o.footprint()
		}
	}
	return n
}

func (c *Core) admit(s *argSet) {
	for i, r := range s.objs {
		if id := s.req.IDs[i]; c.objs[id] != r { // freed while the set waited
			c.failSet(s, id, lostError(id, "was freed while its task waited for room"))
			return
		}
	}
	s.admitted = true
	for i := range s.objs {
		r := c.reading(s.req.Worker, s.objs[i])
		s.objs[i] = r
		r.o.argPins++
		if !r.o.resident {
			s.missing++
			d := c.want(r.o, laneArgs)
			d.sets = append(d.sets, s)
		}
		c.settle(r.o)
	}
	if s.idle = c.idle[s.req.Task]; !s.idle {
		c.activate(s, true)
	}
	if s.missing == 0 && !s.answered {
		c.answerSet(s)
	}
}

// activate counts a set's arguments against the share of running tasks, or no longer.
func (c *Core) activate(s *argSet, on bool) {
	for _, r := range s.objs {
		if on {
			if r.o.argActive++; r.o.argActive == 1 {
				c.argBytes += r.o.argCharge()
			}
		} else {
			if r.o.argActive--; r.o.argActive == 0 {
				c.argBytes -= r.o.argCharged
			}
		}
	}
	if on {
		c.activeSets++
	} else {
		c.activeSets--
		c.argsFull = false
	}
}

// argCharge fixes what the object counts for, so that a restore into a block of another size
// does not unbalance the sum.
func (o *object) argCharge() uint64 {
	o.argCharged = o.footprint()
	return o.argCharged
}

func (c *Core) answerSet(s *argSet) {
	m := ArgsPinned{Task: s.req.Task, Attempt: s.req.Attempt, Ask: s.req.Ask, Values: make([]PinnedValue, len(s.objs))}
	for i, r := range s.objs {
		c.announce(s.req.Worker, r.o.file, r.o.size, r.o.path)
		m.Values[i] = PinnedValue{ID: s.req.IDs[i], Meta: r.meta(), Extent: r.extent()}
	}
	s.answered = true
	c.remember(s)
	c.emit(ToOwner{s.req.Job, m})
}

// remember notes a set for a new core: one that was answered stays pinned.
func (c *Core) remember(s *argSet) {
	if !s.answered {
		c.emit(Remember{NoteKey{Task: s.req.Task, Attempt: s.req.Attempt}, s.req})
		return
	}
	c.emit(Remember{NoteKey{Task: s.req.Task, Attempt: s.req.Attempt}, heldArgs{s.req, s.idle}})
}

// holdArgs takes the pins of an earlier core's set again. Whether its task waits in a get nobody says twice.
func (c *Core) holdArgs(e heldArgs) {
	c.pinArgs(e.PinArgs, true)
	if e.idle && c.findSet(e.Task, e.Attempt) != nil {
		c.argsIdle(ArgsIdle{Task: e.Task, Idle: true})
	}
}

func (c *Core) unpinArgs(task ids.TaskID, attempt uint32) {
	if s := c.findSet(task, attempt); s != nil {
		c.dropSet(s)
	}
}

// keepArgs ends the sets of a job that its owner does not know of.
func (c *Core) keepArgs(e KeepArgs) {
	keep := make(map[UnpinArgs]bool, len(e.Attempts))
	for _, a := range e.Attempts {
		keep[a] = true
	}
	var drop []*argSet
	for _, l := range c.sets {
		for _, s := range l {
			if s.req.Job == e.Job && !keep[UnpinArgs{s.req.Task, s.req.Attempt}] {
				drop = append(drop, s)
			}
		}
	}
	slices.SortFunc(drop, func(a, b *argSet) int {
		return cmp.Or(slices.Compare(a.req.Task[:], b.req.Task[:]), cmp.Compare(a.req.Attempt, b.req.Attempt))
	})
	for _, s := range drop {
		c.dropSet(s)
	}
}

// dropSet ends a set, waiting or held.
func (c *Core) dropSet(s *argSet) {
	t := s.req.Task
	if l := slices.DeleteFunc(c.sets[t], func(x *argSet) bool { return x == s }); len(l) == 0 {
		delete(c.sets, t)
		delete(c.idle, t)
	} else {
		c.sets[t] = l
	}
	c.emit(Forget{NoteKey{Task: t, Attempt: s.req.Attempt}})
	if !s.admitted {
		c.argWait = slices.DeleteFunc(c.argWait, func(x *argSet) bool { return x == s })
		c.argsFull = false
		return
	}
	if s.answered {
		c.letGo()
	}
	c.dismiss(s)
	s.objs = nil
}

// dismiss undoes admit.
func (c *Core) dismiss(s *argSet) {
	if !s.idle {
		c.activate(s, false)
	}
	for _, r := range s.objs {
		if d := r.o.restore; d != nil {
			d.sets = slices.DeleteFunc(d.sets, func(x *argSet) bool { return x == s })
			c.unwanted(r.o)
		}
	}
	for i, r := range s.objs {
		r.o.argPins--
		c.settle(r.o)
		if of := r.o.of; of != nil {
			s.objs[i].o = of
		}
	}
	s.admitted, s.missing, s.idle = false, 0, false
}

// failSet ends a set one of whose arguments cannot be had.
func (c *Core) failSet(s *argSet, id ids.ObjectID, err *errs.Error) {
	if c.findSet(s.req.Task, s.req.Attempt) != s {
		return
	}
	c.dropSet(s)
	c.emit(ToOwner{s.req.Job, Lost{ID: id, Task: s.req.Task, Attempt: s.req.Attempt, Ask: s.req.Ask, Err: err}})
}

// tooMuch says why a set can never be in memory: it is more than the segment and the files outside it may hold.
func (c *Core) tooMuch(s *argSet) *errs.Error {
	most := c.alloc.Limit() + min(c.cfg.FallbackBytes, math.MaxUint64-c.alloc.Limit())
	if n := c.setBytes(s); n > most {
		return errs.New(errs.CodeStoreFull, "%d objects of %d bytes have to be in memory together, and the store may hold %d: its limit is %d and its disk budget %d: raise one of the two, or take fewer at a time",
			len(s.objs), n, most, c.alloc.Limit(), c.cfg.FallbackBytes)
	}
	return nil
}

// setBytes is what a set's objects have in bytes, each counted once.
func (c *Core) setBytes(s *argSet) (n uint64) {
	c.mark++
	for _, r := range s.objs {
		if r.o.mark != c.mark {
			r.o.mark = c.mark
			n += r.o.size
		}
	}
	return n
}

// noRoom is a set for one of whose objects there is no room anywhere. Where others hold memory that
// they may let go, the set gives up what it has, so that they can go on, and is let in again later;
// else the room will never be there.
func (c *Core) noRoom(s *argSet, err *errs.Error) {
	switch {
	case !s.admitted || c.findSet(s.req.Task, s.req.Attempt) != s:
		return // with another of its objects
	case s.answered || err.Code != errs.CodeStoreFull || c.alone(s):
		err = errs.New(err.Code, "%d objects of %d bytes have to be in memory together: %s", len(s.objs), c.setBytes(s), err.Msg)
		c.refuseSet(s, err)
		return
	}
	c.log("a task waits: there is no room for its arguments beside what others hold", err)
	c.dismiss(s)
	c.argWait = append(c.argWait, s)
	c.argsAt = c.after(c.cfg.Stall)
	c.wakeAt(c.argsAt)
}

// alone tells whether nobody but an admitted set, which has no room, holds any memory.
func (c *Core) alone(s *argSet) bool {
	if len(c.pinned)+len(c.old)+len(c.grants)+len(c.draining) > 0 || c.recovering {
		return false
	}
	for _, l := range c.sets {
		for _, x := range l {
			if x != s && x.admitted {
				return false
			}
		}
	}
	return true
}

// refuseSet ends a set that cannot be in memory; its objects are kept.
func (c *Core) refuseSet(s *argSet, err *errs.Error) {
	c.dropSet(s)
	c.emit(ToOwner{s.req.Job, ArgsRefused{Task: s.req.Task, Attempt: s.req.Attempt, Ask: s.req.Ask, Err: err}})
}

// argsIdle takes a task's arguments out of the count while it waits in a get.
func (c *Core) argsIdle(e ArgsIdle) {
	if e.Idle {
		c.idle[e.Task] = true
	} else {
		delete(c.idle, e.Task)
	}
	for _, s := range c.sets[e.Task] {
		if s.admitted && s.idle != e.Idle {
			s.idle = e.Idle
			c.activate(s, !e.Idle)
			if s.answered {
				c.remember(s)
			}
		}
	}
}
