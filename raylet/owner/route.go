package owner

import (
	"fmt"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/sched"
	"mobula/wire"
)

func (c *Core) handle(ev Event) {
	switch ev := ev.(type) {
	case FromClient:
		c.fromClient(ev)
	case FromStore:
		if !c.job.told { // else DropJob is on its way
			c.fromStore(ev.Node, ev.Msg)
		}
	case FromSched:
		c.fromSched(ev.Msg)
	case FromDirectory:
		c.fromDirectory(ev.Msg)
	case FromOwner:
		c.fromOwner(ev)
	case CancelRequested:
		c.cancel((*wire.Cancel)(&ev))
	case ClientJoined:
		c.clientJoined(ev)
	case ClientGone:
		c.clientGone(ev)
	case ClientRead:
		c.clientRead(ev)
	case NodeGone:
		c.job.nodeGone(ev)
	case JobOpened:
		c.jobOpened(ev.Node)
	case NodeDoubted:
		c.job.nodeDoubted(ev)
	case Timer:
		c.tick()
	case Fetched:
		c.fetched(ev)
	case EndJob:
		c.endJob(ev.Err)
	case Restored:
		c.restored(ev)
	case Poisoned:
		c.poisoned(ev)
	default:
		panic(unknown(ev))
	}
}

// fromClient steps a client's messages. Those of a client that has not joined are dropped: it is gone, even if a lease names it.
func (c *Core) fromClient(ev FromClient) {
	cl := c.client(ev.Client)
	if cl == nil || !cl.joined {
		return
	}
	for i, m := range ev.Msgs {
		if i%prefetchBatch == 0 {
			c.prefetchMessages(ev.Msgs[i:])
		}
		c.message(cl, m)
	}
}

func (c *Core) message(cl *clientRec, m wire.Msg) {
	switch m := m.(type) {
	case *wire.Submit:
		c.submit(cl, m.Spec)
		c.submittedAdopted(cl, m.Spec)
	case *wire.Done:
		c.done(cl, m)
	case *wire.Get:
		c.get(cl, m.ID, m.Fetch)
	case *wire.Release:
		for i, id := range m.IDs {
			if i%prefetchBatch == 0 {
				c.tasks.prefetch(m.IDs[i:])
			}
			c.release(cl, id)
		}
	case *wire.AddRef:
		c.addRef(cl, m.ID)
	case *wire.PutValue:
		c.putValue(cl, m)
	case *wire.Seal:
		c.seal(cl, m)
	case *wire.StreamItem:
		c.streamItem(cl, m)
	case *wire.StreamNext:
		c.streamNext(cl, m)
	case *wire.Unget:
		c.unget(cl, m.ID)
	case *wire.Blocked:
		c.blocked(cl, m)
	case *wire.Unblocked:
		c.unblocked(cl, m)
	case *wire.Cancel:
		c.cancel(m)
	case *wire.KillActor:
		c.killActor(m)
	case *wire.ActorStopped:
		if m.Lease != 0 {
			c.actorBroke(cl, m)
		} else {
			c.actorStopped(cl, m)
		}
	case *wire.WatchActor:
		c.watchActor(cl, m)
	case *wire.Holdings:
		c.fetchAgain(cl, m)
	case *wire.Waits:
		c.waits(cl, m)
	case *wire.WaitOver:
		c.waitOver(cl, m)
	default:
		if !c.talk(cl, m) {
			panic(unknown(m))
		}
	}
}

func (c *Core) fromStore(node ids.Home, m objectstore.OwnerMsg) {
	switch m := m.(type) {
	case objectstore.ArgsPinned:
		c.argsPinned(m)
	case objectstore.ArgsWait:
		c.argsWait(m)
	case objectstore.ArgsRefused:
		c.argsRefused(m)
	case objectstore.CreateWaits:
		c.objects.letGo()
		c.createWaits(m)
	case objectstore.CreateReady:
		c.createReady(node, m)
	case objectstore.Lost:
		c.lineage.lost(node, m)
	case objectstore.Packed:
		c.packed(m)
	case objectstore.Inventory:
		c.inventory(node, m)
	case objectstore.Imported:
		c.imported(node, m)
	case objectstore.Evicted:
		c.evicted(node, m)
	default:
		panic(unknown(m))
	}
}

func (c *Core) fromSched(m sched.OwnerMsg) {
	switch m := m.(type) {
	case sched.Granted:
		c.granted(m)
	case sched.Reclaim:
		if l := c.leases.byID[m.Lease]; l != nil {
			c.closeLease(l)
		}
	case sched.Revoked:
		c.revoked(m)
	case sched.Resumed:
		if l := c.leases.byID[m.Lease]; l != nil {
			c.resumed(l, m.Ask)
		}
	case sched.Infeasible:
		if k := c.classes.byID[m.Key.Class]; k != nil {
			c.infeasible(k, m.Err)
		}
	case sched.Feasible:
		if k := c.classes.byID[m.Key.Class]; k != nil {
			k.infeasible = nil
			c.setWants(k, 0) // the scheduler has forgotten it
			c.touch(k)
		}
	case sched.Unable:
		if k := c.classes.byID[m.Key.Class]; k != nil {
			for _, n := range m.Nodes {
				k.isBarren(n, c.now+unableFor)
			}
			c.touch(k)
		}
	case sched.Awaited:
		if k := c.classes.byID[m.Key.Class]; k != nil {
			k.leasesAwaited(c.leases, m.Leases)
		}
	case sched.Resync:
		c.schedResync(m.Epoch)
	default:
		panic(unknown(m))
	}
}

