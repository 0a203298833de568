package directory

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// freeAgain is how long after a failure the directory asks the control plane again to free a name.
const freeAgain = time.Second

// Core is the directory's logic.
type Core struct {
	home     ids.Home
	name     string
	jobs     set[ids.JobID]                    // jobs that have an owner here
	held     map[ids.ActorID]*wire.TaskOptions // names that actors of these jobs have
	at       map[ids.ActorID]Place             // last published place of each living actor
	watchers map[ids.ActorID]set[ids.JobID]    // jobs whose owners watch an actor
	freeing  map[Name]*freeing                 // names that are being given up
	killed   set[ids.ActorID]                  // of held: another job has asked their owners to end them
	out      []Effect
}

type set[T comparable] map[T]struct{}

// freeing is a name that is being given up, and the claims that wait for that.
type freeing struct {
	by      set[ids.ActorID] // actors that are ending, or are to end, or with a FreeRow without an answer
	waiting []Claim
}

// New makes the directory of a home's actors; name is what its node is called.
func New(home ids.Home, name string) *Core {
	return &Core{
		home: home, name: name, jobs: make(set[ids.JobID]), held: make(map[ids.ActorID]*wire.TaskOptions), at: make(map[ids.ActorID]Place),
		watchers: make(map[ids.ActorID]set[ids.JobID]), freeing: make(map[Name]*freeing), killed: make(set[ids.ActorID]),
	}
}

// Step handles one event. The slice is valid until the next Step.
func (c *Core) Step(_ int64, ev Event) []Effect {
	clear(c.out)
	c.out = c.out[:0]
	switch ev := ev.(type) {
	case JobBegan:
		c.jobs[ev.Job] = struct{}{}
	case JobEnded:
		c.jobEnded(ev.Job)
	case Claim:
		c.claim(ev)
	case Claimed:
		c.claimed(ev)
	case Release:
		c.release(ev)
	case Freed:
		c.freed(ev)
	case FreeAgain:
		c.emit(ev.FreeRow)
	case Publish:
		c.publish(ev.Place)
	case Kill:
		c.kill(ev)
	case Inspect:
		ev.Do(c)
	case Locate:
		c.locate(ev)
	case Reconcile:
		c.emit(ListRows{})
	case Listed:
		c.listed(ev)
	case OwnerRestarted:
		c.ownerRestarted(ev.Job)
	case Rebuild:
		c.rebuild(ev.Jobs)
	}
	return c.out
}

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }

func (c *Core) tell(job ids.JobID, m Msg) { c.emit(ToOwner{Job: job, Msg: m}) }

func (c *Core) has(job ids.JobID) bool {
	_, ok := c.jobs[job]
	return ok
}

// claim asks for a name. A name that is being given up is asked for after that: its actor is ending, or dead, and its watchers
// know.
func (c *Core) claim(m Claim) {
	if f := c.freeing[nameOf(m.Opts)]; f != nil {
		f.waiting = append(f.waiting, m)
		return
	}
	c.emit(ClaimRow{m})
}

// claimed passes an answer on to the owner, which knows what it still wants. An earlier core may have asked for it. Without an answer of the table the name may
// have been written all the same, now or for a claim of an earlier core: the owner releases it unless its actor has it.
func (c *Core) claimed(a Claimed) {
	unknown := a.Err != nil && a.Holder.IsZero()
	if a.Err == nil || unknown {
		c.held[a.Actor] = a.Opts
	}
	if !c.has(a.Job) { // it has ended meanwhile
		c.release(Release{Actor: a.Actor})
		return
	}
	out := NameClaimed{Actor: a.Actor, Err: a.Err}
	if a.Err != nil && !a.Holder.IsZero() && a.Opts.GetIfExists {
		out.Existing, out.Err = a.Holder, nil
	}
	c.tell(a.Job, out)
	if unknown {
		c.tell(a.Job, NameHeld{Actor: a.Actor, Opts: a.Opts})
	}
}

