package owner

import (
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// A value of a job of another home may have references to objects of a third home. Who lets go of the value tells its owner, which then lets go of these; the borrow of
// whoever got them goes to the third home another way, and may come later. So the value is held of its owner until the third home has answered (Synced) what came behind
// the borrow (Sync). It is held as by a client, so whatever is said anew after a restart of any of the three says that too.
//
// A rebuilt core does not know what it held so. It borrows anew all that it has, and tells other homes what it does not hold any more once the owners of that have answered.
//
// A job that ends lets go of everything. Before, it asks the owners of other homes that hold values of its own with such references to say when they have been heard (Leaving, Left).

// Sync asks for an answer, Synced, when what was said before has been heard.
type Sync struct{ Token uint64 }

// Synced answers Sync.
type Synced struct{ Token uint64 }

// Leaving says that a job ends, and that nothing more is to be had of it. Left answers when who has got references out of its values has them of their own owners.
type Leaving struct{}

// Left answers Leaving.
type Left struct{}

// handover is a value that is held until the owner of objects which it has references to has answered.
type handover struct {
	token uint64
	of    *objRec // nil: of a rebuilt core, all that it has of that owner
}

// handOver holds another job's value until the owners of a third home know who has got the references to their objects that are in it.
func (pe *peers) handOver(o *objRec) {
	var asked []ids.JobID
	for _, id := range containedIn(o.res) {
		if job := id.Job(); pe.third(o.id.Job(), job) && !slices.Contains(asked, job) {
			asked = append(asked, job)
			o.objs++
			pe.sync(job, o)
		}
	}
}

// third tells whether two jobs and this one are of three homes.
func (s *step) third(a, b ids.JobID) bool { return s.far(a) && s.far(b) && a.Home() != b.Home() }

func (pe *peers) sync(job ids.JobID, of *objRec) {
	pe.syncs++
	h := handover{token: pe.epoch<<24 + pe.syncs, of: of} // an answer to a core before has another one
	pe.handovers[job] = append(pe.handovers[job], h)
	pe.toOwner(job, Sync{h.token})
}

// syncAgain asks an owner again whose answer may be lost.
func (pe *peers) syncAgain(job ids.JobID) {
	if list := pe.handovers[job]; len(list) > 0 {
		pe.toOwner(job, Sync{list[len(list)-1].token})
	}
}

// synced is an owner's answer, to all that it was asked before as well.
func (pe *peers) synced(job ids.JobID, m Synced) {
	list := pe.handovers[job]
	i := slices.IndexFunc(list, func(h handover) bool { return h.token == m.Token })
	if i < 0 {
		return // a core before has asked
	}
	pe.handovers[job] = list[i+1:]
	pe.handedOver(job, list[:i+1])
}

// syncedAll is synced of an owner that has no answers any more.
func (pe *peers) syncedAll(job ids.JobID) {
	list := pe.handovers[job]
	pe.handovers[job] = nil
	pe.untold = without(pe.untold, job)
	pe.handedOver(job, list)
}

func (pe *peers) handedOver(job ids.JobID, list []handover) {
	if len(pe.handovers[job]) == 0 {
		delete(pe.handovers, job)
	}
	for _, h := range list {
		if h.of != nil {
			h.of.objs--
			pe.objects.queueRecount(h.of)
		}
	}
	pe.tellUntold()
	pe.answerLeaving()
}

// tellLater has a rebuilt core borrow anew what it has of other homes, before it tells them what it has.
func (pe *peers) tellLater(jobs []ids.JobID) {
	for i, job := range jobs {
		if pe.far(job) && slices.ContainsFunc(jobs[:i], func(j ids.JobID) bool { return pe.third(j, job) }) {
			pe.untold = slices.DeleteFunc(slices.Clone(jobs), func(j ids.JobID) bool { return !pe.far(j) })
		}
	}
}

// tellAll tells other owners what a rebuilt core has.
func (pe *peers) tellAll(jobs []ids.JobID) {
	for _, job := range jobs {
		pe.tellHeld(job)
	}
	pe.askedAll = true
	pe.tellUntold()
	pe.answerLeaving()
}

// borrowAgain tells an owner what is held of it, not what is held no more.
func (pe *peers) borrowAgain(job ids.JobID) {
	held := pe.borrowedFrom(job)
	for _, o := range held {
		pe.toOwner(job, Words{&wire.AddRef{ID: o.id}})
	}
	pe.askAgainFor(job, held)
	if len(held) > 0 {
		pe.sync(job, nil)
	}
}

// tellUntold goes on with tellAll when the owners of all that is held have answered.
func (pe *peers) tellUntold() {
	if len(pe.untold) == 0 || !pe.askedAll {
		return
	}
	for _, list := range pe.handovers {
		if slices.ContainsFunc(list, func(h handover) bool { return h.of == nil }) {
			return
		}
	}
	jobs := pe.untold
	pe.untold = nil
	for _, job := range jobs {
		pe.tellHeld(job)
	}
}

// isLeaving notes that a job of another home ends.
func (pe *peers) isLeaving(job ids.JobID) {
	pe.failBorrowed(job, jobEnded(job, nil))
	if !slices.Contains(pe.leavers, job) {
		pe.leavers = append(pe.leavers, job)
	}
	pe.answerLeaving()
}

// answerLeaving tells jobs that end that nothing of their values is on its way.
func (pe *peers) answerLeaving() {
	if len(pe.leavers) == 0 || len(pe.untold) > 0 {
		return
	}
	waits := make(map[ids.JobID]bool)
	for _, list := range pe.handovers {
		for _, h := range list {
			if h.of != nil {
				waits[h.of.id.Job()] = true
			}
		}
	}
	left, stay := split(pe.leavers, func(job ids.JobID) bool { return !waits[job] })
	pe.leavers = stay
	for _, job := range left {
		pe.toOwner(job, Left{})
	}
}

// leavePatience is how long a job that ends waits for Left at most.
const leavePatience = 30 * time.Second

// leaves tells whether the job, which ends, has to wait for other owners.
func (pe *peers) leaves() bool {
	if pe.leaving == nil {
		pe.leaving = make(map[ids.JobID]bool)
		pe.leaveBy = pe.now + int64(leavePatience)
		for _, id := range slices.Sorted(maps.Keys(pe.clients.byID)) {
			pe.askToLeave(pe.clients.byID[id])
		}
		if pe.waitsToLeave() {
			pe.timers.add(pe.leaveBy, timer{kind: timerLeave})
		}
	}
	return pe.waitsToLeave()
}

func (pe *peers) waitsToLeave() bool {
	return pe.now < pe.leaveBy && (len(pe.leaving) > 0 || len(pe.objects.silent) > 0 && pe.lends(0))
}

// askToLeave tells an owner of another home that the job ends, if it may have got references of a third home.
func (pe *peers) askToLeave(cl *clientRec) {
	if cl.peer != 0 && !cl.gone && cl.handles > 0 && pe.far(cl.peer) && pe.lends(cl.peer.Home()) {
		pe.leaving[cl.peer] = true
		pe.toOwner(cl.peer, Leaving{})
	}
}

// lends tells whether something is held here of another home than a node's, and than this one.
func (pe *peers) lends(but ids.Home) bool {
	for id, o := range pe.objects.placeholders {
		if o.flags&objBorrowed != 0 && pe.far(id.Job()) && id.Job().Home() != but {
			return true
		}
	}
	return false
}

// refuses has an owner of another home know that the job ends which asks for something, or has been rebuilt and may not know it any more. It tells whether that is the answer.
func (pe *peers) refuses(job ids.JobID, m PeerMsg) bool {
	w, ok := m.(Words)
	if pe.leaving == nil || !ok || !Asks(m) || !pe.far(job) {
		return false
	}
	pe.toOwner(job, Leaving{})
	_, resync := w.Msg.(*wire.Resync)
	return !resync
}

// jobEnded is the error of the objects of a job that is over.
func jobEnded(job ids.JobID, why *errs.Error) *errs.Error {
	err := errs.New(errs.CodeOwnerDied, "job %v, which owned it, has ended", job)
	if why != nil {
		err.Msg += ": " + why.Msg
	}
	return err
}
