package pool

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// need gives a lease a worker, at once or when one is ready.
func (c *Core) need(n sched.NeedWorker) {
	j := c.jobs[n.Job]
	if j == nil || c.stopped {
		c.noWorker(n.Lease, errs.New(errs.CodeShutdown, "job %v has ended", n.Job))
		return
	}
	g, err := c.groupFor(j, n)
	if err != nil {
		c.noWorker(n.Lease, err)
		return
	}
	s := &assignment{lease: n.Lease, group: g}
	c.assignments[n.Lease] = s
	s.group.waiting.Push(s)
	c.fill(s.group)
}

// noProgram is the error of a function whose language the job has no program for.
func noProgram(j *job, function string) *errs.Error {
	what := `no Go program: name one with mobula.init(go_program="...")`
	if wire.Language(function) == wire.LangPython {
		what = "no Python program: let the driver start or connect with Python (WithPython, ConnectPython)"
	}
	return errs.New(errs.CodeUnknownFunction, "function %q: job %v has %s", function, j.id, what)
}

// groupFor is the group of a lease: one group for the node's own functions, else a group of the program of its
// language.
func (c *Core) groupFor(j *job, n sched.NeedWorker) (*group, *errs.Error) {
	if j.system != nil && strings.HasPrefix(n.Func, wire.SystemPrefix) {
		return j.system.group, nil
	}
	p, ok := j.program(wire.Language(n.Func))
	if !ok {
		return nil, noProgram(j, n.Func)
	}
	return c.groupIn(j, p, n), nil
}

// groupIn is the group of a lease in one program. If slots are in the driver's process, isolated leases go there
// too unless processes are asked for. If a worker has one lease at a time, tasks are treated as those of an
// isolated function without a name.
func (c *Core) groupIn(j *job, p Program, n sched.NeedWorker) *group {
	if j.tasks != nil && p == j.programs[0] {
		n.Process = "" // one process has all of them
	}
	if n.Slot == sched.SlotOwn && j.tasks != nil && !j.isolate && p == j.programs[0] {
		if n.Actor {
			return j.actors.group
		}
		return j.tasks.group
	}
	if p.Single {
		n.Actor = n.Actor || n.Slot == sched.SlotActor
		if n.Slot == sched.SlotTask {
			n.Func, n.Memory = "", 0
		}
		n.Slot, n.Process = sched.SlotOwn, ""
	}
	return c.groupOf(j, p.Language, n)
}

// fill gives waiting leases their workers, and starts missing workers.
func (c *Core) fill(g *group) {
	for g.waiting.Len() > 0 {
		w := g.free()
		if w == nil {
			break
		}
		s := g.waiting.Pop()
		c.assign(s, w)
		c.emit(ToSched{sched.WorkerReady{Lease: s.lease, Worker: w.client}})
	}
	want := g.waiting.Len()
	if !g.own() {
		want = min(want, 1)
	}
	for n := g.pendingWorkers(); n < want; n++ {
		if !c.enqueue(g) {
			c.failAll(g, errs.New(errs.CodeRuntimeSetup, "home %v has given out the numbers of %d workers, all there are: give the node a new directory", c.nextID.Home(), ids.MaxNumber))
			return
		}
	}
	if g.own() { // drop starts that nobody waits for any more
		for n, i := g.pendingWorkers(), c.queue.Len()-1; n > want && i >= 0; i-- {
			if w := c.queue.All()[i]; w.group == g {
				c.unqueue(w)
				n--
			}
		}
	}
	c.dropIfEmpty(g)
}

func (c *Core) assign(s *assignment, w *worker) {
	s.worker = w
	w.assignments[s.lease] = s
}

// enqueue plans one more worker; false: the home has no number left for one.
func (c *Core) enqueue(g *group) bool {
	id, left := ids.Next(c.nextID)
	if !left {
		return false
	}
	c.nextID = id
	w := &worker{id: id, group: g, state: Queued, assignments: make(map[ids.LeaseID]*assignment)}
	g.workers = append(g.workers, w)
	c.workers[w.id] = w
	c.queue.Push(w)
	if g.own() {
		c.isolated++
	}
	return true
}

// unqueue drops a worker that was not started.
func (c *Core) unqueue(w *worker) {
	c.queue.DeleteFunc(func(o *worker) bool { return o == w })
	c.remove(w)
}

func (c *Core) remove(w *worker) {
	c.setState(w, Dead)
	w.group.drop(w)
	delete(c.workers, w.id)
	delete(c.byClient, w.client)
	delete(c.byToken, string(w.token))
	if c.jobs[w.group.job.id] == w.group.job {
		c.dropIfEmpty(w.group)
	}
}

// startQueued starts queued workers, as many at once as allowed.
func (c *Core) startQueued() {
	for c.queue.Len() > 0 && c.starting < c.cfg.Starts && !c.stopped {
		w := c.queue.Pop()
		c.setState(w, Starting)
		w.token = c.cfg.NewToken()
		c.byToken[string(w.token)] = w
		c.counters.Started++
		k := w.group.key
		c.emit(StartProcess{Worker: w.id, Token: w.token, Job: w.group.job.id, Opening: w.group.job.opening, Language: k.language, Slot: k.slot,
			Func: k.fn, Process: k.process, Actor: k.actor != 0, Memory: k.memory})
		c.timer(w, c.cfg.StartTime)
	}
}

