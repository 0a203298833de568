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

// drainState is how the wait for others to let go fares.
type drainState struct {
	from    int64 // since when there was no room and nothing was let go; 0: not so
	yielded int64 // when a task was last asked for its CPU
	fileAt  int64 // no file outside the segment is tried before: one could not be made
	fileErr error // why; nil: the last one was made
}

// busyFactor is by how much longer is waited while tasks that go on hold arguments: they end some time.
const busyFactor = 10

// holdersSeen bounds the creates that are looked at for one that goes first.
const holdersSeen = 256

// diskFull tells whether the last write to the disk, or the last file, had no room.
func (c *Core) diskFull() bool { return c.disk.err != nil || c.drain.fileErr != nil }

// letGo notes that something was let go, or has found room.
func (c *Core) letGo() { c.drain.from = 0 }

// nobodyWaits ends a wait: the next one is another. After one that was too long those that come soon do not wait as long again.
func (c *Core) nobodyWaits() {
	if p := int64(c.cfg.Patience); c.now < c.drain.from+p || c.now >= c.drain.from+2*p {
		c.drain.from, c.drain.fileErr = 0, nil
	}
}

// drains tells whether serving a demand brings the end of a task or of a get nearer, which then lets go.
func (c *Core) drains(d *demand) bool {
	return d.o != nil || !d.task.IsZero() && c.holdsArgs(d.task)
}

func (c *Core) holdsArgs(t ids.TaskID) bool {
	for _, s := range c.sets[t] {
		if s.answered {
			return true
		}
	}
	return false
}

// nextHolder is the first create of a task that holds arguments.
func (c *Core) nextHolder() (found *demand) {
	n := 0
	for _, d := range c.queues[laneCreate].All() {
		if d.stage == stageWaiting && c.drains(d) {
			return d
		}
		if n++; n == holdersSeen {
			break
		}
	}
	return nil
}

// patient tells whether a demand for which there is no room goes on waiting.
func (c *Core) patient(d *demand) bool {
	if !c.diskFull() || c.cold.n == 0 && c.second.n == 0 && c.hopeless(d) {
		return false
	}
	if c.drain.from == 0 {
		c.drain.from = c.now
	}
	wait := int64(c.cfg.Patience)
	if c.tasksGoOn() {
		wait *= busyFactor
	}
	due := c.drain.from + wait
	if c.now >= due {
		return false
	}
	c.wakeAt(due)
	c.log("creates wait until others let go of objects: every spill directory is full", c.fullError())
	c.yieldCPU()
	return true
}

func (c *Core) fullError() error {
	if c.disk.err != nil {
		return c.disk.err
	}
	return c.drain.fileErr
}

// tasksGoOn tells whether a task that does not wait itself holds arguments.
func (c *Core) tasksGoOn() bool {
	for _, l := range c.sets {
		for _, s := range l {
			if s.answered && !c.taskWaits(s.req.Task) {
				return true
			}
		}
	}
	return false
}

// yieldCPU tells the owner of a task whose create waits to let others run: they may let go of what it waits for.
func (c *Core) yieldCPU() {
	due := max(c.drain.from, c.drain.yielded) + int64(c.cfg.Stall)
	if c.now < due {
		c.wakeAt(due)
		return
	}
	for _, d := range c.queues[laneCreate].All() {
		if d.stage == stageWaiting && !d.yielded && !d.task.IsZero() {
			d.yielded, c.drain.yielded = true, c.now
			c.emit(ToOwner{d.id.Job(), CreateWaits{Task: d.task}})
			c.wakeAt(c.now + int64(c.cfg.Stall))
			return
		}
	}
}

// noFile notes that no file outside the segment could be made for a demand, and has it wait, or ends it.
func (c *Core) noFile(d *demand, err error) {
	c.log("no fallback file could be made", err)
	c.drain.fileErr, c.drain.fileAt = err, c.after(c.cfg.RetrySpill)
	if c.patient(d) {
		d.stage = stageWaiting
		c.queues[d.lane].PushFront(d)
		c.wakeAt(c.drain.fileAt)
		return
	}
	c.giveUp(d, c.noFileError(d))
}

func (c *Core) noFileError(d *demand) *errs.Error {
	return errs.New(errs.CodeOutOfDisk, "no file outside the store can be made: %v: %s", c.drain.fileErr, c.figures(d.need))
}
