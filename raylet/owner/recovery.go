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

// Held gives the events that a core which is still recovering has kept back, for the core
// that replaces it: they are stepped right after its Restored, before the mailbox. The step that
// goes on with them has them still, since its effects may not have run. at is the index of the
// one that was being stepped when the core panicked, or -1.
func (rc *recovery) Held() (events []Event, at int) {
	if p := cmp.Or(rc.pause, rc.resuming); p != nil {
		return p.held, p.at
	}
	return nil, -1
}

// restored asks every client what it holds, and the scheduler for the job's leases.
func (rc *recovery) restored(ev Restored) {
	p := rc.pause
	if p == nil || p.started {
		return
	}
	p.started, p.epoch = true, ev.Epoch
	rc.epoch = ev.Epoch
	rc.straight.renumber(ev.Epoch)
	rc.journal.cookies, rc.journal.deadLog = append(rc.journal.cookies, rc.journal.deadLog...), nil
	rc.toSched(sched.OwnerRestarted{Job: rc.cfg.Job, Epoch: ev.Epoch})
	for _, j := range ev.Clients {
		cl := rc.clients.addClient(j.Client, j.Role)
		cl.joined, cl.ofOtherJob, cl.straight = true, j.Guest, j.Straight
		if j.Role == wire.RoleDriver {
			rc.clients.drivers++
		}
		p.waiting[j.Client] = true
		rc.toClient(cl, &wire.Resync{Component: wire.ComponentOwner, Epoch: ev.Epoch})
	}
	p.jobs, p.nodes = rc.peers.dealsWith(ev.Jobs), ev.Nodes
	rc.peers.askPeers(p.jobs)
	rc.peers.tellLater(p.jobs)
	p.timer = rc.timers.add(rc.now+int64(rc.cfg.ResyncTimeout), timer{kind: timerResync})
	rc.maybeResume()
}

// deferEvent keeps an event back, and looks in it for what is waited for.
func (rc *recovery) deferEvent(ev Event) {
	p := rc.pause
	switch ev := ev.(type) {
	case Restored:
		rc.restored(ev)
		return
	case Poisoned:
		rc.poisoned(ev)
		return
	case Timer:
		rc.armed = 0
		if p.timer != nil && p.timer.at <= rc.now {
			rc.resyncOver()
		}
		return
	case FromClient:
		if p.told[ev.Client] {
			return
		}
		if p.waiting[ev.Client] && slices.ContainsFunc(ev.Msgs, p.answers) {
			delete(p.waiting, ev.Client)
		}
	case ClientJoined:
		delete(p.told, ev.Client)
	case ClientGone:
		delete(p.waiting, ev.Client)
	case NodeGone:
		maps.DeleteFunc(p.waiting, func(id ids.ClientID, _ bool) bool { return id.Home() == ev.Node })
	}
	p.held = append(p.held, ev)
	rc.maybeResume()
}

func (p *resyncWait) answers(m wire.Msg) bool {
	h, ok := m.(*wire.Holdings)
	return ok && h.Component == wire.ComponentOwner && h.Epoch == p.epoch
}

// resyncOver gives up on the clients that say nothing: they are told to go.
func (rc *recovery) resyncOver() {
	p := rc.pause
	if p == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(p.waiting)) {
		rc.dismiss(rc.clients.byID[id],
			errs.New(errs.CodeProtocol, "the client did not say what it holds within %v of a restart", rc.cfg.ResyncTimeout),
			errs.New(errs.CodeWorkerCrashed, "it did not answer after a restart of its job's owner"))
	}
	rc.maybeResume()
}

// dismiss tells a client to go, with the reason told, and does not wait for it: to the core it is gone, for the reason why.
func (rc *recovery) dismiss(cl *clientRec, told, why *errs.Error) {
	rc.toClient(cl, &wire.Bye{Err: told})
	delete(rc.pause.waiting, cl.id)
	rc.pause.told[cl.id] = true
	rc.pause.held = append(rc.pause.held, ClientGone{Client: cl.id, Err: why})
}

