package owner

import (
	"cmp"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// recovery is a rebuilt core's wait for its clients. Who holds which handle, waits for what
// and runs which task is not in the log: the clients say. Until each has, nothing may be
// freed and nothing started.
type recovery struct {
	started bool
	epoch   uint64
	jobs    []ids.JobID // the others
	waiting map[ids.ClientID]bool
	held    []Event
	at      int // of held, the one being stepped; -1: none
	timer   *timer
}

// Held gives the events that a core which is still recovering has kept back, for the core
// that replaces it: they are stepped right after its Restored, before the mailbox. The step that
// goes on with them has them still, since its effects may not have run. at is the index of the
// one that was being stepped when the core panicked, or -1.
func (c *Core) Held() (events []Event, at int) {
	if p := cmp.Or(c.pause, c.resuming); p != nil {
		return p.held, p.at
	}
	return nil, -1
}

func newRecovery() *recovery { return &recovery{waiting: make(map[ids.ClientID]bool), at: -1} }

// restored asks every client what it holds, and the scheduler for the job's leases.
func (c *Core) restored(ev Restored) {
	p := c.pause
	if p == nil || p.started {
		return
	}
	p.started, p.epoch = true, ev.Epoch
	c.epoch = ev.Epoch
	c.cookies, c.deadLog = append(c.cookies, c.deadLog...), nil
	c.toSched(sched.OwnerRestarted{Job: c.cfg.Job, Epoch: ev.Epoch})
	for _, j := range ev.Clients {
		cl := c.addClient(j.Client, j.Role)
		cl.joined, cl.guest = true, j.Guest
		if j.Role == wire.RoleDriver {
			c.drivers++
		}
		p.waiting[j.Client] = true
		c.toClient(cl, &wire.Resync{Component: wire.ComponentOwner, Epoch: ev.Epoch})
	}
	p.jobs = ev.Jobs
	c.askPeers(ev.Jobs)
	p.timer = c.timers.add(c.now+int64(c.cfg.ResyncTimeout), timer{kind: timerResync})
	c.maybeResume()
}

// hold keeps an event back, and looks in it for what is waited for.
func (c *Core) hold(ev Event) {
	p := c.pause
	switch ev := ev.(type) {
	case Restored:
		c.restored(ev)
		return
	case Timer:
		c.armed = 0
		if p.timer != nil && p.timer.at <= c.now {
			c.resyncOver()
		}
		return
	case FromClient:
		if p.waiting[ev.Client] && slices.ContainsFunc(ev.Msgs, p.answers) {
			delete(p.waiting, ev.Client)
		}
	case ClientGone:
		delete(p.waiting, ev.Client)
	}
	p.held = append(p.held, ev)
	c.maybeResume()
}

func (p *recovery) answers(m wire.Msg) bool {
	h, ok := m.(*wire.Holdings)
	return ok && h.Component == wire.ComponentOwner && h.Epoch == p.epoch
}

// resyncOver gives up on the clients that say nothing: they are told to go.
func (c *Core) resyncOver() {
	p := c.pause
	if p == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(p.waiting)) {
		c.toClient(c.clients[id], &wire.Bye{Err: errs.New(errs.CodeProtocol, "the client did not say what it holds within %v of a restart", c.cfg.ResyncTimeout)})
		p.held = append(p.held, ClientGone{Client: id, Err: errs.New(errs.CodeWorkerCrashed, "it did not answer after a restart of its job's owner")})
	}
	clear(p.waiting)
	c.maybeResume()
}

// maybeResume goes on when every client has answered: first what clients sent, so that
// everything that is held and run is known, then the rest.
func (c *Core) maybeResume() {
	p := c.pause
	if !p.started || len(p.waiting) > 0 {
		return
	}
	if p.timer != nil {
		c.timers.remove(p.timer)
		p.timer = nil
	}
	for i, ev := range p.held {
		p.at = i
		if ev, ok := ev.(FromClient); ok {
			c.adoptAll(ev)
		}
	}
	for i, ev := range p.held {
		p.at = i
		switch ev := ev.(type) {
		case FromClient:
			c.resumeClient(ev)
		case ClientJoined:
			c.clientJoined(ev)
		}
	}
	p.at = -1
	c.drain()
	c.reconcile()
	c.pause, c.resuming = nil, p
	for i, ev := range p.held {
		p.at = i
		switch ev.(type) {
		case FromClient, ClientJoined:
		default:
			c.handle(ev)
		}
	}
	p.at = -1
	for _, job := range p.jobs {
		c.tellHeld(job)
	}
}

// adoptAll takes over what a worker has, before anything that it sent: that speaks of it.
func (c *Core) adoptAll(ev FromClient) {
	cl := c.client(ev.Client)
	if cl == nil {
		return
	}
	for _, m := range ev.Msgs {
		if !c.pause.answers(m) {
			continue
		}
		h := m.(*wire.Holdings)
		cl.spoke = true
		for _, id := range h.Actors {
			if id.Job() != c.cfg.Job {
				continue // of a guest's own job, whose owner it is that knows
			}
			if a := c.actors[id]; a != nil {
				c.adoptActor(cl, a)
			}
			if a := c.actors[id]; a == nil || a.over() {
				c.toClient(cl, &wire.StopActor{Actor: id})
			}
		}
		for _, at := range h.Tasks {
			c.adoptAttempt(cl, at)
		}
	}
}

