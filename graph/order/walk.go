package order

// walker gives the tasks their places, one after another. It makes a path from a leaf down to a ready task, always
// through the heaviest dependency, and walks it back up. Other tasks that the path needs are put on it in front of
// those that need them. Tasks that become ready beside the path wait in ready, and are looked at when the walk has
// turned aside or the path is done.
type walker struct {
	g       *dag
	rank    *ranking
	targets *targets

	prio   []int32 // None: not placed
	need   []int32 // number of unplaced dependencies
	begun  []bool  // the task has a placed dependency, and is not placed
	placed int32   // the next priority
	runs   int32   // number of tasks, without results from outside
	todo   int     // tasks that are still to be walked

	path  []int32 // the critical path, its next task at the end
	ready []int32 // tasks that lack nothing but were not placed at once
	ways  wayTable
	some  []int32 // scratch
	chain []int32 // scratch
	stack []int32 // scratch
}

func newWalker(d *dag, rk *ranking, t *targets) *walker {
	n := d.len()
	w := &walker{
		g: d, rank: rk, targets: t,
		prio:  make([]int32, n),
		need:  make([]int32, n),
		begun: make([]bool, n),
		ways:  newWayTable(n),
	}
	for v := range n {
		w.prio[v] = None
		if d.kind[v] != Outside {
			w.runs++
		}
		if d.walked(v) {
			w.todo++
			w.need[v] = d.deps.count(v)
		}
	}
	return w
}

func (w *walker) isPlaced(v int32) bool { return w.prio[v] != None }

func (w *walker) run() {
	for w.todo > 0 {
		w.findPath(w.targets.next())
		w.walkPath()
	}
}

// findPath puts a path on the stack that ends with a ready task. Beside each task of it are the other tasks that
// the one above needs.
func (w *walker) findPath(target int32) {
	w.path = append(w.path, target)
	for next := w.g.deps.of(target); len(next) > 0; {
		v := w.rank.last(next)
		w.path = append(w.path, v)
		next = w.lacking(v)
		w.path = append(w.path, next...)
	}
}

// lacking gives the unplaced dependencies of v. The slice is valid until the next call.
func (w *walker) lacking(v int32) []int32 {
	w.some = w.some[:0]
	for _, dep := range w.g.deps.of(v) {
		if !w.isPlaced(dep) {
			w.some = append(w.some, dep)
		}
	}
	return w.some
}

func (w *walker) walkPath() {
	turned := false
	for len(w.path) > 0 {
		v := w.path[len(w.path)-1]
		if w.isPlaced(v) {
			w.path = w.path[:len(w.path)-1]
			continue
		}
		if w.need[v] > 0 {
			if w.turnAside(v) > 1 {
				turned = true
			}
			continue
		}
		w.path = w.path[:len(w.path)-1]
		if turned && len(w.ready) < len(w.path) {
			w.runReady()
		}
		w.place(v)
	}
	w.runReady()
}

// turnAside puts the tasks that v lacks on the path, and above them the remembered ways that lead to some of them.
// It returns how many have no such way.
func (w *walker) turnAside(v int32) (unknown int) {
	lacking := w.lacking(v)
	w.rank.sort(lacking)
	var known []int32
	for _, dep := range lacking {
		if w.ways.knows(dep) {
			known = append(known, dep)
		} else {
			w.path = append(w.path, dep)
			unknown++
		}
	}
	for _, dep := range known {
		for _, way := range w.ways.forget(dep) {
			w.path = w.ways.appendBack(w.path, way)
		}
	}
	return unknown
}

// place gives v the next priority, and goes on with dependents of v while there is nothing to decide.
func (w *walker) place(v int32) {
	for v >= 0 && !w.isPlaced(v) {
		if w.begun[v] {
			w.begun[v] = false
			w.targets.begun--
		}
		w.placeData(v)
		w.todo--
		users := w.g.users.of(v)
		switch root, leaf := w.g.deps.count(v) == 0, len(users) == 0; {
		case root && !leaf:
			w.targets.load(v)
		case leaf && !root:
			w.targets.finish(v)
		}
		v = w.free(users)
	}
}

// free notes that one more dependency of each of the users is placed. It returns the user that follows at once, or
// -1.
func (w *walker) free(users []int32) int32 {
	for _, u := range users {
		w.need[u]--
		if !w.begun[u] {
			w.begun[u] = true
			w.targets.begin(u, w.g.users.count(u) == 0)
		}
		if w.need[u] > 0 {
			continue
		}
		if len(users) == 1 {
			return u
		}
		w.ready = append(w.ready, u)
	}
	return -1
}

// placeData gives v the next priority, after the data that v is the first to take.
func (w *walker) placeData(v int32) {
	w.stack = append(w.stack[:0], v)
	for len(w.stack) > 0 {
		v := w.stack[len(w.stack)-1]
		if w.isPlaced(v) {
			w.stack = w.stack[:len(w.stack)-1]
			continue
		}
		if w.pushData(v) {
			continue
		}
		w.stack = w.stack[:len(w.stack)-1]
		w.prio[v] = w.placed
		if w.g.kind[v] != Outside {
			w.placed++
		}
	}
}

// pushData puts the data that v takes and that has no place yet on the stack.
func (w *walker) pushData(v int32) (some bool) {
	if w.g.all == nil {
		return false
	}
	deps := w.g.all.of(v)
	for i := len(deps) - 1; i >= 0; i-- {
		if dep := deps[i]; w.g.aside[dep] && !w.isPlaced(dep) {
			w.stack = append(w.stack, dep)
			some = true
		}
	}
	return some
}