// maybeResume goes on when every client has answered: first what clients sent, so that
// everything that is held and run is known, then the rest.
func (rc *recovery) maybeResume() {
	p := rc.pause
	if !p.started || len(p.waiting) > 0 {
		return
	}
	if p.timer != nil {
		rc.timers.remove(p.timer)
		p.timer = nil
	}
	rc.askStores()
	for i, ev := range p.held {
		p.at = i
		if ev, ok := ev.(FromClient); ok {
			rc.adoptAll(ev)
		}
	}
	rc.adoptCalls()
	forgotten := rc.forgottenReplays()
	for i, ev := range p.held {
		p.at = i
		switch ev := ev.(type) {
		case FromClient:
			rc.resumeClient(ev, forgotten)
		case ClientJoined:
			rc.job.clientJoined(ev)
		case NodeGone: // those of its next life join behind it
			rc.job.nodeGone(ev)
		}
	}
	p.at = -1
	rc.up.drain()
	rc.reconcile()
	rc.pause, rc.resuming, rc.recovering = nil, p, false
	rc.tasks.closeChildren()
	ended := p.ended()
	for i, ev := range p.held {
		p.at = i
		switch ev := ev.(type) {
		case FromClient, ClientJoined, NodeGone:
		case FromStore:
			if i >= ended[ev.Node] {
				rc.up.handle(ev)
			}
		case FromSched:
			if g, ok := ev.Msg.(sched.Granted); !ok || i >= ended[g.Worker.Home()] { // else its worker is gone, and nobody says so again
				rc.up.handle(ev)
			}
		default:
			rc.up.handle(ev)
		}
	}
	p.at = -1
	rc.peers.tellAll(p.jobs)
}

// adoptAll takes over what a worker has, before anything that it sent: that speaks of it.
func (rc *recovery) adoptAll(ev FromClient) {
	cl := rc.clients.client(ev.Client)
	if cl == nil {
		return
	}
	for _, m := range ev.Msgs {
		if !rc.pause.answers(m) {
			continue
		}
		h := m.(*wire.Holdings)
		cl.reported = true
		for _, id := range h.Actors {
			if id.Job() != rc.cfg.Job {
				continue // of a guest's own job, whose owner it is that knows
			}
			if a := rc.actors.byID[id]; a != nil {
				rc.adoptActor(cl, a)
			}
		}
		for _, at := range h.Tasks {
			rc.adoptAttempt(cl, at)
		}
	}
}

// ended gives the index in held at which each node's life ended. NodeGone is stepped before the rest of held: copies that the node's store
// had named before are gone, and so are workers of which leases were granted.
func (p *resyncWait) ended() map[ids.Home]int {
	at := make(map[ids.Home]int)
	for i, ev := range p.held {
		if ev, ok := ev.(NodeGone); ok {
			at[ev.Node] = i
		}
	}
	return at
}

func (rc *recovery) resumeClient(ev FromClient, forgotten map[ids.ObjectID]bool) {
	cl := rc.clients.client(ev.Client)
	if cl == nil || !cl.joined {
		return
	}
	for _, m := range ev.Msgs {
		id, _ := madeBy(m)
		switch {
		case rc.pause.answers(m): // what it runs was adopted
			rc.applyHoldings(cl, m.(*wire.Holdings))
			rc.clients.settleCredit(cl)
			rc.stopEnded(cl, m.(*wire.Holdings))
		case forgotten[id] && cl.role == wire.RoleDriver:
			rc.passOver(cl, m)
		case rc.pause.adopters[cl.id] && tellsOfCalls(m): // it was taken before
		default:
			rc.up.message(cl, m)
		}
	}
}

// stopEnded ends a worker's instances of actors that are dead: also of one that was killed while its creation had ended and this core had not
// heard of that.
func (rc *recovery) stopEnded(cl *clientRec, m *wire.Holdings) {
	for _, id := range m.Actors {
		if a := rc.actors.byID[id]; id.Job() == rc.cfg.Job && (a == nil || a.ended()) {
			rc.toClient(cl, &wire.StopActor{Actor: id})
		}
	}
}

// applyHoldings replaces what is known of a client by what it says.
func (rc *recovery) applyHoldings(cl *clientRec, m *wire.Holdings) {
	if cl.ofOtherJob {
		return // what it holds it holds of its own job's owner
	}
	rc.objects.dropHandles(cl)
	rc.streams.dropStreams(cl)
	for _, id := range m.Handles {
		if id != id.Task.Stream() {
			rc.objects.addRef(cl, rc.objects.ensure(id).id)
		} else if t := rc.streams.streaming(id.Task); t != nil {
			t.x.stream.join(cl)
		}
	}
	for _, g := range m.Gets {
		rc.gets.get(cl, g.ID, g.Fetch)
	}
	for i := range m.Streams {
		rc.streams.streamNext(cl, &m.Streams[i])
	}
}

