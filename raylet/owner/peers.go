package owner

import (
	"cmp"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// The owner of another job is a client of this one for the objects of this job that it has references to, one handle an object whoever
// there has them. It says what a client says, in the same words, and is answered so. An object's id names its job, so each knows whom to ask.
//
// A reference that goes from one job to another is on its way as long as nobody there has told: whoever passes it on has its owner hold
// it with Passing, and has the owner that gets it answer with Arrived once it holds it itself.

// FromOwner is a message of the owner of another job.
type FromOwner struct {
	Job ids.JobID
	Msg PeerMsg
}

func (FromOwner) ownerEvent() {}

// PeerMsg is what the owners of two jobs say to each other, by value.
type PeerMsg interface{ peerMsg() }

// The owner of a job of another home is on another node, and what the two say to each other goes between nodes (see peers_far.go).

// Words is what a client and its owner say to each other as well. About objects of the job of who gets it: *wire.AddRef, *wire.Release, *wire.Get and
// *wire.Holdings; *wire.Cancel of a task of that job. About objects of the job of who says it: *wire.Resolved, and *wire.Resync, which asks for Holdings.
type Words struct{ Msg wire.Msg }

// Asks tells whether a message has an answer: JobGone is it where the owner that it is for has ended.
func Asks(m PeerMsg) bool {
	switch m := m.(type) {
	case Sync, Leaving:
		return true
	case Words:
		switch m.Msg.(type) {
		case *wire.AddRef, *wire.Get, *wire.Resync:
			return true
		}
	}
	return false
}

func (Words) peerMsg()       {}
func (Bring) peerMsg()       {}
func (Brought) peerMsg()     {}
func (BorrowLost) peerMsg()  {}
func (Passing) peerMsg()     {}
func (Arrived) peerMsg()     {}
func (Reached) peerMsg()     {}
func (Sync) peerMsg()        {}
func (Synced) peerMsg()      {}
func (Leaving) peerMsg()     {}
func (Left) peerMsg()        {}
func (JobGone) peerMsg()     {}
func (Rejoined) peerMsg()    {}
func (Unreachable) peerMsg() {}

// Passing says that references to objects of this job are on their way to the owner of the FromOwner's: they are held until Arrived.
type Passing struct {
	Token uint64
	Refs  []ids.ObjectID
}

// Arrived ends a Passing.
type Arrived struct{ Token uint64 }

// Reached comes behind the message with the references that a Passing is about: Arrived answers, to their owner.
type Reached struct{ Token uint64 }

// JobGone says that a job has ended, and all its objects with it. Err says more, where it did not end by itself.
type JobGone struct{ Err *errs.Error }

// Unreachable refuses what was said to the owner of a job that this node does not reach, whether it lives or not: nobody waits for it, and
// who wants an object of it gets Err.
type Unreachable struct{ Err *errs.Error }

// peerClient is the owner of another job as a client of this one. No session has such an id.
func peerClient(job ids.JobID) ids.ClientID { return 1<<63 | ids.ClientID(job) }

// peer finds the client that another job's owner is, or makes it known.
func (pe *peers) peer(job ids.JobID) *clientRec {
	if cl := pe.clients.client(peerClient(job)); cl != nil && !cl.gone {
		return cl
	}
	cl := pe.clients.addClient(peerClient(job), wire.RoleWorker)
	cl.joined, cl.peer = true, job
	pe.noteBorrower(job)
	return cl
}

// passing holds references that are on their way to another owner.
func (pe *peers) passing(job ids.JobID, m Passing) {
	pe.objects.retainContained(m.Refs)
	pe.objects.transfers[transferID{job, m.Token}] = refTransfer{refs: m.Refs}
}

func (pe *peers) arrived(t transferID) {
	refs := pe.objects.transfers[t].refs
	delete(pe.objects.transfers, t)
	pe.objects.releaseContained(refs)
}

// transfersTo gives what is on its way to another owner, in order.
func (pe *peers) transfersTo(job ids.JobID) (out []transferID) {
	for t := range pe.objects.transfers {
		if t.to == job {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b transferID) int { return cmp.Compare(a.token, b.token) })
	return out
}

// peerHolds replaces what is known of another owner by what it says.
func (pe *peers) peerHolds(job ids.JobID, m *wire.Holdings) {
	cl := pe.peer(job)
	pe.objects.dropHandles(cl)
	for _, id := range m.Handles {
		pe.objects.addRef(cl, id)
	}
	pe.noteReported(job)
	pe.oldArrived(job)
	if pe.leaving != nil {
		pe.askToLeave(cl)
	}
}

// noteReported notes that another owner has told a rebuilt core what it has. Before all have, nothing is freed.
func (pe *peers) noteReported(job ids.JobID) { delete(pe.objects.silent, job) }

// askPeers has the other owners tell a rebuilt core what they have. Those that recover too answer when they have. It tells them
// what it has when it goes on: what the core before had said may be lost.
func (pe *peers) askPeers(jobs []ids.JobID) {
	for _, job := range jobs {
		pe.objects.silent[job] = struct{}{}
		pe.toOwner(job, Words{&wire.Resync{Component: wire.ComponentOwner, Epoch: pe.epoch}})
	}
}

// jobGone lets go of what a job had that has ended, and gives up what it owned.
func (pe *peers) jobGone(job ids.JobID, why *errs.Error) {
	pe.noteReported(job)
	for _, t := range pe.transfersTo(job) {
		pe.arrived(t)
	}
	if cl := pe.clients.client(peerClient(job)); cl != nil {
		pe.up.clientGone(ClientGone{Client: cl.id})
	}
	pe.forgetBorrower(job)
	pe.failBorrowed(job, jobEnded(job, why))
	pe.leavers = without(pe.leavers, job)
	delete(pe.leaving, job)
	pe.syncedAll(job)
}

// tellHeld tells another owner which of its objects are held here, and asks again for those that are waited for.
func (pe *peers) tellHeld(job ids.JobID) {
	if slices.Contains(pe.untold, job) {
		pe.borrowAgain(job)
		return
	}
	held := pe.borrowedFrom(job)
	m := &wire.Holdings{Component: wire.ComponentOwner}
	for _, o := range held {
		m.Handles = append(m.Handles, o.id)
	}
	pe.toOwner(job, Words{m})
	pe.syncAgain(job)
	pe.askAgainFor(job, held)
}

// askAgainFor asks an owner anew for what is waited for.
func (pe *peers) askAgainFor(job ids.JobID, held []*objRec) {
	for _, o := range held {
		if o.flags&objAsked != 0 && o.state == object.Pending {
			pe.toOwner(job, Words{&wire.Get{ID: o.id}})
		}
	}
	pe.borrows.repeatAsks(job)
}

// borrowedResolved is what an object's own owner says it is.
func (pe *peers) borrowedResolved(m *wire.Resolved) {
	o := pe.objects.placeholders[m.ID]
	if o == nil || o.flags&objBorrowed == 0 || o.state != object.Pending {
		return // dropped meanwhile, or told before
	}
	o.flags &^= objAsked
	res := m.Result
	switch res.Kind {
	case wire.ResultInline:
		pe.objects.resolve(o, &res, object.SetInline)
	case wire.ResultStored:
		pe.objects.resolve(o, &res, object.SetStored)
	default:
		pe.objects.resolve(o, errorResult(res.Err), object.SetError)
	}
	pe.handOver(o)
}

// borrowedLost has an object's own owner find a way to a value that the store does not have any more, and asks for it anew.
func (pe *peers) borrowedLost(o *objRec, node ids.Home, m objectstore.Lost) {
	pe.toOwner(o.id.Job(), BorrowLost{Node: node, Lost: objectstore.Lost{ID: o.id, Attempt: m.Attempt, Copy: m.Copy, Err: m.Err, Unsealed: m.Unsealed}})
	pe.loseBorrowed(o)
}

// loseBorrowed has whoever needs another job's object ask for it anew.
func (pe *peers) loseBorrowed(o *objRec) {
	pe.borrows.lost(o.id)
	pe.objects.releaseContained(containedIn(o.res))
	pe.objects.moveObject(o, object.Lose)
	o.res = nil
}

// failBorrowed has an error stand for the objects of a job that has ended.
func (pe *peers) failBorrowed(job ids.JobID, err *errs.Error) {
	for _, o := range pe.borrowedFrom(job) {
		switch o.state {
		case object.Pending:
			pe.objects.resolve(o, errorResult(err), object.SetError)
		case object.Stored:
			pe.objects.releaseContained(containedIn(o.res))
			pe.objects.moveObject(o, object.SetError)
			o.res = errorResult(err)
		}
		pe.borrows.goOnAll(o.id)
	}
}

// borrowedFrom gives the objects of another job that there are records of, in order.
func (pe *peers) borrowedFrom(job ids.JobID) []*objRec {
	var out []*objRec
	for id, o := range pe.objects.placeholders {
		if id.Job() == job && o.flags&objBorrowed != 0 {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *objRec) int { return a.id.Compare(b.id) })
	return out
}