func (c *Core) onRegistered(now int64, ev Registered) {
	w := c.byToken[string(ev.Token)]
	switch {
	case w == nil || len(ev.Token) == 0 || w.client != 0:
		c.counters.Refused++
		c.emit(Refuse{ev.Client, errs.New(errs.CodePermission, "client %v (pid %d) is no worker that this node started", ev.Client, ev.PID)})
		return
	case w.state != Starting: // its end is under way, which is no fault to report: with this code a worker ends without a word
		c.counters.Refused++
		c.emit(Refuse{ev.Client, errs.New(errs.CodeDisconnected, "the node is ending worker %v (pid %d), which had not registered yet", w.id, ev.PID)})
		return
	}
	if ev.Err != nil { // another worker of the same program would fail in the same way
		c.counters.Refused++
		c.counters.StartFailures++
		c.emit(Refuse{ev.Client, ev.Err})
		g := w.group
		c.kill(w, ev.Err)
		c.failAll(g, ev.Err)
		return
	}
	c.setState(w, Ready)
	w.seq++ // ends the start's timer
	w.client, w.pid, w.idleSince = ev.Client, ev.PID, now
	w.group.failures, w.group.kills = 0, 0
	c.byClient[w.client] = w
	c.emit(Admit{Client: ev.Client, Worker: w.id, Job: w.group.job.id, Slot: w.group.key.slot})
	c.fill(w.group)
	c.watchIdle(w)
}

// release takes a lease off its worker, or out of the queue.
func (c *Core) release(now int64, lease ids.LeaseID) {
	s := c.assignments[lease]
	if s == nil {
		return
	}
	delete(c.assignments, lease)
	if s.worker == nil {
		s.group.waiting.DeleteFunc(func(o *assignment) bool { return o == s })
		c.fill(s.group)
		return
	}
	w := s.worker
	delete(w.assignments, lease)
	delete(w.abandoned, lease)
	switch {
	case w.virtual:
	case w.state == Draining:
		c.drained(w)
	case s.group.key.actor != 0, s.group.key.process != "" && len(w.assignments) == 0:
		c.retire(w)
	case s.group.own():
		w.idleSince = now
		c.fill(s.group)
		c.watchIdle(w)
	}
}

// drained tells a draining worker to exit once only abandoned leases are left.
func (c *Core) drained(w *worker) {
	if len(w.assignments) == len(w.abandoned) && !w.killed {
		c.retire(w)
	}
}

func (c *Core) onDrain(ev sched.DrainWorker) {
	w := c.byClient[ev.Worker]
	if w == nil {
		return
	}
	if w.virtual { // it cannot be ended; abandoned leases no longer count
		if w.assignments[ev.Lease] != nil {
			delete(w.assignments, ev.Lease)
			delete(c.assignments, ev.Lease)
			c.emit(ToSched{sched.WorkerGone{Worker: w.client, Leases: []ids.LeaseID{ev.Lease}, Err: ev.Err}})
		}
		return
	}
	w.drainErr = ev.Err
	if w.assignments[ev.Lease] != nil {
		if w.abandoned == nil {
			w.abandoned = make(map[ids.LeaseID]bool)
		}
		w.abandoned[ev.Lease] = true
	}
	if w.group.own() && len(w.others()) == 0 { // else it has the next lease of its function already
		c.kill(w, nil)
		return
	}
	c.drain(w)
}

// drain ends a worker when its leases have ended, and asks owners to return them.
func (c *Core) drain(w *worker) {
	if w.state == Ready {
		c.setState(w, Draining)
		if others := w.others(); len(others) > 0 {
			c.emit(ToSched{sched.WorkerDraining{Leases: others}})
		}
	}
	c.drained(w)
	c.fill(w.group)
}

// onWorn replaces a worker for tasks. A worker for an actor has the actor's state, and stays.
func (c *Core) onWorn(ev Worn) {
	w := c.byClient[ev.Client]
	if w == nil || w.virtual || w.state != Ready || !w.group.own() || w.group.key.actor != 0 {
		return
	}
	c.counters.Worn++
	c.drain(w)
}

// others lists the leases that were not abandoned.
func (w *worker) others() []ids.LeaseID {
	var out []ids.LeaseID
	for id := range w.assignments {
		if !w.abandoned[id] {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// watchIdle makes sure that an idle isolated worker is looked at again.
func (c *Core) watchIdle(w *worker) {
	if !w.group.own() || len(w.assignments) > 0 || w.state != Ready || c.ticking || c.isolated <= c.cfg.SoftLimit && w.group.key.actor == 0 {
		return
	}
	c.ticking = true
	c.emit(After{D: c.cfg.IdleAfter, Ev: idleTick{}})
}

// retireIdle ends the isolated workers that were idle longest, down to the soft limit.
func (c *Core) retireIdle(now int64) {
	var idle []*worker
	for _, w := range c.workers {
		if w.group.own() && w.state == Ready && len(w.assignments) == 0 {
			idle = append(idle, w)
		}
	}
	slices.SortFunc(idle, func(a, b *worker) int {
		return cmp.Or(cmp.Compare(a.idleSince, b.idleSince), cmp.Compare(a.id, b.id))
	})
	for _, w := range idle {
		if c.isolated <= c.cfg.SoftLimit && w.group.key.actor == 0 {
			continue
		}
		ripe := w.idleSince + int64(c.cfg.IdleAfter)
		if now < ripe {
			c.ticking = true
			c.emit(After{D: time.Duration(ripe - now), Ev: idleTick{}})
			return
		}
		c.counters.Idle++
		c.retire(w)
	}
}

func (c *Core) noWorker(l ids.LeaseID, err *errs.Error) {
	c.emit(ToSched{sched.NoWorker{Lease: l, Err: err}})
}
