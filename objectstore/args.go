package objectstore

import (
	"cmp"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

func (ar *args) findSet(task ids.TaskID, attempt uint32) *argSet {
	for _, s := range ar.sets[task] {
		if s.req.Attempt == attempt {
			return s
		}
	}
	return nil
}

// pinArgs queues an attempt's arguments as a set. A set that is there already is answered again. held: a core that has panicked answered this set, so its
// objects are pinned at once, whatever the limits, and no answer is sent.
func (ar *args) pinArgs(e PinArgs, held bool) {
	if _, ok := ar.clients.byID[e.Worker]; !ok {
		return // the owner learns of the worker's end from the scheduler
	}
	s := ar.findSet(e.Task, e.Attempt)
	if s != nil && s.partial { // no worker reads it, or its owner would not ask
		ar.dropSet(s)
	} else if s != nil {
		if s.req.Ask != e.Ask { // a rebuilt owner asks
			s.req.Ask = e.Ask
			ar.remember(s)
		}
		if s.answered && !held {
			ar.answerSet(s)
		}
		return
	}
	s = &argSet{req: e, objs: make([]ref, 0, len(e.IDs)), names: e.IDs, answered: held}
	for _, id := range e.IDs {
		r, ok := ar.objects.objs[id]
		if held {
			r, ok = ar.holdOrphans(s, id, r)
		}
		if !ok {
			m := ar.creates.missing(id)
			m.Task, m.Attempt, m.Ask = e.Task, e.Attempt, e.Ask
			ar.emit(ToOwner{e.Job, m})
			if !held {
				return
			}
			s.partial = true // the worker goes on reading the others
			s.names = slices.DeleteFunc(slices.Clone(s.names), func(x ids.ObjectID) bool { return x == id })
			continue
		}
		s.objs = append(s.objs, r)
		if r.o.list != nil { // it will be used soon: not the next to be spilled
			l := r.o.list
			l.remove(r.o)
			l.push(r.o)
		}
	}
	ar.sets[e.Task] = append(ar.sets[e.Task], s)
	if held {
		ar.admit(s)
		ar.remember(s)
		return
	}
	if err := ar.exceedsLimit(s); err != nil {
		ar.refuseSet(s, err)
		return
	}
	ar.argWait.Push(s)
	ar.admitArgs()
	if !s.answered && ar.findSet(e.Task, e.Attempt) == s {
		ar.remember(s)
		ar.emit(ToOwner{e.Job, ArgsWait{e.Task, e.Attempt, e.Ask}})
	}
}

// admitArgs lets waiting sets in, in order, while running tasks' arguments stay within their share.
// A set that would run alone is always let in, and one whose objects are all in use already: it takes nothing more.
func (ar *args) admitArgs() {
	most := ar.space.share(ar.cfg.ArgsFraction)
	for ar.argWait.Len() > 0 && !ar.argsFull {
		s := ar.argWait.Front()
		if n := ar.added(s); ar.activeSets > 0 && n > 0 && ar.argBytes+n > most {
			ar.argsFull = true // until a set leaves
			return
		}
		ar.argWait.Pop()
		ar.admit(s) // or says what is missing
	}
}

// added is by how much a set would raise argBytes: objects that others use count once.
func (ar *args) added(s *argSet) uint64 {
	var n uint64
	ar.objects.mark++
	for _, r := range s.objs {
		if x, ok := ar.objects.readAt(s.req.Worker, r); ok {
			r = x
		}
		if r.o.argActive == 0 && r.o.mark != ar.objects.mark {
			r.o.mark = ar.objects.mark
			n += r.o.footprint()
		}
	}
	return n
}

func (ar *args) admit(s *argSet) {
	for i, r := range s.objs {
		if id := s.names[i]; !s.answered && ar.objects.objs[id] != r { // freed while the set waited
			ar.failSet(s, i, lostError(id, "was freed while its task waited for room"))
			return
		}
	}
	s.admitted = true
	for i := range s.objs {
		r := ar.copies.reading(s.req.Worker, s.objs[i])
		s.objs[i] = r
		r.o.argPins++
		if !r.o.resident {
			s.missing++
			d := ar.restores.requestRestore(r.o, laneArgs)
			d.sets = append(d.sets, s)
		}
		ar.objects.relist(r.o)
	}
	for _, x := range s.orphans {
		x.argPins++
		ar.objects.relist(x)
	}
	if s.idle = ar.idle[s.req.Task]; !s.idle {
		ar.activate(s, true)
	}
	if s.missing == 0 && !s.answered {
		ar.answerSet(s)
	}
}

// activate adds a set's arguments to the share of running tasks (argBytes), or takes them out.
func (ar *args) activate(s *argSet, on bool) {
	for _, r := range s.objs {
		if on {
			if r.o.argActive++; r.o.argActive == 1 {
				ar.argBytes += r.o.argCharge()
			}
		} else {
			if r.o.argActive--; r.o.argActive == 0 {
				ar.argBytes -= r.o.argCharged
			}
		}
	}
	if on {
		ar.activeSets++
	} else {
		ar.activeSets--
		ar.argsFull = false
	}
}

// argCharge fixes what the object counts for, so that a restore into a block of another size
// does not unbalance the sum.
func (o *object) argCharge() uint64 {
	o.argCharged = o.footprint()
	return o.argCharged
}

func (ar *args) answerSet(s *argSet) {
	m := ArgsPinned{Task: s.req.Task, Attempt: s.req.Attempt, Ask: s.req.Ask, Values: make([]PinnedValue, len(s.objs))}
	for i, r := range s.objs {
		ar.clients.announce(s.req.Worker, r.o.file, r.o.size, r.o.path)
		m.Values[i] = PinnedValue{ID: s.names[i], Meta: r.meta(), Extent: r.extent()}
	}
	s.answered = true
	ar.remember(s)
	ar.emit(ToOwner{s.req.Job, m})
}

// remember notes a set for a new core: one that was answered stays pinned.
func (ar *args) remember(s *argSet) {
	if !s.answered {
		ar.keepNote(NoteKey{Task: s.req.Task, Attempt: s.req.Attempt}, s.req)
		return
	}
	ar.keepNote(NoteKey{Task: s.req.Task, Attempt: s.req.Attempt}, heldArgs{s.req, s.idle && !s.left, s.left})
}

// holdArgs pins again what a set of an earlier core held. The note has whether its task waits in a get, since no message says that again.
func (ar *args) holdArgs(e heldArgs) {
	ar.pinArgs(e.PinArgs, true)
	if e.idle && ar.findSet(e.Task, e.Attempt) != nil {
		ar.argsIdle(ArgsIdle{Task: e.Task, Idle: true})
	}
	if e.left {
		ar.abandonArgs(AbandonArgs{e.Task, e.Attempt})
	}
}

func (ar *args) unpinArgs(task ids.TaskID, attempt uint32) {
	if s := ar.findSet(task, attempt); s != nil {
		ar.dropSet(s)
	}
}

// keepArgs ends the sets of a job that its owner does not know of.
func (ar *args) keepArgs(e KeepArgs) {
	keep := make(map[UnpinArgs]bool, len(e.Attempts))
	for _, a := range e.Attempts {
		keep[a] = true
	}
	ar.dropSets(func(s *argSet) bool { return s.req.Job == e.Job && !keep[UnpinArgs{s.req.Task, s.req.Attempt}] })
}

// setsOf lists the sets that are of a kind, in a fixed order.
func (ar *args) setsOf(of func(*argSet) bool) []*argSet {
	var out []*argSet
	for _, l := range ar.sets {
		for _, s := range l {
			if of(s) {
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, func(a, b *argSet) int {
		return cmp.Or(slices.Compare(a.req.Task[:], b.req.Task[:]), cmp.Compare(a.req.Attempt, b.req.Attempt))
	})
	return out
}

func (ar *args) dropSets(of func(*argSet) bool) {
	for _, s := range ar.setsOf(of) {
		ar.dropSet(s)
	}
}

// endSets ends the sets of a job that is over. What was answered stays as that of an abandoned attempt does: a worker may still read it.
func (ar *args) endSets(job ids.JobID) {
	for _, s := range ar.setsOf(func(s *argSet) bool { return s.req.Job == job }) {
		ar.abandonArgs(AbandonArgs{s.req.Task, s.req.Attempt})
	}
}

// dropSet ends a set, waiting or held.
func (ar *args) dropSet(s *argSet) {
	t := s.req.Task
	if l := slices.DeleteFunc(ar.sets[t], func(x *argSet) bool { return x == s }); len(l) == 0 {
		delete(ar.sets, t)
		delete(ar.idle, t)
	} else {
		ar.sets[t] = l
	}
	ar.emit(Forget{NoteKey{Task: t, Attempt: s.req.Attempt}})
	if !s.admitted {
		ar.argWait.DeleteFunc(func(x *argSet) bool { return x == s })
		ar.argsFull = false
		return
	}
	if s.answered {
		ar.progress.noteProgress()
	}
	ar.undoAdmit(s)
	s.objs = nil
}

// undoAdmit undoes admit.
func (ar *args) undoAdmit(s *argSet) {
	if !s.idle {
		ar.activate(s, false)
	}
	for _, r := range s.objs {
		if d := r.o.restore; d != nil {
			d.sets = slices.DeleteFunc(d.sets, func(x *argSet) bool { return x == s })
			ar.restores.cancelRestore(r.o)
		}
	}
	for i, r := range s.objs {
		r.o.argPins--
		ar.objects.relist(r.o)
		if of := r.o.of; of != nil {
			s.objs[i].o = of
		}
	}
	for _, x := range s.orphans {
		x.argPins--
		ar.objects.relist(x)
	}
	s.admitted, s.missing, s.idle, s.orphans = false, 0, false, nil
}

// holdOrphans finds everything that the task of a set from before a restart may read under an id: r, the object as it is now, and what dropped attempts left.
// The task reads one of them, nobody knows which, so the set holds all. It is false if there is none.
func (ar *args) holdOrphans(s *argSet, id ids.ObjectID, r ref) (ref, bool) {
	was := ar.objects.orphansOf(s.req.Worker, id)
	if r.o == nil && len(was) > 0 {
		r, was = was[0], was[1:]
	}
	for _, x := range was {
		s.orphans = append(s.orphans, x.o)
	}
	return r, r.o != nil
}

// failSet ends a set whose i-th argument cannot be had.
func (ar *args) failSet(s *argSet, i int, err *errs.Error) {
	if ar.findSet(s.req.Task, s.req.Attempt) != s {
		return
	}
	lost := Lost{ID: s.names[i], Task: s.req.Task, Attempt: s.req.Attempt, Ask: s.req.Ask, Copy: s.objs[i].o.attempt, Err: err}
	ar.dropSet(s)
	ar.emit(ToOwner{s.req.Job, lost})
}

// exceedsLimit says why a set can never be in memory: it is more than the segment and the files outside it may hold.
func (ar *args) exceedsLimit(s *argSet) *errs.Error {
	most := plus(ar.space.alloc.Limit(), ar.cfg.FallbackBytes)
	if n := ar.setBytes(s); n > most {
		return errs.New(errs.CodeStoreFull, "%d objects of %d bytes have to be in memory together, and the store may hold %d: its limit is %d and its disk budget %d: raise one of the two, or take fewer at a time",
			len(s.objs), n, most, ar.space.alloc.Limit(), ar.cfg.FallbackBytes)
	}
	return nil
}

// setBytes is what a set's objects have in bytes, each counted once.
func (ar *args) setBytes(s *argSet) (n uint64) {
	ar.objects.mark++
	for _, r := range s.objs {
		if r.o.mark != ar.objects.mark {
			r.o.mark = ar.objects.mark
			n += r.o.size
		}
	}
	return n
}

// noRoom ends a set one of whose objects finds no room anywhere, and tells whether it had not ended before, for another of them.
func (ar *args) noRoom(s *argSet, err *errs.Error) (refused bool) {
	if !s.admitted || ar.findSet(s.req.Task, s.req.Attempt) != s {
		return false
	}
	ar.refuseSet(s, errs.New(err.Code, "%d objects of %d bytes have to be in memory together: %s", len(s.objs), ar.setBytes(s), err.Msg))
	return true
}

// refuseSet ends a set that cannot be in memory; its objects are kept.
func (ar *args) refuseSet(s *argSet, err *errs.Error) {
	ar.dropSet(s)
	ar.emit(ToOwner{s.req.Job, ArgsRefused{Task: s.req.Task, Attempt: s.req.Attempt, Ask: s.req.Ask, Err: err}})
}

// argsIdle takes a task's arguments out of the count while it waits in a get.
func (ar *args) argsIdle(e ArgsIdle) {
	if e.Idle {
		ar.idle[e.Task] = true
	} else {
		delete(ar.idle, e.Task)
	}
	for _, s := range ar.sets[e.Task] {
		if s.admitted && !s.left && s.idle != e.Idle {
			s.idle = e.Idle
			ar.activate(s, !e.Idle)
			if s.answered {
				ar.remember(s)
			}
		}
	}
}

// abandonArgs takes the arguments of an abandoned attempt out of the share of running tasks. A set that was not answered is dropped: no worker reads it.
func (ar *args) abandonArgs(e AbandonArgs) {
	s := ar.findSet(e.Task, e.Attempt)
	switch {
	case s == nil || s.left:
		return
	case !s.answered:
		ar.dropSet(s)
		return
	}
	s.left = true
	if !s.idle {
		s.idle = true
		ar.activate(s, false)
	}
	ar.remember(s)
}

func (ar *args) taskWaits(t ids.TaskID) bool { return ar.idle[t] || ar.creates.creating[t] > 0 }
