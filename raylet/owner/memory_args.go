package owner

import (
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// argState tells what the arguments of a task that is about to run need.
type argState uint8

const (
	argsNone   argState = iota // no references, or inline values only
	argsStored                 // some are to be pinned
	argsHeavy                  // inline values are too much for a message
	argsAgain                  // some were lost meanwhile: wait again
)

func (ms *memory) argsOf(t *taskRec) argState {
	st, heavy := argsNone, int64(0)
	for i := range t.spec.Args {
		id := t.spec.Args[i].Ref
		if id.IsZero() {
			continue
		}
		switch o := ms.objects.object(id); {
		case o == nil || !o.state.Resolved() || o.state == object.Failed:
			return argsAgain
		case o.state == object.Stored:
			st = argsStored
		case o.packable():
			heavy += sizeOf(o.res)
		}
	}
	if heavy > ms.cfg.MessageArgs {
		return argsHeavy
	}
	return st
}

// argValues makes the arguments as the worker gets them. It is false if one was lost since
// its pin was asked for.
func (ms *memory) argValues(t *taskRec, pinned []objectstore.PinnedValue) ([]wire.ArgValue, bool) {
	n := 0
	for i := range t.spec.Args {
		if !t.spec.Args[i].Ref.IsZero() {
			n++
		}
	}
	if n == 0 {
		return nil, true
	}
	at := make(map[ids.ObjectID]int, len(pinned))
	for i := range pinned {
		at[pinned[i].ID] = i
	}
	out := make([]wire.ArgValue, 0, n)
	for i := range t.spec.Args {
		id := t.spec.Args[i].Ref
		if id.IsZero() {
			continue
		}
		o := ms.objects.object(id)
		if o == nil || o.res == nil {
			return nil, false
		}
		v := wire.ArgValue{Index: int32(i), Result: *o.res}
		if j, ok := at[id]; ok {
			v.Extent = pinned[j].Extent
			v.Result.Kind = wire.ResultStored
			v.Result.Value.Data = nil
		} else if o.state != object.Inline {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

// storedArgs lists the arguments that lie in the store, each once.
func (ms *memory) storedArgs(t *taskRec) []ids.ObjectID {
	out := make([]ids.ObjectID, 0, len(t.spec.Args))
	seen := make(map[ids.ObjectID]struct{}, len(t.spec.Args))
	for i := range t.spec.Args {
		id := t.spec.Args[i].Ref
		if id.IsZero() {
			continue
		}
		if o := ms.objects.object(id); o == nil || o.state != object.Stored {
			continue
		}
		if _, dup := seen[id]; !dup {
			seen[id] = struct{}{}
			out = append(out, id)
		}
	}
	return out
}

// packArgs lets a task wait until the store has its inline arguments.
func (ms *memory) packArgs(t *taskRec) {
	ms.tasks.move(t, task.Requeue)
	t.flags |= taskFront
	t.gen++
	t.deps = 0
	var vs []objectstore.PackValue
	for i := range t.spec.Args {
		id := t.spec.Args[i].Ref
		if id.IsZero() {
			continue
		}
		o := ms.objects.object(id)
		if o.state != object.Inline || !o.packable() {
			continue
		}
		if o.flags&objPacking == 0 {
			vs = append(vs, ms.objects.budget.ask(o))
		}
		w := ms.objects.waitsOf(o)
		w.tasks = append(w.tasks, taskWait{t, t.gen})
		t.deps++
	}
	ms.askPack(vs)
	if t.flags&taskTurn != 0 {
		ms.up.resequence(t)
	}
}

// pinAgain repeats a PinArgs that the store has forgotten, under a new number: an answer to the first one may still come. Before the store knows of all that is
// borrowed it is not asked.
func (ms *memory) pinAgain(t *taskRec, l *leaseRec) {
	t.gen++
	node, args, waits := ms.nodeOf(l.worker), ms.storedArgs(t), false
	for _, id := range args {
		if o := ms.objects.object(id); o.flags&objBorrowed == 0 {
			ms.copies.locate(o, node)
		} else if !ms.borrows.isOn(id, node) {
			ms.borrows.forArgs(id, node, t)
			waits = true
		}
	}
	if waits {
		return
	}
	ms.toStoreAt(node, objectstore.PinArgs{Job: ms.cfg.Job, Task: t.id(), Attempt: t.start, Worker: l.worker.id, IDs: args, Ask: ms.ask(t)})
}

// pinBrought goes on with a task that has waited for what it borrows, unless it does so no more.
func (ms *memory) pinBrought(t *taskRec, gen uint32) {
	if t.gen == gen && t.lease != nil && !t.lease.worker.gone && t.state == task.PendingFetch {
		ms.pinAgain(t, t.lease)
	}
}

// ask tells a task's PinArgs from those that it withdrew, and from those of the cores before this one: whose answers come later name
// extents that are pinned no more.
func (ms *memory) ask(t *taskRec) uint64 { return ms.epoch<<32 | uint64(t.gen) }

// unpinArgs gives the pins of the latest attempt up, which has its lease still.
func (ms *memory) unpinArgs(t *taskRec) {
	if t.flags&taskPinned != 0 {
		t.flags &^= taskPinned
		ms.toStoreAt(ms.nodeOf(t.lease.worker), objectstore.UnpinArgs{Task: t.id(), Attempt: t.start})
	}
}

// abandonArgs leaves the pins of the latest attempt, which has its lease still, to its worker: it may read its arguments until it says
// that it is done, or its process ends.
func (ms *memory) abandonArgs(t *taskRec) {
	if t.flags&taskPinned != 0 {
		t.flags &^= taskPinned
		ms.toStoreAt(ms.nodeOf(t.lease.worker), objectstore.AbandonArgs{Task: t.id(), Attempt: t.start})
	}
}

// argsDone gives up the pins of the latest attempt, which has its lease still, on its worker's report. They are abandoned if it still runs.
func (ms *memory) argsDone(t *taskRec, d *wire.Done) {
	if d.StillRuns {
		ms.abandonArgs(t)
	} else {
		ms.unpinArgs(t)
	}
}

// dropArgs does the same for an attempt that is no task's latest.
func (ms *memory) dropArgs(cl *clientRec, d *wire.Done) {
	at := objectstore.UnpinArgs{Task: d.Task, Attempt: d.Attempt}
	if d.StillRuns {
		ms.toStoreAt(ms.nodeOf(cl), objectstore.AbandonArgs(at))
	} else {
		ms.toStoreAt(ms.nodeOf(cl), at)
	}
}

func (ms *memory) idleArgs(t *taskRec, idle bool) {
	ms.toStoreAt(ms.nodeOf(t.lease.worker), objectstore.ArgsIdle{Task: t.id(), Idle: idle})
}
