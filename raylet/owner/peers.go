package owner

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/wire"
)

// The owner of another job is a client of this one for the objects of this job that it has references to, one handle an object whoever
// there has them. It says what a client says, in the same words, and is answered so. An object's id names its job, so each knows whom to ask.
//
// A reference that goes from one job to another is on its way as long as nobody there has told: whoever passes it on has its owner hold
// it with Passing, and has the owner that gets it answer with Arrived once it holds it itself.

// FromOwner is a message of the owner of another job.
//
// About objects of this job: *wire.AddRef, *wire.Release, *wire.Get and *wire.Holdings; *wire.Cancel of a task of this job.
// About objects of its own: *wire.Resolved, and *wire.Resync, which asks for Holdings.
// Passing, Arrived, Reached and JobGone, by value.
type FromOwner struct {
	Job ids.JobID
	Msg any
}

func (FromOwner) ownerEvent() {}

// Passing says that references to objects of this job are on their way to the owner of the FromOwner's: they are held until Arrived.
type Passing struct {
	Token uint64
	Refs  []ids.ObjectID
}

// Arrived ends a Passing.
type Arrived struct{ Token uint64 }

// Reached comes behind the message with the references that a Passing is about: Arrived answers, to their owner.
type Reached struct{ Token uint64 }

// JobGone says that a job has ended, and all its objects with it.
type JobGone struct{}

// passing is what is held for references that are on their way.
type passing struct {
	to   ids.JobID
	refs []ids.ObjectID
}

// peerClient is the owner of another job as a client of this one. No session has such an id.
func peerClient(job ids.JobID) ids.ClientID { return 1<<63 | ids.ClientID(job) }

func (c *Core) toOwner(job ids.JobID, m any) {
	c.effects = append(c.effects, Effect{Kind: ToOwner, Job: job, Msg: m})
}

// peer finds the client that another job's owner is, or makes it known.
func (c *Core) peer(job ids.JobID) *clientRec {
	if cl := c.client(peerClient(job)); cl != nil && !cl.gone {
		return cl
	}
	cl := c.addClient(peerClient(job), wire.RoleWorker)
	cl.joined, cl.peer = true, job
	return cl
}

func (c *Core) fromOwner(ev FromOwner) {
	switch m := ev.Msg.(type) {
	case *wire.AddRef:
		c.addRef(c.peer(ev.Job), m.ID)
	case *wire.Release:
		for _, id := range m.IDs {
			c.release(c.peer(ev.Job), id)
		}
	case *wire.Get:
		c.get(c.peer(ev.Job), m.ID, false)
	case *wire.Holdings:
		c.peerHolds(ev.Job, m)
	case *wire.Cancel:
		c.cancel(m)
	case *wire.Resolved:
		c.foreignResolved(m)
	case *wire.Resync:
		c.tellHeld(ev.Job)
	case objectstore.Lost:
		c.lost(m)
	case Passing:
		c.holdInner(m.Refs)
		c.passing[m.Token] = passing{ev.Job, m.Refs}
	case Arrived:
		c.arrived(m.Token)
	case Reached:
		c.toOwner(ev.Job, Arrived(m))
	case JobGone:
		c.jobGone(ev.Job)
	}
}

func (c *Core) arrived(token uint64) {
	refs := c.passing[token].refs
	delete(c.passing, token)
	c.dropInner(refs)
}

// peerHolds replaces what is known of another owner by what it says.
func (c *Core) peerHolds(job ids.JobID, m *wire.Holdings) {
	cl := c.peer(job)
	c.dropHandles(cl)
	for _, id := range m.Handles {
		c.addRef(cl, id)
	}
	c.spoken(job)
}

// spoken notes that another owner has told a rebuilt core what it has. Before all have, nothing is freed.
func (c *Core) spoken(job ids.JobID) { delete(c.silent, job) }

// askPeers has the other owners tell a rebuilt core what they have. Those that recover too answer when they have. It tells them
// what it has when it goes on: what the core before had said may be lost.
func (c *Core) askPeers(jobs []ids.JobID) {
	for _, job := range jobs {
		c.silent[job] = struct{}{}
		c.toOwner(job, &wire.Resync{Component: wire.ComponentOwner, Epoch: c.epoch})
	}
}

// jobGone lets go of what a job had that has ended, and gives up what it owned.
func (c *Core) jobGone(job ids.JobID) {
	c.spoken(job)
	for _, token := range slices.Sorted(maps.Keys(c.passing)) {
		if c.passing[token].to == job {
			c.arrived(token)
		}
	}
	if cl := c.client(peerClient(job)); cl != nil {
		c.clientGone(ClientGone{Client: cl.id})
	}
	c.loseForeign(job, errs.New(errs.CodeOwnerDied, "job %v, which owned it, has ended", job))
}
