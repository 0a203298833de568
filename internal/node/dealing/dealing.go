package dealing

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"mobula/internal/ids"
)

// Table is the pairs of jobs that there are.
type Table struct {
	mu   sync.Mutex
	with map[ids.JobID]map[ids.JobID]struct{} // guarded by mu: by job of this node
}

// Pair is a job of this node and one of another home.
type Pair struct{ Own, Far ids.JobID }

// New makes an empty table.
func New() *Table { return &Table{with: make(map[ids.JobID]map[ids.JobID]struct{})} }

// Note notes that two jobs have to do with each other.
func (t *Table) Note(x Pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.with[x.Own] == nil {
		t.with[x.Own] = make(map[ids.JobID]struct{})
	}
	t.with[x.Own][x.Far] = struct{}{}
}

// Forget notes that two jobs have nothing to do with each other any more: one of them is over.
func (t *Table) Forget(x Pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.with[x.Own], x.Far); len(t.with[x.Own]) == 0 {
		delete(t.with, x.Own)
	}
}

// Of gives the jobs that one of this node has to do with, in order.
func (t *Table) Of(job ids.JobID) []ids.JobID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.with[job]))
}

// Take is Of, and forgets them: the job is over.
func (t *Table) Take(job ids.JobID) []ids.JobID {
	t.mu.Lock()
	defer t.mu.Unlock()
	far := slices.Sorted(maps.Keys(t.with[job]))
	delete(t.with, job)
	return far
}

// WithHome gives what there is with jobs of another node, in order.
func (t *Table) WithHome(node ids.Home) (out []Pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for own, all := range t.with {
		for far := range all {
			if far.Home() == node {
				out = append(out, Pair{own, far})
			}
		}
	}
	slices.SortFunc(out, func(a, b Pair) int { return cmp.Or(cmp.Compare(a.Own, b.Own), cmp.Compare(a.Far, b.Far)) })
	return out
}