func (c *Core) resumeClient(ev FromClient) {
	cl := c.client(ev.Client)
	if cl == nil {
		return
	}
	for _, m := range ev.Msgs {
		if c.pause.answers(m) { // what it runs was adopted
			c.applyHoldings(cl, m.(*wire.Holdings))
		} else {
			c.message(cl, m)
		}
	}
}

// applyHoldings replaces what is known of a client by what it says.
func (c *Core) applyHoldings(cl *clientRec, m *wire.Holdings) {
	if cl.guest {
		return // what it holds it holds of its own job's owner
	}
	c.dropHandles(cl)
	c.dropStreams(cl)
	for _, id := range m.Handles {
		if id != id.Task.Stream() {
			c.addRef(cl, c.ensure(id).id)
		} else if t := c.streaming(id.Task); t != nil {
			t.x.stream.join(cl)
		}
	}
	for _, g := range m.Gets {
		c.get(cl, g.ID, g.Fetch)
	}
	for _, s := range m.Streams {
		c.streamNext(cl, s.Task, s.Index)
	}
}

// adoptAttempt takes over a task that a worker has.
func (c *Core) adoptAttempt(cl *clientRec, at wire.Attempt) {
	t := c.tasks.task(at.Task)
	if t != nil {
		t.start = max(t.start, at.Attempt) // the number is used, whatever becomes of the attempt
	}
	if t == nil || t.state.Terminal() || t.state.OnWorker() || t.flags&taskWaitsName != 0 {
		c.toClient(cl, &wire.CancelTask{Task: at.Task})
		c.adoptEnded(cl, t, at.Lease)
		return
	}
	var l *leaseRec
	if t.isCall() {
		c.adoptActor(cl, t.actor)
		c.adoptForeign(cl, t.actor, at.Lease)
		l = t.actor.lease
	} else {
		l = c.adoptLease(at.Lease, cl, t.class)
	}
	if l == nil || l.worker != cl {
		c.toClient(cl, &wire.CancelTask{Task: at.Task})
		return
	}
	c.reach(t)
	t.lease = l
	t.flags |= taskPinned | taskAdopted // whether anything is pinned the store knows
	if t.isCall() {
		t.flags |= taskTurn
	}
	l.lane.push(t)
	if l.lane.len() == 1 && l.actor == nil {
		c.setState(t, task.Running)
	}
	if t.x != nil && t.x.insist {
		c.giveGrace(t)
	}
}

// adoptEnded takes over a task that has an error already and that a worker has still: it was told to end, and its lane is given up
// if it does not.
func (c *Core) adoptEnded(cl *clientRec, t *taskRec, id ids.LeaseID) {
	if t == nil || t.state != task.Failed && t.state != task.Cancelled || t.class == nil || t.isCall() || t.isCreation() || t.lease != nil {
		return
	}
	l := c.adoptLease(id, cl, c.classAgain(t.class))
	if l == nil || l.worker != cl {
		return
	}
	t.lease = l
	t.flags |= taskPinned | taskAdopted
	l.lane.push(t)
	c.giveGrace(t)
}

// reach brings a task that waits to where a worker has it.
func (c *Core) reach(t *taskRec) {
	t.unlist()
	t.gen++ // what it waited for does not matter any more
	c.setState(t, task.Submitted)
}

func (c *Core) adoptLease(id ids.LeaseID, cl *clientRec, k *classRec) *leaseRec {
	if l := c.leases[id]; l != nil && l.actor == nil {
		return l
	} else if l != nil || id == 0 || cl == nil {
		return nil
	}
	l := &leaseRec{id: id, worker: cl, class: k, state: lease.Active}
	c.addLease(l)
	return l
}

func (c *Core) adoptActor(cl *clientRec, a *actorRec) {
	if a.lease != nil || a.logged == nil || a.state != actor.Alive && a.state != actor.Stopping || a.logged.Worker != cl.id {
		return
	}
	if c.leases[a.logged.Lease] != nil {
		return // the worker says that a task runs there: it does not have the actor
	}
	l := &leaseRec{id: a.logged.Lease, worker: cl, actor: a, state: lease.Actor}
	c.addLease(l)
	a.lease = l
}

// adoptForeign takes the word of a worker that has a call for where another job's actor is; its owner says the rest.
func (c *Core) adoptForeign(cl *clientRec, a *actorRec, id ids.LeaseID) {
	if a.rec != nil || a.lease != nil || a.state != actor.Locating || c.leases[id] != nil {
		return
	}
	l := &leaseRec{id: id, worker: cl, actor: a, state: lease.Actor}
	c.addLease(l)
	a.lease = l
	c.moveActor(a, actor.Up)
}

