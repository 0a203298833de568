package order

// wayTable remembers ways: paths forward from a ready task to their end, a task that also needs others. Ways wait
// until enough of them lead to the same end, or until the critical path reaches that end.
//
// Ways that fork share the steps before the fork: each step knows its predecessor.
type wayTable struct {
	steps []step
	ways  map[int32][]way // by their end
	inner []bool          // the task lies on a way that was followed, and is not its end
}

type step struct{ task, before int32 } // before: index in steps; -1: it is the first

// way is identified by its last step.
type way struct {
	last   int32
	joined bool // made of several ways: a task need not depend on the one before it
}

func newWayTable(n int32) wayTable {
	return wayTable{ways: make(map[int32][]way), inner: make([]bool, n)}
}

func (a *wayTable) knows(end int32) bool {
	_, ok := a.ways[end]
	return ok
}

// forget removes the ways to an end and returns them.
func (a *wayTable) forget(end int32) []way {
	ways := a.ways[end]
	delete(a.ways, end)
	return ways
}

// begin starts a way. If no way is remembered, it discards the steps of earlier ones.
func (a *wayTable) begin(v int32) way {
	if len(a.ways) == 0 {
		a.steps = a.steps[:0]
	}
	return a.extend(way{last: -1}, v)
}

// extend gives a way that goes one step further than w.
func (a *wayTable) extend(w way, v int32) way {
	a.steps = append(a.steps, step{v, w.last})
	return way{int32(len(a.steps) - 1), w.joined}
}

func (a *wayTable) end(w way) int32 { return a.steps[w.last].task }

// short tells whether the way has only one task.
func (a *wayTable) short(w way) bool { return a.steps[w.last].before < 0 }

// gate is the task before the end of the way.
func (a *wayTable) gate(w way) int32 { return a.steps[a.steps[w.last].before].task }

// join puts ways one after another.
func (a *wayTable) join(ways []way) way {
	out := ways[0]
	var tasks []int32
	for _, w := range ways[1:] {
		tasks = a.appendBack(tasks[:0], w)
		for i := len(tasks) - 1; i >= 0; i-- {
			out = a.extend(out, tasks[i])
		}
		out.joined = true
	}
	return out
}

// appendBack appends the tasks of a way, the end first.
func (a *wayTable) appendBack(to []int32, w way) []int32 {
	for s := w.last; s >= 0; s = a.steps[s].before {
		to = append(to, a.steps[s].task)
	}
	return to
}