func (c *Core) fromDirectory(m DirectoryNews) {
	switch m := m.(type) {
	case NameClaimed:
		c.nameClaimed(m)
	case ActorAt:
		c.actorAt(m)
	case KillRequested:
		c.killActor((*wire.KillActor)(&m))
	case CallsLost:
		c.callsLost(m)
	case LocateActor:
		c.locateRequested(m.Actor)
	case NameHeld:
		c.nameHeld(m)
	case Restate:
		c.restate()
	default:
		panic(unknown(m))
	}
}

func (c *Core) fromOwner(ev FromOwner) {
	if c.refuses(ev.Job, ev.Msg) {
		return
	}
	switch m := ev.Msg.(type) {
	case Words:
		c.peerWords(ev.Job, m.Msg)
	case BorrowLost:
		c.lineage.lost(m.Node, m.Lost)
	case Bring:
		c.bring(bringing{ev.Job, m})
	case Brought:
		c.peers.brought(m)
	case Passing:
		c.passing(ev.Job, m)
	case Arrived:
		c.arrived(transferID{ev.Job, m.Token})
	case Reached:
		c.toOwner(ev.Job, Arrived(m))
	case Sync:
		c.toOwner(ev.Job, Synced(m))
	case Synced:
		c.synced(ev.Job, m)
	case Leaving:
		c.isLeaving(ev.Job)
	case Left:
		delete(c.leaving, ev.Job)
	case JobGone:
		c.jobGone(ev.Job, m.Err)
	case Rejoined:
		c.rejoined(ev.Job)
	case Unreachable:
		c.noteReported(ev.Job)
		c.failBorrowed(ev.Job, m.Err)
		delete(c.leaving, ev.Job)
		c.syncedAll(ev.Job)
	default:
		panic(unknown(m))
	}
}

// peerWords takes what the owner of another job says in the words of a client, or of a client's owner.
func (c *Core) peerWords(job ids.JobID, m wire.Msg) {
	switch m := m.(type) {
	case *wire.AddRef:
		c.addRef(c.peer(job), m.ID)
	case *wire.Release:
		for _, id := range m.IDs {
			c.release(c.peer(job), id)
		}
	case *wire.Get:
		c.get(c.peer(job), m.ID, false)
	case *wire.Holdings:
		c.peerHolds(job, m)
	case *wire.Cancel:
		c.cancel(m)
	case *wire.Resolved:
		c.borrowedResolved(m)
	case *wire.Resync:
		c.tellHeld(job)
	default:
		panic(unknown(m))
	}
}

// unknown is what a message has to say that nobody here takes: a fault of the program, which supervision reports. It is not passed over.
func unknown(m any) string { return fmt.Sprintf("owner: %T is not for an owner", m) }

func (c *Core) release(cl *clientRec, id ids.ObjectID) {
	if id == id.Task.Stream() {
		if t := c.streaming(id.Task); t != nil {
			c.leaveStream(t, cl)
		}
		return
	}
	if o := c.object(id); o != nil {
		c.takeHandle(cl, o)
	}
}

// tick runs what is due.
func (c *Core) tick() {
	c.armed = 0
	for c.timers.Len() > 0 && c.timers.First().at <= c.now {
		t := c.timers.Remove(0)
		switch t.kind {
		case timerDeadline:
			c.deadline(t.task)
		case timerBackoff:
			c.backoffOver(t.task)
		case timerGrace:
			c.graceExpired(t.task)
		case timerIdle:
			c.idleExpired(t.lease)
		case timerSettle:
			t.client.settle = nil
			c.settleWorker(t.client)
		case timerOrder:
			c.sequenceGapExpired(t.caller)
		case timerPack:
			c.packOver()
		case timerResync:
			c.resyncOver()
		case timerInquiry:
			c.inquiryOver(t.inquiry)
		case timerStop:
			c.stopOver(t.actor)
		case timerWord:
			c.wordExpired(t.lease)
		case timerNear:
			c.nearExpired(t.class)
		case timerSpread:
			t.class.spreadExpired(c.leases)
		case timerAsk:
			c.askAgain(t.lost)
		case timerBring:
			c.bringNow(*t.bring)
		case timerBringAgain:
			c.bringAgain(*t.bring)
		case timerLeave: // the step's end looks whether the job is over
		case timerSweep:
			c.sweeping = nil
			c.sweepSlice()
			return // the rest of what is due in a step of its own
		}
	}
}