// release tells the watchers that the actor is dead, and frees its name.
func (c *Core) release(m Release) {
	c.publish(Place{Actor: m.Actor, State: actor.Dead, Err: m.Err})
	opts := cmp.Or(m.Opts, c.held[m.Actor])
	delete(c.held, m.Actor)
	delete(c.killed, m.Actor)
	if opts == nil {
		return // it was given up already
	}
	c.giveUp(nameOf(opts), m.Actor)
}

// GivesUp tells whether an actor is giving its name up: it is ending, or is to end, or it is dead, and the table does not say so yet.
func (c *Core) GivesUp(name Name, id ids.ActorID) bool {
	f := c.freeing[name]
	if f == nil {
		return false
	}
	_, is := f.by[id]
	return is
}

// giveUp frees a name, if an actor has it.
func (c *Core) giveUp(name Name, id ids.ActorID) {
	c.holdClaims(name, id)
	c.emit(FreeRow{Name: name, Actor: id})
}

// holdClaims has the claims of a name wait until an actor has given it up.
func (c *Core) holdClaims(name Name, id ids.ActorID) {
	f := c.freeing[name]
	if f == nil {
		f = &freeing{by: make(set[ids.ActorID])}
		c.freeing[name] = f
	}
	f.by[id] = struct{}{}
}

// letClaims lets the claims of a name go on that wait for an actor, unless they wait for another one too.
func (c *Core) letClaims(name Name, id ids.ActorID) {
	f := c.freeing[name]
	if f == nil {
		return
	}
	if delete(f.by, id); len(f.by) > 0 {
		return
	}
	delete(c.freeing, name)
	for _, m := range f.waiting {
		c.emit(ClaimRow{m})
	}
}

// kill passes on that an actor is to end. Whoever asked for that may claim its name from now on.
func (c *Core) kill(m Kill) {
	if opts := c.held[m.Actor]; opts != nil && !m.Restart {
		c.killed[m.Actor] = struct{}{}
		c.holdClaims(nameOf(opts), m.Actor)
	}
	c.tell(m.Actor.Job(), m)
}

// freed lets the claims go on that wait for the name, and asks again after a failure; a claim made meanwhile is told who has the
// name.
func (c *Core) freed(a Freed) {
	c.letClaims(a.Name, a.Actor)
	if a.Err == nil || a.Final {
		return // the next start of the node finds what is left
	}
	c.emit(Warn{What: "an actor's name could not be given up yet", Row: a.FreeRow, Err: a.Err})
	c.emit(After{D: freeAgain, Ev: FreeAgain{a.FreeRow}})
}

// publish notes where an actor is and tells the owners that asked.
func (c *Core) publish(at Place) {
	if at.State == actor.Dead {
		delete(c.at, at.Actor)
	} else {
		c.at[at.Actor] = at
		if at.Opts != nil && at.Opts.ActorName != "" {
			c.held[at.Actor] = at.Opts // its owner has the name
			if at.Ending {
				c.holdClaims(nameOf(at.Opts), at.Actor)
			}
		}
	}
	for _, job := range slices.Sorted(maps.Keys(c.watchers[at.Actor])) {
		c.tellPlace(job, at)
	}
	if at.State == actor.Dead {
		delete(c.watchers, at.Actor)
	}
	if opts := c.held[at.Actor]; opts != nil && at.State == actor.Alive && !at.Ending {
		c.emit(UpdateRow{Row{at.Actor, opts}})
	}
}

// tellPlace tells a job that has asked for an actor where it is. Only where the actor runs on its job's home do calls of other jobs reach it.
func (c *Core) tellPlace(job ids.JobID, at Place) {
	if at.Worker != 0 && at.Worker.Home() != c.home {
		at = Place{Actor: at.Actor, State: actor.Locating, Err: errs.New(errs.CodeActorUnavailable,
			"actor %v does not run on node %s, its job's home: other jobs can call it only while it does; say so with affinity to that node", at.Actor, c.name)}
	}
	c.tell(job, at)
}