// seekAgain asks where another job's actor is, of which a core that is lost knew: what it was told, and what it asked, went with it.
func (c *Core) seekAgain(a *actorRec) {
	if a.over() {
		c.maybeForgetForeign(a)
		return
	}
	a.doubt = a.queue.n > 0 || len(a.callers) > 0
	c.toRegistry(LocateActor{Actor: a.id})
	c.touchActor(a)
}

// reconcile settles what no client spoke of: actors that no worker has are lost. Tasks that
// no worker has are in their queues already.
func (c *Core) reconcile() {
	c.leaveUnread()
	for _, id := range c.actorIDs() {
		a := c.actors[id]
		if a.rec == nil {
			c.seekAgain(a)
			continue
		}
		switch {
		case a.over() && a.claimed: // it may have died for the log and not for the registry
			c.toRegistry(ReleaseName{Actor: a.id, Opts: a.opts, Err: a.cause})
			a.claimed = false
		case a.state == actor.Alive && a.lease == nil:
			c.actorLost(a, nil, true, errs.New(errs.CodeWorkerCrashed, "no worker has actor %v after a restart of its job's owner", a.id))
		case a.state == actor.Alive && a.hurt != nil: // its constructor had just returned
			c.chargeHurt(a)
		case a.state == actor.Stopping && a.lease == nil:
			c.die(a, a.stop)
		case a.state == actor.Stopping:
			c.askClose(a, true)
		case a.state == actor.Claiming:
			c.toRegistry(ClaimName{Actor: a.id, Opts: a.opts})
		}
		if !a.over() {
			c.publish(a)
			c.touchActor(a)
		}
	}
	c.keepArgs()
	c.tasks.eachTask(func(t *taskRec) {
		switch {
		case t.nret == wire.Streaming && t.state.OnWorker():
			c.touchStream(t) // its producer may not have heard how far its readers are
		case t.state.Terminal() && t.live == 0:
			c.reap(t)
		case t.flags&taskCancelled != 0 && !t.state.Terminal() && !t.state.OnWorker() && !t.isCreation():
			c.withdraw(t)
			c.end(t, task.Cancel, c.cancelled(t))
		}
	})
	c.eachObject(c.loosen)
	for _, cl := range c.clients {
		if cl.joined && c.cfg.CreditWindow > 0 {
			c.toClient(cl, &wire.Credit{Bytes: 0})
		}
	}
	if c.drivers == 0 {
		c.endJob(nil)
	}
}

// keepArgs tells the store whose arguments stay pinned. The others were asked for by a core that is lost, for tasks that
// have ended meanwhile, or wait: they will be asked for again, it may be for another worker.
func (c *Core) keepArgs() {
	m := objectstore.KeepArgs{Job: c.cfg.Job}
	c.tasks.eachTask(func(t *taskRec) {
		if t.lease != nil && t.flags&taskPinned != 0 {
			m.Attempts = append(m.Attempts, objectstore.UnpinArgs{Task: t.id(), Attempt: t.start})
		}
	})
	c.toStore(m)
}

func (c *Core) actorIDs() []ids.ActorID {
	return slices.SortedFunc(maps.Keys(c.actors), func(a, b ids.ActorID) int { return slices.Compare(a[:], b[:]) })
}

// schedResync tells a scheduler that was restarted what this owner holds and wants.
func (c *Core) schedResync(epoch uint64) {
	h := sched.Holdings{Job: c.cfg.Job, Epoch: epoch}
	for _, id := range slices.Sorted(maps.Keys(c.leases)) {
		l := c.leases[id]
		if l.state == lease.Lost || l.actor != nil && l.actor.rec == nil {
			continue
		}
		k := l.class
		if l.actor != nil {
			k = l.actor.rec.class
		}
		resumes := 0
		if l.state == lease.Resuming {
			resumes = 1
		}
		h.Held = append(h.Held, sched.Held{
			Lease: l.id, Key: sched.ClassKey{Job: c.cfg.Job, Class: k.id}, Opts: k.opts, Kind: k.kind, Worker: l.worker.id,
			Up: l.actor != nil, Blocked: l.state == lease.Blocked || l.state == lease.Resuming, Resumes: resumes,
		})
	}
	for _, id := range slices.Sorted(maps.Keys(c.classes.byID)) {
		k := c.classes.byID[id]
		if c.setWants(k, k.ready.n); k.wants {
			h.Wants = append(h.Wants, sched.Want{Key: sched.ClassKey{Job: c.cfg.Job, Class: k.id}, Opts: k.opts, Kind: k.kind, Backlog: k.ready.n})
		}
	}
	c.toSched(h)
	for _, id := range slices.Sorted(maps.Keys(c.clients)) {
		if cl := c.clients[id]; cl.drained && !cl.gone { // the pool before may not have told it to exit yet: others run in it
			c.toSched(sched.DrainWorker{Worker: id, Err: errs.New(errs.CodeCancelled, "a task on %s was abandoned", cl.workerName())})
		}
	}
}
