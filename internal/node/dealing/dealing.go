package node

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"mobula/internal/ids"
)

// dealings is what this node must not forget of jobs of other homes: with which of them each of its own jobs has to do, by what their owners have said to each
// other since the node has started. They are told when the job ends, and it is told when they are gone.
type dealings struct {
	mu   sync.Mutex
	with map[ids.JobID]map[ids.JobID]struct{} // guarded by mu: by job of this node
}

// dealing is two jobs of which one is of this node.
type dealing struct{ own, far ids.JobID }

func newDealings() *dealings { return &dealings{with: make(map[ids.JobID]map[ids.JobID]struct{})} }

// note notes that two jobs have to do with each other.
func (d *dealings) note(x dealing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.with[x.own] == nil {
		d.with[x.own] = make(map[ids.JobID]struct{})
	}
	d.with[x.own][x.far] = struct{}{}
}

// forget notes that two jobs have nothing to do with each other any more: one of them is over.
func (d *dealings) forget(x dealing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if delete(d.with[x.own], x.far); len(d.with[x.own]) == 0 {
		delete(d.with, x.own)
	}
}

// of gives the jobs that one of this node has to do with, in order.
func (d *dealings) of(job ids.JobID) []ids.JobID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.with[job]))
}

// take is of, and forgets them: the job is over.
func (d *dealings) take(job ids.JobID) []ids.JobID {
	d.mu.Lock()
	defer d.mu.Unlock()
	far := slices.Sorted(maps.Keys(d.with[job]))
	delete(d.with, job)
	return far
}

// withHome gives what there is with jobs of another node, in order.
func (d *dealings) withHome(node ids.Home) (out []dealing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for own, all := range d.with {
		for far := range all {
			if far.Home() == node {
				out = append(out, dealing{own, far})
			}
		}
	}
	slices.SortFunc(out, func(a, b dealing) int { return cmp.Or(cmp.Compare(a.own, b.own), cmp.Compare(a.far, b.far)) })
	return out
}
