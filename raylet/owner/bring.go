package owner

import (
	"slices"
	"time"

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
		pe.copies.expect(o, m.Node)
		pe.awaited = append(pe.awaited, m)
		pe.timers.add(pe.now+int64(openPatience), timer{kind: timerOpened, bring: &m})
		return
	}
	pe.toOwner(m.to, answer)
}

// openPatience is how long the job may not be open on a node before that is asked for again. Another job's node may know of the node earlier than this one's.
const openPatience = time.Second

// openAgain asks again for the job to be open on a node, if that is waited for.
func (pe *peers) openAgain(m bringing) {
	if i := slices.Index(pe.awaited, m); i >= 0 {
		pe.awaited = slices.Delete(pe.awaited, i, i+1)
		pe.bringNow(m)
	}
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
	pe.copies.opened[node] = true
	for _, m := range pe.takeAwaited(node) {
		pe.bringNow(m)
	}
}

// takeAwaited gives what waits until the job is open on a node, and does so no more.
func (pe *peers) takeAwaited(node ids.Home) (out []bringing) {
	out, pe.awaited = split(pe.awaited, func(m bringing) bool { return m.Node == node })
	return out
}
