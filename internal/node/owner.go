package node

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"mobula/actors"
	"mobula/gcs/directory"
	channel "mobula/internal/direct/wired"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/inspect"
	"mobula/internal/node/jobs"
	"mobula/internal/node/outlet"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/raylet/internode"
	"mobula/raylet/oplog"
	"mobula/raylet/owner"
	"mobula/raylet/sched"
	"mobula/wire"
)

// build makes the core: new for a new job, else from the log, and then every client is
// asked what it holds. A job is new until its first client has joined, which is on its way: a rebuilt core would take it for gone.
func (o *ownerActor) build(start actors.Start) (actors.Core[owner.Event, owner.Effect], []owner.Event, error) {
	cfg := owner.Config{Job: o.job, InlineBudget: o.owners.inlineBudget(), VolatileLog: !o.owners.cfg.Keep, Transitions: o.owners.obs.Watching(),
		StraightCalls: !o.owners.cfg.CallsByOwner}
	if !o.met && !o.ofBefore {
		o.core = owner.New(cfg)
		return ownerCore{o.core, o}, nil, nil
	}
	core, err := o.rebuild(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("owner of job %v: %w", o.job, err)
	}
	first := o.keptBack(start)
	if start.Restart > 0 {
		o.owners.directory.deliver(directory.OwnerRestarted{Job: o.job})
	}
	if o.core = core; !o.waits.Load() {
		first = append([]owner.Event{o.restored(o.owners.links.openOn(o.job))}, first...)
	}
	for _, ev := range o.poisoned {
		first = append(first, ev)
	}
	o.first = append([]owner.Event{nil}, first...)
	return ownerCore{core, o}, first, nil
}

// rebuild makes the core from the log. A log that says what cannot be is damaged too.
func (o *ownerActor) rebuild(cfg owner.Config) (core *owner.Core, err error) {
	defer func() {
		if p := recover(); p != nil {
			core, err = nil, fmt.Errorf("the log contradicts itself: %v: %w\n%s", p, oplog.ErrCorrupt, debug.Stack())
		}
	}()
	var damage error
	core, err = owner.Rebuild(cfg, func(yield func(uint64, []byte) bool) {
		damage = o.log.Replay(yield)
		o.rest.Replay(yield)
	})
	return core, errors.Join(err, damage)
}

// restored has a rebuilt core ask every client there is, and the nodes where the job may be.
func (o *ownerActor) restored(nodes []ids.Home) owner.Restored {
	ev := owner.Restored{Epoch: o.owners.numbers.newEpoch(), Nodes: nodes}
	for _, s := range o.owners.sessions.all() {
		if s.isKnownTo(o.job) {
			ev.Clients = append(ev.Clients, s.joined(o.job))
		}
	}
	for _, other := range o.owners.all() {
		if other.job != o.job {
			ev.Jobs = append(ev.Jobs, other.job)
		}
	}
	ev.Jobs = append(ev.Jobs, o.owners.links.far.dealings.Of(o.job)...)
	slices.Sort(ev.Jobs)
	return ev
}

// keptBack is what the core that was discarded had taken and not yet gone on with: it was still
// waiting for its clients. Of an event that brings two cores down the third is spared. A core that panicked at one of those that it was given so has not come to
// those behind it.
func (o *ownerActor) keptBack(start actors.Start) []owner.Event {
	if o.core == nil {
		return nil
	}
	held, at := o.core.Held()
	held = slices.Clone(held)
	n := len(held)
	if n > o.before && redelivered(start.Reason) && kept(o.hand) {
		n-- // the last one was in hand: the kit delivers it again
	}
	was := o.blamed
	if o.blamed = at + 1; at >= 0 && at < n && was == at+1 {
		o.poison(held[at], start.Reason)
		held, n, o.blamed = slices.Delete(held, at, at+1), n-1, 0
	}
	first := o.first
	if len(first) > 0 && (at >= 0 || len(held) > 0 || phase(start.Reason) == "Flush") { // it has the one that it was stepping, or is done with it
		first = first[1:]
	}
	return append(held[:n], slices.DeleteFunc(slices.Clone(first), func(ev owner.Event) bool { return !kept(ev) })...)
}

// poison takes note of an event on which two cores panicked. What clients hold, the store and the scheduler say again after a restart:
// only a client's message leaves something to be failed.
func (o *ownerActor) poison(ev owner.Event, err error) {
	o.owners.limited.warn("an event that brought two cores of an owner down is dropped", "job", o.job, "event", fmt.Sprintf("%T", ev), "err", err)
	if m, ok := ev.(owner.FromClient); ok {
		why := errs.New(errs.CodeComponentFailed, "the owner of job %v failed twice on a message of client %v and dropped it: %v", o.job, m.Client, err)
		o.poisoned = append(o.poisoned, owner.Poisoned{Client: m.Client, Msgs: m.Msgs, Err: why})
	}
}

// redelivered tells whether the kit delivers the event on which the core panicked once more.
func redelivered(reason error) bool { return phase(reason) == "Step" || phase(reason) == "Do" }

// phase is what a core was doing when it panicked; empty: it did not.
func phase(reason error) string {
	if p, ok := errors.AsType[*actors.PanicError](reason); ok {
		return p.Phase
	}
	return ""
}

// kept tells whether a core that waits for its clients keeps such an event back.
func kept(ev owner.Event) bool {
	switch ev.(type) {
	case nil, owner.Restored, owner.Poisoned, owner.Timer, inspect.Question, upkeep:
		return false
	}
	return true
}

