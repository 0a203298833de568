package world

import (
	"maps"
	"slices"

	"mobula/gcs/directory"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/wire"
)

// ownerShell is the shell of one job's owner.
type ownerShell struct {
	*part[owner.Event, owner.Effect]
	job    ids.JobID
	log    *opLog
	core   *owner.Core
	met    bool // a client has joined
	before int  // how many events the core had kept back before the one that it stepped last
	timer  *timer

	tending bool             // an upkeep is on its way
	rest    owner.Rest       // records that the log could not take
	later   bool             // it is to be tried again
	dropped []owner.Poisoned // for all cores to come

	waits  bool // of a job of before the node's restart: until the core of jobs lets it go on
	alone  bool
	orphan bool
	left   bool // its driver has gone since
}

// inlineBudget is small: values are packed into the store, and specs paged out.
const inlineBudget = 24 << 10

// startOwner adds the owner of a job. Of a job of before the node's restart it waits.
func (n *Node) startOwner(job ids.JobID, restored bool) *ownerShell {
	f := n.disk.jobs[job]
	if f == nil {
		f = &jobFile{}
		n.disk.jobs[job] = f
	}
	o := &ownerShell{job: job, log: &f.log, waits: restored, met: restored}
	o.part = &part[owner.Event, owner.Effect]{build: o.buildCore, do: o.carryOut, poisoned: o.poison, check: func() error { return o.core.Validate() }}
	startPart(n, kindOwner, "owner/"+job.String(), o.part)
	return o
}

func (o *ownerShell) buildCore(restart int) (core[owner.Event, owner.Effect], []owner.Event) {
	cfg := owner.Config{Job: o.job, InlineBudget: inlineBudget, CreditWindow: creditWindow}
	if !o.met {
		o.core = owner.New(cfg)
		return ownerCore{o.core, o}, nil
	}
	o.n.w.model.rebuilt[o.job] = true
	held := o.keptBack()
	c, err := owner.Rebuild(cfg, func(yield func(uint64, []byte) bool) {
		o.log.replay(yield)
		o.rest.Replay(yield)
	})
	if err != nil {
		o.n.w.fail("the log of job %v cannot be read: %v", o.job, err)
	}
	o.core, o.timer = c, nil
	if restart > 0 {
		o.n.directory.box.put(directory.OwnerRestarted{Job: o.job})
	}
	if !o.waits {
		held = append([]owner.Event{o.restored(slices.Clone(o.n.links.opened[o.job]))}, held...)
	}
	for _, ev := range o.dropped {
		held = append(held, ev)
	}
	return ownerCore{c, o}, held
}

// poison takes note of an event that is dropped: of a client's message the next cores are told.
func (o *ownerShell) poison(ev owner.Event) {
	if m, ok := ev.(owner.FromClient); ok {
		o.dropped = append(o.dropped, owner.Poisoned{Client: m.Client, Msgs: m.Msgs, Err: errPoisoned})
		o.n.w.model.poisoned(o.n.w, m.Client, m.Msgs)
	}
}

// ownerCore notes when the first client has joined. Until then a core that follows another is new.
type ownerCore struct {
	*owner.Core
	o *ownerShell
}

func (c ownerCore) Step(now int64, ev owner.Event) []owner.Effect {
	held, _ := c.Core.Held()
	c.o.before = len(held)
	switch ev.(type) {
	case upkeep:
		c.o.tend()
		return nil
	case owner.ClientJoined:
		c.o.met = true
	}
	return c.Core.Step(now, ev)
}

// keptBack is what the core that was lost had taken and not yet gone on with, but for the event in hand, which comes again. Of one that was lost while it
// stepped what the core before it had kept back, that is also what it had not come to.
func (o *ownerShell) keptBack() []owner.Event {
	if o.core == nil {
		return nil
	}
	held, _ := o.core.Held()
	held = slices.Clone(held)
	if len(o.first) == 0 {
		if len(held) > o.before && keeps(o.hand) {
			held = held[:len(held)-1]
		}
		return held
	}
	rest := o.first
	if len(held) > 0 { // it has kept the one that it was stepping
		rest = rest[1:]
	}
	return append(held, slices.DeleteFunc(slices.Clone(rest), func(ev owner.Event) bool { return !keeps(ev) })...)
}

