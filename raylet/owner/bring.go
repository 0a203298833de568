package owner

import (
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
)

// Bring has the owner of an object tell the store of a node where the object is: somebody of another job is about to ask that store for it. Brought answers.
type Bring struct {
	ID   ids.ObjectID
	Node ids.Home
}

// Brought says that the store of a node knows where an object is; or that the object is in no store any more, and is to be asked for anew.
type Brought struct {
	ID   ids.ObjectID
	Node ids.Home
	Gone bool
}

// BorrowLost says that the store of a node does not have an object that another job has borrowed.
type BorrowLost struct {
	Node ids.Home
	Lost objectstore.Lost
}

// bringing is a Bring of the owner of a job.
type bringing struct {
	to ids.JobID
	Bring
}

// bring has a store know of an object. On another node this job must be open for that, which who chooses nodes is asked for. Where the store has just been
// unable to get the object, it is not tried again at once.
func (pe *peers) bring(m bringing) {
	if wait := pe.copies.patience(m.ID); wait > 0 {
		pe.timers.add(pe.now+int64(wait), timer{kind: timerBring, bring: &m})
		return
	}
	pe.bringNow(m)
}

func (pe *peers) bringNow(m bringing) {
	o, answer := pe.objects.object(m.ID), Brought{ID: m.ID, Node: m.Node}
	switch {
	case o == nil || o.state != object.Stored || pe.ended:
		answer.Gone = true
	case m.Node == pe.home() || pe.copies.opened[m.Node]:
		pe.copies.locate(o, m.Node)
	default:
		pe.copies.expect(m.Node)
		if !slices.Contains(pe.awaited, m) {
			pe.awaited = append(pe.awaited, m)
		}
		return
	}
	pe.toOwner(m.to, answer)
}

// brought is the answer of an object's own owner.
func (pe *peers) brought(m Brought) {
	if o := pe.objects.placeholders[m.ID]; m.Gone && o != nil && o.flags&objBorrowed != 0 && o.state == object.Stored {
		pe.loseBorrowed(o)
	}
	pe.borrows.brought(m)
}

// jobOpened goes on with what waits until the job is open on a node.
func (pe *peers) jobOpened(node ids.Home) {
	pe.copies.isOpen(node)
	for _, m := range pe.takeAwaited(node) {
		pe.bringNow(m)
	}
}

// takeAwaited gives what waits until the job is open on a node, and does so no more.
func (pe *peers) takeAwaited(node ids.Home) (out []bringing) {
	out, pe.awaited = split(pe.awaited, func(m bringing) bool { return m.Node == node })
	return out
}
