package graph

// needs knows which tasks are needed, and does what follows when one is no longer needed, fails or is lost.
type needs struct {
	*step
	tasks        *tasks
	workers      *workers
	copies       *copies
	placement    *placement
	errs         map[int32]error
	left         int  // wanted tasks that are neither in memory nor erred
	finishedSent bool // Finished was emitted, since none is left
	stack        []int32
}

func newNeeds(s *step, ts *tasks, ws *workers, cs *copies, ps *placement) *needs {
	return &needs{step: s, tasks: ts, workers: ws, copies: cs, placement: ps, errs: make(map[int32]error)}
}

func (ns *needs) want(ts []int32) {
	for _, t := range ts {
		x := &ns.tasks.list[t]
		if x.flags&isWanted != 0 {
			continue
		}
		if x.state == Forgotten {
			ns.emit(Failed{Task: t, Err: ErrForgotten, Chain: []int32{t}})
			continue
		}
		x.flags |= isWanted
		switch x.state {
		case Memory:
			ns.emit(Result{Task: t, Worker: ns.copies.holder(t), Bytes: x.bytes})
		case Erred:
			ns.emitFailed(t)
		default:
			ns.left++
			ns.finishedSent = false
			ns.need(t)
		}
	}
}

func (ns *needs) unwant(t int32) {
	x := &ns.tasks.list[t]
	if x.flags&isWanted == 0 {
		return
	}
	x.flags &^= isWanted
	if x.state.active() {
		ns.left--
	}
	if x.users == 0 {
		ns.drop(t)
	}
	ns.forget(t)
}

// need makes a released task wait to run, and the inputs that it lacks too.
func (ns *needs) need(t int32) {
	base := len(ns.stack)
	ns.stack = append(ns.stack, t)
	for len(ns.stack) > base {
		t := ns.pop()
		x := &ns.tasks.list[t]
		if x.state != Released || x.users == 0 && x.flags&isWanted == 0 {
			continue // the task that asked for it may have failed meanwhile
		}
		ns.tasks.to(t, onNeed)
		x.waits = 0
		bad := none
		for _, d := range ns.g.deps.of(t) {
			y := &ns.tasks.list[d]
			y.users++
			switch y.state {
			case Memory:
				continue
			case Erred:
				bad = d
			case Released:
				ns.stack = append(ns.stack, d)
			}
			x.waits++
		}
		if bad != none {
			ns.fail(t, bad)
		} else if x.waits == 0 {
			ns.placement.markReady(t)
		}
	}
}

func (ns *needs) pop() int32 {
	t := ns.stack[len(ns.stack)-1]
	ns.stack = ns.stack[:len(ns.stack)-1]
	return t
}

// releaseInputs notes for each input of a task that the task no longer needs it.
func (ns *needs) releaseInputs(t int32) {
	for _, d := range ns.g.deps.of(t) {
		y := &ns.tasks.list[d]
		if y.users--; y.users == 0 {
			ns.drop(d)
		}
	}
}

// drop gives up a task that nobody needs: its result is freed; if it was not made yet it is not made, nor are the
// inputs that only it needed.
func (ns *needs) drop(t int32) {
	base := len(ns.stack)
	ns.stack = append(ns.stack, t)
	for len(ns.stack) > base {
		t := ns.pop()
		x := &ns.tasks.list[t]
		if x.users > 0 || x.flags&isWanted != 0 {
			continue
		}
		switch {
		case x.state == Memory:
			ns.copies.free(t)
			ns.tasks.to(t, onDrop)
		case x.state.active():
			ns.withdraw(t)
			ns.tasks.to(t, onDrop)
			for _, d := range ns.g.deps.of(t) {
				y := &ns.tasks.list[d]
				if y.users--; y.users == 0 {
					ns.stack = append(ns.stack, d)
				}
			}
		}
	}
}

// withdraw removes an active task from wherever it is queued or running.
func (ns *needs) withdraw(t int32) {
	switch x := &ns.tasks.list[t]; x.state {
	case Processing:
		ns.emit(Stop{Task: t, Attempt: x.attempt, Worker: ns.workers.byIndex[x.worker].id})
		ns.workers.leave(t)
	case NoWorker:
		ns.placement.leaveStranded(t)
	}
}

// forget ends tasks that nobody can ever need: not wanted, and with all dependents forgotten.
func (ns *needs) forget(t int32) {
	base := len(ns.stack)
	ns.stack = append(ns.stack, t)
	for len(ns.stack) > base {
		t := ns.pop()
		x := &ns.tasks.list[t]
		if x.alive > 0 || x.flags&isWanted != 0 || table[x.state][onForget] == illegal {
			continue
		}
		ns.tasks.to(t, onForget)
		delete(ns.errs, t)
		for _, d := range ns.g.deps.of(t) {
			y := &ns.tasks.list[d]
			if y.alive--; y.alive == 0 {
				ns.stack = append(ns.stack, d)
			}
		}
	}
}
