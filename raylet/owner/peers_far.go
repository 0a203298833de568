package owner

import (
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/owner/record"
	"mobula/wire"
)

// A job of another home. What its owner and this one say to each other is delivered once and in order, as on one node, as long as both nodes live. When its home ends,
// JobGone says so, as of a job that has ended. When its home was started again, with the job, Rejoined says so: what was said to the life before may be lost, and so is
// what that had not said yet. Then each tells the other what it holds and waits for.
//
// When this job's own home was started again, whoever had borrowed from it must be asked before anything is freed. Which jobs of its own home there are a node knows
// then, and of the others the log tells: it names each that may hold something.

// far tells whether the home of a job is another node than that of this one.
func (s *step) far(job ids.JobID) bool { return job.Home() != s.home() }

// noteBorrower has the log name a job of another home that may hold something.
func (pe *peers) noteBorrower(job ids.JobID) {
	if pe.borrowers[job] != nil || !pe.far(job) {
		return
	}
	j := pe.journal
	at, ck := len(j.logbuf), new(uint64)
	j.logbuf = record.AppendBorrower(j.logbuf, j.nextRecord(), job)
	j.logged(at, ck)
	pe.borrowers[job] = ck
}

// forgetBorrower frees the record of a job that holds nothing any more.
func (pe *peers) forgetBorrower(job ids.JobID) {
	if ck := pe.borrowers[job]; ck != nil {
		pe.journal.cookies = append(pe.journal.cookies, ck)
		delete(pe.borrowers, job)
	}
}

// dealsWith gives the jobs that a rebuilt core has to do with, in order: those that it is told of, and those of other homes that its log knows.
func (pe *peers) dealsWith(told []ids.JobID) []ids.JobID {
	all := slices.Concat(told, slices.Collect(maps.Keys(pe.borrowers)))
	for id, o := range pe.objects.placeholders {
		if o.flags&objBorrowed != 0 && pe.far(id.Job()) {
			all = append(all, id.Job())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Rejoined says that the home of a job was started again, and may have the job still.
type Rejoined struct{}

// rejoined asks an owner whose node was started again what it holds, and tells it what is held of it. Its own stores may have forgotten what they knew.
func (pe *peers) rejoined(job ids.JobID) {
	for _, t := range pe.transfersTo(job) {
		x := pe.objects.transfers[t]
		x.old = true
		pe.objects.transfers[t] = x
	}
	for _, o := range pe.borrowedFrom(job) {
		pe.borrows.lost(o.id)
	}
	pe.toOwner(job, Words{&wire.Resync{Component: wire.ComponentOwner, Epoch: pe.epoch}})
	pe.tellHeld(job)
}

// oldArrived ends what was on its way to a life of a job's home that is over: the job has told what it holds.
func (pe *peers) oldArrived(job ids.JobID) {
	for _, t := range pe.transfersTo(job) {
		if pe.objects.transfers[t].old {
			pe.arrived(t)
		}
	}
}
