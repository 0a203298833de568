package order

import "slices"

// trim sets aside nodes that do not run and would only hide the graph's shape: lists of results at its end, and
// values at its beginning that several tasks take. A value that only one task takes, or a list of one result, just
// makes a chain longer, and stays.
//
// Removing a list uncovers new ends, which are looked at only in the next round; values are looked at in every
// round.
func (d *dag) trim() {
	if !slices.Contains(d.kind, Plain) && !slices.Contains(d.kind, Outside) {
		return
	}
	n := d.len()
	t := trimmer{d: d, deps: make([]int32, n), users: make([]int32, n)}
	d.aside = make([]bool, n)
	var ends, starts []int32
	for v := range n {
		t.deps[v], t.users[v] = d.deps.count(v), d.users.count(v)
		if t.users[v] == 0 {
			ends = append(ends, v)
		}
		if t.deps[v] == 0 {
			starts = append(starts, v)
		}
	}
	for {
		before := len(d.lists)
		ends = t.removeLists(ends)
		starts = t.removeData(starts)
		if len(d.lists) == before {
			break
		}
	}
	if len(d.lists)+len(d.data) == 0 {
		d.aside = nil
		return
	}
	all := d.deps
	d.all = &all
	d.deps = d.remaining(&d.deps)
	d.users = d.remaining(&d.users)
}

type trimmer struct {
	d           *dag
	deps, users []int32 // how many of each are left
}

// removeLists removes the lists among the ends and returns the new ends.
func (t *trimmer) removeLists(ends []int32) (next []int32) {
	for _, v := range ends {
		if t.d.kind[v] == Run || t.deps[v] <= 1 {
			continue
		}
		t.d.aside[v] = true
		t.d.lists = append(t.d.lists, v)
		for _, dep := range t.d.deps.of(v) {
			if t.users[dep]--; t.users[dep] == 0 && !t.d.aside[dep] {
				next = append(next, dep)
			}
		}
	}
	slices.Sort(next)
	return next
}

// removeData removes those of the starts that several tasks take and returns the new starts.
func (t *trimmer) removeData(starts []int32) (next []int32) {
	for _, v := range starts {
		if t.d.kind[v] == Run || t.users[v] <= 1 {
			continue
		}
		t.d.aside[v] = true
		t.d.data = append(t.d.data, v)
		for _, u := range t.d.users.of(v) {
			if t.deps[u]--; t.deps[u] == 0 && !t.d.aside[u] {
				next = append(next, u)
			}
		}
	}
	return next
}

// remaining gives the edges between tasks that are still there.
func (d *dag) remaining(e *edges) edges {
	out := edges{off: make([]int32, len(e.off))}
	for v := range d.len() {
		if !d.aside[v] {
			for _, w := range e.of(v) {
				if !d.aside[w] {
					out.to = append(out.to, w)
				}
			}
		}
		out.off[v+1] = int32(len(out.to))
	}
	return out
}
