package owner

// Records of tasks are used again: most tasks are plain, and a record each would be most of what
// the garbage collector has to do.

const keepTasks = 1 << 14 // records kept, 3.7 MB

// newTaskRecord gives an empty record.
func (ts *tasks) newTaskRecord() *taskRec {
	n := len(ts.tasksFree)
	if n == 0 {
		return new(taskRec)
	}
	t := ts.tasksFree[n-1]
	ts.tasksFree[n-1] = nil
	ts.tasksFree = ts.tasksFree[:n-1]
	return t
}

// refillFreeList takes back the records that the step before has reaped, whose effects have run: those
// that nothing else can point at. A wait for an object may, but knows by gen that it is stale.
func (ts *tasks) refillFreeList() {
	for i, t := range ts.reaped {
		ts.reaped[i] = nil
		if len(ts.tasksFree) < keepTasks && t.recyclable() {
			gen := t.gen
			*t = taskRec{}
			t.gen = gen
			ts.tasksFree = append(ts.tasksFree, t)
		}
	}
	ts.reaped = ts.reaped[:0]
}

// recyclable tells that a reaped task is in none of the lists that outlive it: timers and groups (x), a
// lane, a queue, the objects to be recounted and the cold ones, a fetch of its spec.
func (t *taskRec) recyclable() bool {
	return t.x == nil && t.lease == nil && t.in == nil && t.flags&taskFetching == 0 && !t.isCreation() &&
		t.ret0.flags&(objRecount|objCold) == 0 && t.ret0.waits == nil
}