// ownerCore lets the node ask the core, and tend its log, between two steps.
type ownerCore struct {
	*owner.Core
	o *ownerActor
}

func (c ownerCore) Step(now int64, ev owner.Event) []owner.Effect {
	if len(c.o.first) > 0 {
		c.o.first = c.o.first[1:]
	}
	if q, ok := ev.(inspect.Question); ok {
		c.o.hand = ev
		q.Ask(c.Core)
		return nil
	}
	held, _ := c.Core.Held()
	c.o.hand, c.o.before = ev, len(held)
	switch ev := ev.(type) {
	case upkeep:
		c.o.tend(ev)
		return nil
	case owner.ClientJoined:
		c.o.met = true
	}
	return c.Core.Step(now, ev)
}

// do carries out one effect.
func (o *ownerActor) do(self *actors.Ref[owner.Event], e owner.Effect) {
	switch e.Kind {
	case owner.ToClient:
		o.toClient(e.Client, e.Wire)
	case owner.Receipt:
		o.receipt(self, owner.ClientRead{Client: e.Client, Bytes: e.N})
	case owner.ToStore:
		o.toStore(e.Node, e.Store())
	case owner.ToSched:
		o.toSched(e.Sched())
	case owner.ToCluster:
		o.owners.chooser.deliver(e.Cluster())
	case owner.ToDirectory:
		o.owners.directory.fromOwner(o.job, e.Directory())
	case owner.ToOwner:
		o.owners.router.toPeer(o.job, e.Job, e.Peer())
	case owner.Log:
		for i := range *e.Records {
			o.append(&(*e.Records)[i])
		}
		o.keepUp(self)
	case owner.LogFree:
		for _, c := range *e.Cookies {
			if *c != 0 {
				o.free(*c)
			}
		}
		o.keepUp(self)
	case owner.LogLapse:
		for _, c := range *e.Cookies {
			if *c != 0 {
				o.lapse(*c)
			}
		}
	case owner.Fetch:
		rec, err := o.read(e.Position())
		self.Deliver(owner.Fetched{Token: e.Token, Record: rec, Err: errs.From(err)})
	case owner.After:
		if o.cancel != nil {
			o.cancel()
		}
		o.cancel = self.After(e.Delay(), owner.Timer{})
	case owner.Transitions:
		o.owners.obs.Record(*e.Changes)
	case owner.Abandon:
		o.owners.links.abandon(o.job, e.Node)
	case owner.JobEnded:
		o.owners.jobs.ref.Deliver(jobs.Over{Job: o.job})
	default:
		panic(errs.New(errs.CodeInvalid, "an owner asks for effect %d, which nobody has", e.Kind)) // a fault of the program
	}
}

// receipt tells the owner when its client has read what was sent before. It is apart from do, where its closure would
// move every effect to the heap.
func (o *ownerActor) receipt(self *actors.Ref[owner.Event], read owner.ClientRead) {
	o.toClient(read.Client, outlet.Receipt(func() { self.Deliver(read) }))
}

// toSched passes an event on to the scheduler; in a cluster by way of who chooses the node.
func (o *ownerActor) toSched(ev sched.Event) {
	if o.owners.links.alone() {
		o.owners.raylet.ref.Deliver(ev)
		return
	}
	o.owners.chooser.deliver(cluster.FromOwner{Job: o.job, Event: ev})
}

// toStore passes an event on to the store of a node. A get's pin, which somebody waits for, is stepped here if the store is
// idle: a switch between threads less, which is most of what a get costs.
func (o *ownerActor) toStore(node ids.Home, ev objectstore.Event) {
	if node != o.job.Home() {
		o.owners.links.say(node, &internode.ToStore{Job: o.job, Msg: ev})
		return
	}
	if _, ok := ev.(objectstore.PinForGet); ok {
		_ = o.owners.store.actor.Ref().SendRun(o.owners.life, ev) // stopped: nobody waits any more
		return
	}
	o.owners.store.deliver(ev)
}

// toClient queues a message. The last session is remembered: most batches go to one.
func (o *ownerActor) toClient(id ids.ClientID, m wire.Msg) {
	if r, ok := m.(*wire.Resync); ok {
		if s := o.owners.sessions.get(id); s != nil && s.job != o.job {
			s.asked(o.job, r.Epoch)
		}
	}
	if w, ok := m.(*wire.Way); ok && w.Channel != 0 {
		o.connect(id, w)
	}
	for _, s := range o.dirty {
		if s.id == id {
			s.Push(m)
			return
		}
	}
	if s := o.owners.sessions.get(id); s != nil {
		s.Push(m)
		o.dirty = append(o.dirty, s)
	}
}

// connect gives the process of an actor its end of a channel, and puts the calling one's into the message, where these are two.
func (o *ownerActor) connect(caller ids.ClientID, w *wire.Way) {
	from, to := o.owners.sessions.get(caller), o.owners.sessions.get(w.Host)
	if from == nil || to == nil || from == to || from.IsLocal() && to.IsLocal() {
		return // of a host that is gone the caller finds nothing, and asks
	}
	w.Apart = true
	end, host, err := channel.Make()
	if err != nil {
		o.owners.cfg.Logger.Warn("a channel between processes was not made", "caller", caller, "host", w.Host, "err", err)
		return // as one that breaks at once
	}
	w.Opened = end
	o.toClient(w.Host, &wire.HostChannel{Instance: w.Instance, Channel: w.Channel, Caller: caller, Opened: host})
}

func (o *ownerActor) flush() {
	for i, s := range o.dirty {
		s.Flush()
		o.dirty[i] = nil
	}
	o.dirty = o.dirty[:0]
}
