package owner

// Records of tasks are used again: most tasks are plain, and a record each would be most of what
// the garbage collector has to do.

const keepTasks = 1 << 14 // records kept, 3.7 MB

// taskRecord gives an empty record.
func (c *Core) taskRecord() *taskRec {
	n := len(c.tasksFree)
	if n == 0 {
		return new(taskRec)
	}
	t := c.tasksFree[n-1]
	c.tasksFree[n-1] = nil
	c.tasksFree = c.tasksFree[:n-1]
	return t
}

// recycleTasks takes back the records that the step before has reaped, whose effects have run: those
// that nothing else can point at. A wait for an object may, but knows by gen that it is stale.
func (c *Core) recycleTasks() {
	for i, t := range c.reaped {
		c.reaped[i] = nil
		if len(c.tasksFree) < keepTasks && t.plain() {
			gen := t.gen
			*t = taskRec{}
			t.gen = gen
			c.tasksFree = append(c.tasksFree, t)
		}
	}
	c.reaped = c.reaped[:0]
}

// plain tells that a reaped task is in none of the lists that outlive it: timers and groups (x), a
// lane, a queue, the loose and the cold objects, a fetch of its spec.
func (t *taskRec) plain() bool {
	return t.x == nil && t.lease == nil && t.in == nil && t.flags&taskFetching == 0 && !t.isCreation() &&
		t.ret0.flags&(objLoose|objCold) == 0 && t.ret0.waits == nil
}
