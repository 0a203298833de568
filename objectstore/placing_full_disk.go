package objectstore

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// While the disk is full, room comes only from those who let go of objects: tasks that end, views that are closed, references that go. What
// waits for room waits for them, and what brings such an end nearer goes first: what gets and arguments need is read before anything is
// made, if need be into files outside the segment, which may use the part of a disk that spilling leaves free; so do results of tasks that
// hold arguments. The other creates wait, in order. A task that waits so gives its CPU to others, one task each Stall. When nothing was let
// go for Config.Patience, the head ends with an error, and so do those behind it until something is.

// runningArgsFactor is by how much longer is waited while tasks that go on hold arguments: they end some time.
const runningArgsFactor = 10

// maxArgHolders bounds the creates that are looked at for one that goes first.
const maxArgHolders = 256

// resetFullDisk ends a wait: the next one is another. After one that was too long those that come soon do not wait as long again.
func (rm *placing) resetFullDisk() {
	if p := int64(rm.cfg.Patience); rm.now < rm.progress.fullDisk.from+p || rm.now >= rm.progress.fullDisk.from+2*p {
		rm.progress.fullDisk.from, rm.progress.fullDisk.fileErr = 0, nil
	}
}

// bringsRelease tells whether serving a demand brings the end of a task or of a get nearer, which then lets go.
func (rm *placing) bringsRelease(d *demand) bool {
	return d.o != nil || !d.task.IsZero() && rm.args.holdsArgs(d.task)
}

func (ar *args) holdsArgs(t ids.TaskID) bool {
	for _, s := range ar.sets[t] {
		if s.answered {
			return true
		}
	}
	return false
}

// nextArgHolder is the first create of a task that holds arguments.
func (rm *placing) nextArgHolder() (found *demand) {
	n := 0
	for _, d := range rm.demands.queues[laneCreate].All() {
		if d.stage == stageWaiting && rm.bringsRelease(d) {
			return d
		}
		if n++; n == maxArgHolders {
			break
		}
	}
	return nil
}

// keepsWaiting tells whether a demand for which there is no room goes on waiting: while the disk is full, or others that go on hold what it waits for.
func (rm *placing) keepsWaiting(d *demand, why *errs.Error) bool {
	full := rm.progress.diskFull() || rm.creates.awaitCPU()
	busy := rm.args.tasksGoOn() || !full && rm.writersGoOn()
	if !full && (!busy || why.Code != errs.CodeStoreFull) {
		return false
	}
	if rm.objects.cold.n == 0 && rm.objects.second.n == 0 && rm.deadlocked(d) {
		return false
	}
	if rm.progress.fullDisk.from == 0 {
		rm.progress.fullDisk.from = rm.now
	}
	wait := int64(rm.cfg.Patience)
	if busy {
		wait *= runningArgsFactor
	}
	due := rm.progress.fullDisk.from + wait
	if rm.now < due {
		rm.wakeAt(due)
	} else if !rm.spilling.copying { // its end steps the core, and may bring room
		return false
	}
	if !full {
		rm.log("creates wait until running tasks let go of objects: all is pinned, and the disk budget is used up", why)
		return true
	}
	if err := rm.progress.fullError(); err != nil {
		rm.log("creates wait until others let go of objects: every spill directory is full", err)
	}
	rm.objects.askOwners()
	rm.yieldCPU()
	return true
}

// askOwners has the owners of what lies here let go of what they keep for nobody.
func (os *objects) askOwners() {
	f := &os.progress.fullDisk
	if f.asked != 0 && os.now < f.asked+int64(os.cfg.Stall) {
		return
	}
	f.asked = os.now
	jobs := make(map[ids.JobID]struct{})
	for id := range os.objs {
		jobs[id.Job()] = struct{}{}
	}
	for _, job := range sortedKeys(jobs) {
		os.emit(ToOwner{job, CreateWaits{}})
	}
}

// tasksGoOn tells whether a task that does not wait itself holds arguments.
func (ar *args) tasksGoOn() bool {
	for _, l := range ar.sets {
		for _, s := range l {
			if s.answered && !ar.taskWaits(s.req.Task) {
				return true
			}
		}
	}
	return false
}

// writersGoOn tells whether a task that does not wait itself is writing something.
func (rm *placing) writersGoOn() bool {
	for _, g := range rm.creates.grants {
		if !g.task.IsZero() && !rm.args.taskWaits(g.task) {
			return true
		}
	}
	return false
}

// yieldCPU tells the owner of a task whose create waits to let others run: they may let go of what it waits for.
func (rm *placing) yieldCPU() {
	due := max(rm.progress.fullDisk.from, rm.progress.fullDisk.yielded) + int64(rm.cfg.Stall)
	if rm.now < due {
		rm.wakeAt(due)
		return
	}
	for _, d := range rm.demands.queues[laneCreate].All() {
		if k := (lenderKey{d.task, d.client}); d.stage == stageWaiting && !d.task.IsZero() && rm.creates.lenders[k] == nil {
			rm.progress.fullDisk.yielded = rm.now
			rm.creates.lend(k, d.id.Job())
			rm.emit(ToOwner{d.id.Job(), CreateWaits{Task: d.task, Client: d.client}})
			rm.wakeAt(rm.now + int64(rm.cfg.Stall))
			return
		}
	}
}