// keeps tells whether a core that waits for its clients keeps such an event back.
func keeps(ev owner.Event) bool {
	switch ev.(type) {
	case owner.Restored, owner.Poisoned, owner.Timer, upkeep:
		return false
	}
	return true
}

// restored has a rebuilt core ask every client there is, and the nodes where the job may be.
func (o *ownerShell) restored(nodes []ids.Home) owner.Restored {
	ev := owner.Restored{Epoch: o.n.numbers.newEpoch(), Nodes: nodes}
	for _, id := range slices.Sorted(maps.Keys(o.n.sessions)) {
		if s := o.n.sessions[id]; slices.Contains(s.met, o.job) {
			ev.Clients = append(ev.Clients, s.joined(o.job))
		}
	}
	for _, job := range slices.Sorted(maps.Keys(o.n.owners)) {
		if job != o.job {
			ev.Jobs = append(ev.Jobs, job)
		}
	}
	ev.Jobs = append(ev.Jobs, o.n.links.dealings.Of(o.job)...)
	return ev
}

func (o *ownerShell) carryOut(e owner.Effect) {
	n := o.n
	switch e.Kind {
	case owner.ToClient:
		if r, ok := e.Wire.(*wire.Resync); ok {
			if s := n.sessions[e.Client]; s != nil && s.job != o.job {
				s.asked(o.job, r.Epoch)
			}
		}
		switch x := e.Wire.(type) {
		case *wire.Exec:
			n.w.model.sent(x)
		case *wire.CancelTask:
			n.w.model.gaveUp(x)
		case *wire.Bye:
			n.w.model.dismissed(n.w, e.Client)
		}
		n.send(e.Client, e.Wire)
	case owner.Receipt:
		n.send(e.Client, receipt{o.box, owner.ClientRead{Client: e.Client, Bytes: e.N}})
	case owner.ToStore:
		if d, ok := e.Store().(objectstore.DropAttempt); ok {
			n.w.model.dropped(d.ID, writing{n.w.node(e.Node), d.Attempt})
		}
		if e.Node == n.home {
			n.store.box.put(e.Store())
		} else {
			n.links.say(e.Node, &internode.ToStore{Job: o.job, Msg: e.Store()})
		}
	case owner.ToSched:
		if n.alone() {
			n.raylet.box.put(e.Sched())
		} else {
			n.chooser.box.put(cluster.FromOwner{Job: o.job, Event: e.Sched()})
		}
	case owner.ToCluster:
		if !n.alone() {
			n.chooser.box.put(e.Cluster())
		}
	case owner.ToDirectory:
		n.fromOwner(o.job, e.Directory())
	case owner.ToOwner:
		n.toPeer(o.job, e.Job, e.Peer())
	case owner.Log:
		for _, r := range *e.Records {
			if old := r.Appended(o.append(r.Bytes)); old != 0 && !o.free(old) {
				n.w.fail("the owner of job %v replaces record %#x, which is not there", o.job, old)
			}
		}
		o.keepUp()
	case owner.LogFree:
		for _, c := range *e.Cookies {
			if *c != 0 && !o.free(*c) {
				n.w.fail("the owner of job %v frees record %#x, which is not there", o.job, *c)
			}
		}
		o.keepUp()
	case owner.LogLapse:
		for _, c := range *e.Cookies {
			if *c != 0 {
				o.lapse(*c)
			}
		}
	case owner.Fetch:
		f := owner.Fetched{Token: e.Token, Record: o.read(e.Position())}
		if f.Record == nil {
			f.Err = errs.New(errs.CodeInvalid, "no record at %#x", e.Position())
		}
		o.box.put(f)
	case owner.After:
		if o.timer != nil {
			o.timer.stop()
		}
		o.timer = o.after(e.Delay(), owner.Timer{})
	case owner.Abandon:
		n.links.abandon(o.job, e.Node)
	case owner.JobEnded:
		n.jobs.box.put(jobs.Over{Job: o.job})
	default:
		n.w.fail("the owner of job %v asks for %d, which nobody does", o.job, e.Kind)
	}
}

// receipt tells an owner that what it sent before is on its way.
type receipt struct {
	to *box
	ev owner.ClientRead
}

// recovering tells whether an owner waits for its clients, or is about to.
func (n *Node) recovering() bool {
	for _, o := range n.owners {
		if o.rests() || o.core.Gauges().Recovering {
			return true
		}
	}
	return false
}