// adoptAttempt takes over a task that a worker has, or has the worker cancel it. Either way its arguments stay pinned until the worker is done
// with it.
func (rc *recovery) adoptAttempt(cl *clientRec, at wire.Attempt) {
	rc.pause.attempts = append(rc.pause.attempts, heldAttempt{rc.nodeOf(cl), objectstore.UnpinArgs{Task: at.Task, Attempt: at.Attempt}})
	t := rc.tasks.task(at.Task)
	if t != nil {
		t.start = max(t.start, at.Attempt) // the number is used, whatever becomes of the attempt
	}
	if t == nil || t.state.Terminal() || t.state.OnWorker() || t.flags&taskWaitsName != 0 {
		rc.toClient(cl, &wire.CancelTask{Task: at.Task})
		rc.adoptEnded(cl, t, at.Lease)
		return
	}
	var l *leaseRec
	if t.isCall() {
		rc.adoptActor(cl, t.actor)
		rc.adoptForeign(cl, t.actor, at.Lease)
		l = t.actor.lease
	} else {
		l = rc.leases.adoptLease(at.Lease, cl, t.class)
	}
	if l == nil || l.worker != cl {
		rc.toClient(cl, &wire.CancelTask{Task: at.Task})
		return
	}
	rc.life.reach(t)
	t.lease = l
	t.flags |= taskPinned | taskAdopted // whether anything is pinned the store knows
	l.lane.Push(t)
	rc.leases.relist(l)
	if l.lane.Len() == 1 && l.actor == nil {
		rc.tasks.setState(t, task.Running)
		rc.leases.adoptBlocked(t, at)
	}
	if t.x != nil && t.x.forceAfterGrace {
		rc.life.startGrace(t)
	}
}

// adoptEnded takes over a task that has an error already and that a worker has still: it was told to end, and its lane is given up
// if it does not.
func (rc *recovery) adoptEnded(cl *clientRec, t *taskRec, id ids.LeaseID) {
	if t == nil || t.state != task.Failed && t.state != task.Cancelled || t.class == nil || t.isCall() || t.isCreation() || t.lease != nil {
		return
	}
	l := rc.leases.adoptLease(id, cl, rc.leases.currentClass(t.class))
	if l == nil || l.worker != cl {
		return
	}
	t.lease = l
	t.flags |= taskPinned | taskAdopted
	l.lane.Push(t)
	rc.leases.relist(l)
	rc.life.startGrace(t)
}

func (rc *recovery) adoptActor(cl *clientRec, a *actorRec) {
	if a.lease != nil || a.logged == nil || a.state != actor.Alive && a.state != actor.Stopping || a.logged.Worker != cl.id {
		return
	}
	if rc.leases.byID[a.logged.Lease] != nil {
		return // the worker says that a task runs there: it does not have the actor
	}
	l := &leaseRec{id: a.logged.Lease, worker: cl, actor: a, state: lease.Actor}
	rc.leases.addLease(l)
	a.lease = l
}

// adoptForeign takes the word of a worker that has a call for where another job's actor is; its owner says the rest.
func (rc *recovery) adoptForeign(cl *clientRec, a *actorRec, id ids.LeaseID) {
	if a.rec != nil || a.lease != nil || a.state != actor.Locating || rc.leases.byID[id] != nil {
		return
	}
	l := &leaseRec{id: id, worker: cl, actor: a, state: lease.Actor}
	rc.leases.addLease(l)
	a.lease = l
	rc.actors.moveActor(a, actor.Up)
}

// relocateActor asks where another job's actor is, of which a core that is lost knew: what it was told, and what it asked, went with it.
func (rc *recovery) relocateActor(a *actorRec) {
	if a.ended() {
		rc.actors.maybeForgetForeign(a)
		return
	}
	a.doubt = a.queue.n > 0 || len(a.callers) > 0
	rc.toDirectory(LocateActor{Actor: a.id})
	rc.calls.touchActor(a)
}

