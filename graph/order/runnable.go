package order

import "slices"

// branch is a way that is being followed.
type branch struct {
	way
	forks int // how often it has forked, joins taken off
}

// runReady looks at what has become ready beside the critical path. To run all of it at once would
// go through the graph in its breadth; to leave it until it is needed would keep what could have been
// reduced. So each ready task is followed forward, as far as nothing but it is needed: to
// a leaf, and then all is run, or to a task that needs more, a reducer. The way there is
// remembered, and run when those that are known are all that the reducer lacks.
func (w *walker) runReady() {
	var tasks []int32
	for len(w.ready) > 0 {
		tasks, w.ready = w.ready, tasks[:0]
		for i := len(tasks) - 1; i >= 0; i-- {
			switch v := tasks[i]; {
			case w.isPlaced(v) || w.ahead.inner[v]:
			case w.g.users.count(v) == 0:
				w.place(v)
			default:
				w.follow(v)
			}
		}
	}
}

// follow goes forward from v, along all branches, those first that were found first.
func (w *walker) follow(v int32) {
	branches := []branch{{way: w.ahead.begin(v)}}
	for len(branches) > 0 {
		b := branches[0]
		branches = branches[1:]
		branches = w.followOne(b, branches)
	}
}

// followOne goes forward to a leaf, a fork or a reducer, and gives the branches that are left with
// those that it has found.
func (w *walker) followOne(b branch, branches []branch) []branch {
	a := &w.ahead
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

// fork adds a branch for each user that needs nothing else. What lies below them is the same: they go by
// name.
func (w *walker) fork(b branch, users []int32, branches []branch) []branch {
	for _, u := range users {
		if w.g.deps.count(u) == 1 {
			branches = append(branches, branch{w.ahead.extend(b.way, u), b.forks + 1})
		}
	}
	return branches
}

// meet brings a way to a reducer. When there are as many as the reducer lacks, they are run; those that
// began with more than one fork are joined instead, and followed from the reducer on.
func (w *walker) meet(b branch, v int32, branches []branch) []branch {
	a := &w.ahead
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

// placeWays runs ways as far as they go, in turn, until all are done or none gets further.
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

// placeWay runs a way as far as it goes, and says if that was to its end.
func (w *walker) placeWay(x way) bool {
	w.chain = w.chain[:0]
	for s := x.last; s >= 0; s = w.ahead.steps[s].before {
		v := w.ahead.steps[s].task
		if w.isPlaced(v) && !x.joined {
			break // and so is all before it
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
