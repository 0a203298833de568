package objectstore

import (
	"cmp"
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/wire"
)

// A task whose create waits on a full disk lends its CPU to others. When the create has its room, or has failed, others may run in the task's place: it is
// answered when the owner says that the task has a CPU again. What it was given room for stays its own meanwhile.

// lend notes that a task has no CPU from now on. A new core knows it too.
func (cr *creates) lend(k lenderKey, job ids.JobID) *lender {
	cr.note++
	l := &lender{lenderKey: k, job: job, note: cr.note}
	cr.lenders[k] = l
	cr.keepNote(NoteKey{N: l.note}, lentCPU{k, job})
	return l
}

// lentBefore takes a lender over from an earlier core, which knew whether its create had an answer: it goes on, and its client creates again what has none.
func (cr *creates) lentBefore(e lentCPU) {
	if _, ok := cr.clients.byID[e.client]; ok {
		cr.wantCPU(cr.lend(e.lenderKey, e.job))
	}
}

// answer tells a client what its create came to, as soon as its task has a CPU.
func (cr *creates) answer(client ids.ClientID, task ids.TaskID, m *wire.Created) {
	l := cr.lenders[lenderKey{task, client}]
	if l == nil {
		cr.clients.toClient(client, m)
		return
	}
	l.answers = append(l.answers, m)
	if !l.ready {
		cr.wantCPU(l)
	}
}

// wantCPU tells a lender's owner that it can go on.
func (cr *creates) wantCPU(l *lender) {
	l.ready = true
	cr.emit(ToOwner{l.job, CreateReady{Task: l.task, Client: l.client}})
}

// wantCPUAgain tells an owner that was rebuilt of its tasks that can go on.
func (cr *creates) wantCPUAgain(job ids.JobID) {
	for _, l := range cr.sortedLenders() {
		if l.job == job && l.ready {
			cr.wantCPU(l)
		}
	}
}

// awaitCPU tells whether a task that has its room waits for a CPU, which others may have whose creates wait.
func (cr *creates) awaitCPU() bool {
	for _, l := range cr.lenders {
		if l.ready {
			return true
		}
	}
	return false
}

// goOn gives a task that has a CPU the answers to its creates.
func (cr *creates) goOn(k lenderKey) {
	l := cr.lenders[k]
	if l == nil || !l.ready {
		return
	}
	cr.dropLender(l)
	for _, m := range l.answers {
		cr.clients.toClient(l.client, m)
	}
}

func (cr *creates) dropLender(l *lender) {
	delete(cr.lenders, l.lenderKey)
	cr.emit(Forget{NoteKey{N: l.note}})
}

// dropLenders ends what is kept of tasks that are gone.
func (cr *creates) dropLenders(of func(*lender) bool) {
	for _, l := range cr.sortedLenders() {
		if of(l) {
			cr.dropLender(l)
		}
	}
}

func (cr *creates) sortedLenders() []*lender {
	return slices.SortedFunc(maps.Values(cr.lenders), func(a, b *lender) int { return cmp.Compare(a.note, b.note) })
}