// reconcile settles what no client spoke of: actors that no worker has are lost. Tasks that
// no worker has are in their queues already.
func (rc *recovery) reconcile() {
	rc.streams.leaveUnread()
	for _, id := range rc.actors.actorIDs() {
		a := rc.actors.byID[id]
		if a.rec == nil {
			rc.relocateActor(a)
			continue
		}
		rc.actors.noteInstance(a)
		switch {
		case a.ended() && a.claimed: // it may have died for the log and not for the directory
			rc.toDirectory(ReleaseName{Actor: a.id, Opts: a.opts, Err: a.cause})
			a.claimed = false
		case a.state == actor.Alive && a.lease == nil:
			rc.actors.actorLost(a, nil, true, errs.New(errs.CodeWorkerCrashed, "no worker has actor %v after a restart of its job's owner", a.id))
		case a.state == actor.Alive && a.hurt != nil: // its constructor had just returned
			rc.actors.chargeParent(a)
		case a.state == actor.Stopping && a.lease == nil:
			rc.actors.die(a, a.stop)
		case a.state == actor.Stopping:
			rc.actors.askClose(a, true)
		case a.state == actor.Claiming:
			rc.actors.claimName(a)
		}
		if !a.ended() {
			rc.actors.publish(a)
			rc.calls.touchActor(a)
		}
	}
	rc.straight.unheardOf()
	rc.keepArgs()
	rc.leaveDeadNodes()
	rc.tasks.eachTask(func(t *taskRec) {
		switch {
		case t.nret == wire.Streaming && t.state.OnWorker():
			rc.streams.touchStream(t) // its producer may not have heard how far its readers are
		case t.state.Terminal() && t.live == 0:
			rc.life.reap(t)
		case t.flags&taskCancelled != 0 && !t.state.Terminal() && !t.state.OnWorker() && !t.isCreation():
			rc.life.withdraw(t)
			rc.life.end(t, task.Cancel, t.cancelledError())
		}
	})
	rc.objects.eachObject(rc.objects.queueRecount)
	if rc.clients.drivers == 0 {
		rc.job.endJob(nil)
	}
}

// keepArgs tells each node's store whose arguments stay pinned. The others were asked for by a core that is lost, for tasks that
// have ended meanwhile, or wait: they will be asked for again, it may be for another worker. Those of attempts that were not adopted
// are abandoned.
func (rc *recovery) keepArgs() {
	kept := make(map[ids.Home][]objectstore.UnpinArgs)
	for _, node := range append(slices.Clone(rc.pause.nodes), rc.home()) {
		kept[node] = nil
	}
	runs := make(map[objectstore.UnpinArgs]bool)
	rc.tasks.eachTask(func(t *taskRec) {
		if t.lease != nil && t.flags&taskPinned != 0 {
			node, at := rc.nodeOf(t.lease.worker), objectstore.UnpinArgs{Task: t.id(), Attempt: t.start}
			runs[at] = true
			kept[node] = append(kept[node], at)
		}
	})
	left := slices.DeleteFunc(rc.pause.attempts, func(at heldAttempt) bool { return runs[at.UnpinArgs] })
	for _, at := range left {
		kept[at.node] = append(kept[at.node], at.UnpinArgs)
	}
	for _, node := range slices.Sorted(maps.Keys(kept)) {
		rc.toStoreAt(node, objectstore.KeepArgs{Job: rc.cfg.Job, Attempts: kept[node]})
	}
	for _, at := range left {
		rc.toStoreAt(at.node, objectstore.AbandonArgs(at.UnpinArgs))
	}
}

// askStores has each node's store say what it has: the log has the node that keeps an object, and not those with copies, nor what the core
// before this one had freed and not told. They are asked before anything else, for what they lack is lost with all that was made with it, and not one after the
// other.
func (rc *recovery) askStores() {
	rc.copies.doubtAll(rc.objects.eachObject)
	for _, node := range append(slices.Clone(rc.pause.nodes), rc.home()) {
		rc.toStoreAt(node, objectstore.ListObjects{Job: rc.cfg.Job, Ask: rc.epoch})
	}
}

// leaveDeadNodes gives up what the log has on nodes where the job is not any more.
func (rc *recovery) leaveDeadNodes() {
	for _, node := range rc.copies.nodes() {
		if !slices.Contains(rc.pause.nodes, node) {
			rc.copies.leaveTo(node)
		}
	}
}
