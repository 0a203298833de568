package owner

import (
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
)

// createWaits gives the CPU of a task to others: its create waits until they let go of what fills the disk.
func (cr *creates) createWaits(m objectstore.CreateWaits) {
	if t := cr.tasks.task(m.Task); t.runsIn(m.Client) {
		cr.lendCPU(t)
	}
}

func (cr *creates) lendCPU(t *taskRec) {
	if t.state != task.Running || !cr.leases.moveLease(t.lease, lease.Block) {
		return
	}
	cr.tasks.move(t, task.Block)
	cr.leases.unpushFetching(t.lease)
	t.lease.lendCPU(cr.step)
}

// createReady asks for the CPU of such a task again. The store answers its create when it has one.
func (cr *creates) createReady(node ids.Home, m objectstore.CreateReady) {
	t := cr.tasks.task(m.Task)
	if t.runsIn(m.Client) && t.flags&taskAdopted != 0 {
		cr.lendCPU(t) // its worker does not know that it was lent, nor may the scheduler have said so yet
	}
	if !t.runsIn(m.Client) || t.lease.state != lease.Blocked && t.lease.state != lease.Resuming {
		cr.toStoreAt(node, objectstore.GoOn(m))
		return
	}
	l := t.lease
	if !slices.Contains(l.creates, m.Task) {
		l.creates = append(l.creates, m.Task)
	}
	if cr.leases.moveLease(l, lease.Unblock) {
		l.askCPU(cr.step)
	}
}

// answerCreates has the store answer what tasks of a lease create: they have a CPU again, or the lease is over.
func (l *leaseRec) answerCreates(s *step) {
	for _, id := range l.creates {
		s.toStoreAt(s.nodeOf(l.worker), objectstore.GoOn{Task: id, Client: l.worker.id})
	}
	l.creates = nil
}

// runsIn tells whether a client has a task that holds a CPU of its own.
func (t *taskRec) runsIn(client ids.ClientID) bool {
	return t != nil && t.lease != nil && t.lease.worker.id == client && t.lease.actor == nil
}
