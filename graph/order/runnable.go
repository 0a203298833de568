package order

import "slices"

// branch is a path that is being followed.
type branch struct {
	way
	forks int // how often it has forked, minus joins
}

// runReady looks at tasks that became ready beside the critical path. To run all of them at once would traverse
// the graph breadth first; to leave them until they are needed would hold results that could have been reduced. So
// each ready task is followed forward, as long as nothing else is needed. If that leads to a leaf, all of it is
// run. If it leads to a reducer, a task that needs others too, the way there is remembered, and run when the
// remembered ways are all that the reducer lacks.
func (w *walker) runReady() {
	var tasks []int32
	for len(w.ready) > 0 {
		tasks, w.ready = w.ready, tasks[:0]
		for i := len(tasks) - 1; i >= 0; i-- {
			switch v := tasks[i]; {
			case w.isPlaced(v) || w.ways.inner[v]:
			case w.g.users.count(v) == 0:
				w.place(v)
			default:
				w.follow(v)
			}
		}
	}
}

// follow goes forward from v along all branches, in the order in which they are found.
func (w *walker) follow(v int32) {
	branches := []branch{{way: w.ways.begin(v)}}
	for len(branches) > 0 {
		b := branches[0]
		branches = branches[1:]
		branches = w.followOne(b, branches)
	}
}

// followOne goes forward to a leaf, a fork or a reducer. It returns branches with the newly found ones added.
func (w *walker) followOne(b branch, branches []branch) []branch {
	a := &w.ways
	for {
		v := a.end(b.way)
		a.inner[v] = true
		users := w.g.users.of(v)
		through := a.short(b.way) || w.g.deps.count(v) == 1
		switch {
		case len(users) == 0:
			if w.need[v] <= 1 {
				w.placeWay(b.way)
			} else {
				a.inner[v] = false
			}
			return branches
		case through && len(users) == 1:
			b.way = a.extend(b.way, users[0])
		case through:
			return w.fork(b, users, branches)
		default:
			a.inner[v] = false
			return w.meet(b, v, branches)
		}
	}
}

// fork adds a branch for each user that needs nothing else. The same tasks lie below all of them, so they are
// ordered by name.
func (w *walker) fork(b branch, users []int32, branches []branch) []branch {
	for _, u := range users {
		if w.g.deps.count(u) == 1 {
			branches = append(branches, branch{w.ways.extend(b.way, u), b.forks + 1})
		}
	}
	return branches
}

// meet adds a way to a reducer. Once there are as many as the reducer lacks, they are run; but if they began with
// more than one fork they are joined, and followed from the reducer on.
func (w *walker) meet(b branch, v int32, branches []branch) []branch {
	a := &w.ways
	ways, known := a.ways[v]
	if !known {
		if w.need[v] <= 1 {
			w.placeWay(b.way)
		} else {
			a.ways[v] = []way{b.way}
		}
		return branches
	}
	ways = append(ways, b.way)
	if len(ways) >= int(w.need[v]) {
		ways = slices.DeleteFunc(ways, func(x way) bool { return w.isPlaced(a.gate(x)) })
	}
	if len(ways) < int(w.need[v]) {
		a.ways[v] = ways
		return branches
	}
	delete(a.ways, v)
	if len(ways) > 0 && b.forks > 1 {
		return append(branches, branch{a.join(ways), b.forks - 1})
	}
	w.placeWays(ways)
	return branches
}

// placeWays runs ways in turn as far as they go, until all are done or no way gets further.
func (w *walker) placeWays(ways []way) {
	for stuck := 0; stuck < len(ways); {
		x, todo := ways[0], w.todo
		ways = ways[1:]
		done := w.placeWay(x)
		if !done {
			ways = append(ways, x)
		}
		if stuck++; done || w.todo < todo {
			stuck = 0
		}
	}
}

// placeWay runs a way as far as it goes, and tells whether it reached the end.
func (w *walker) placeWay(x way) bool {
	w.chain = w.chain[:0]
	for s := x.last; s >= 0; s = w.ways.steps[s].before {
		v := w.ways.steps[s].task
		if w.isPlaced(v) && !x.joined {
			break // and so are all before it
		}
		w.chain = append(w.chain, v)
	}
	for _, v := range slices.Backward(w.chain) {
		if w.need[v] > 0 {
			return false
		}
		w.place(v)
	}
	return true
}