func (c *Core) locate(m Locate) {
	if m.Done {
		delete(c.watchers[m.Actor], m.Job)
		if len(c.watchers[m.Actor]) == 0 {
			delete(c.watchers, m.Actor)
		}
		return
	}
	job := m.Actor.Job()
	if job.Home() != c.home {
		c.tell(m.Job, Place{Actor: m.Actor, State: actor.Locating, Err: errs.New(errs.CodeActorUnavailable,
			"actor %v is of home %v, which this node, of home %v, does not reach", m.Actor, job.Home(), c.home)})
		return
	}
	at, known := c.at[m.Actor]
	if !known && !c.has(job) {
		c.tell(m.Job, ended(m.Actor))
		return
	}
	if c.watchers[m.Actor] == nil {
		c.watchers[m.Actor] = make(set[ids.JobID])
	}
	c.watchers[m.Actor][m.Job] = struct{}{}
	if known {
		c.tellPlace(m.Job, at)
	} else {
		c.tell(job, Sought{m.Actor}) // it is being created, or dead
	}
}

func ended(id ids.ActorID) Place {
	return Place{Actor: id, State: actor.Dead, Err: errs.New(errs.CodeActorDied, "actor %v: its job has ended", id)}
}

// jobEnded drops a job's claims and watches, tells the watchers of its actors, and frees their names.
func (c *Core) jobEnded(job ids.JobID) {
	delete(c.jobs, job)
	gone := make(set[ids.ActorID])
	for id, jobs := range c.watchers {
		if delete(jobs, job); len(jobs) == 0 {
			delete(c.watchers, id)
		} else if id.Job() == job {
			gone[id] = struct{}{}
		}
	}
	for id := range c.at {
		if id.Job() == job {
			gone[id] = struct{}{}
		}
	}
	for _, id := range inOrder(gone) {
		c.publish(ended(id))
	}
	for _, id := range c.namedOf(job) {
		c.release(Release{Actor: id, Err: ended(id).Err})
	}
	for _, f := range c.freeing {
		f.waiting = slices.DeleteFunc(f.waiting, func(m Claim) bool { return m.Job == job })
	}
}

// listed lets the owner of each actor check its name in the table. A job that did not come back has no owner. Names of other homes are not
// checked here.
func (c *Core) listed(l Listed) {
	if l.Err != nil {
		c.emit(Warn{What: "the names of actors could not be read; those of dead ones stay taken", Err: l.Err})
		return
	}
	for _, r := range l.Rows {
		job := r.Actor.Job()
		switch {
		case job.Home() != c.home:
		case c.has(job):
			if c.held[r.Actor] == nil {
				c.held[r.Actor] = r.Opts
			}
			c.tell(job, NameHeld(r))
		default:
			c.release(Release{Actor: r.Actor, Opts: r.Opts})
		}
	}
}

// ownerRestarted repeats what an owner had been told. It may have lost that an actor is to end: nobody waits for that any more.
func (c *Core) ownerRestarted(job ids.JobID) {
	for _, id := range c.namedOf(job) {
		c.tell(job, NameHeld{Actor: id, Opts: c.held[id]})
		if _, was := c.killed[id]; was {
			delete(c.killed, id)
			c.letClaims(nameOf(c.held[id]), id)
		}
	}
}

// rebuild asks the owners and the table for what the earlier core knew.
func (c *Core) rebuild(jobs []ids.JobID) {
	for _, job := range slices.Sorted(slices.Values(jobs)) {
		c.jobs[job] = struct{}{}
		c.tell(job, Restate{})
	}
	c.emit(ListRows{})
}

// namedOf are the actors of a job that have a name.
func (c *Core) namedOf(job ids.JobID) []ids.ActorID {
	of := make(set[ids.ActorID])
	for id := range c.held {
		if id.Job() == job {
			of[id] = struct{}{}
		}
	}
	return inOrder(of)
}

func inOrder(of set[ids.ActorID]) []ids.ActorID {
	return slices.SortedFunc(maps.Keys(of), func(a, b ids.ActorID) int { return bytes.Compare(a[:], b[:]) })
}
