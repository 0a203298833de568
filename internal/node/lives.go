package node

import (
	"maps"
	"slices"
	"sync"

	"mobula/internal/ids"
	"mobula/remote"
)

// lives is what this node knows of the lives of other nodes: the last one of each of which it has heard, and up to which one they are over, by the verdicts of
// the control plane.
type lives struct {
	mu    sync.Mutex
	last  map[ids.Home]uint64 // guarded by mu
	ended map[ids.Home]uint64 // guarded by mu
}

func newLives() *lives {
	return &lives{last: make(map[ids.Home]uint64), ended: make(map[ids.Home]uint64)}
}

// heard notes that there is a life, or was.
func (l *lives) heard(x remote.Life) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[x.Home] = max(l.last[x.Home], x.Epoch)
}

// end notes that a life is over, and all before it.
func (l *lives) end(x remote.Life) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[x.Home] = max(l.ended[x.Home], x.Epoch)
}

// over tells whether a life is over.
func (l *lives) over(x remote.Life) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return x.Epoch <= l.ended[x.Home]
}

// dead tells whether a node's life is over, and no later one of it is known.
func (l *lives) dead(node ids.Home) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended[node] > 0 && l.last[node] <= l.ended[node]
}

// verdicts are, for each home of which any is over, its last life that is.
func (l *lives) verdicts() (out []remote.Life) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range slices.Sorted(maps.Keys(l.ended)) {
		out = append(out, remote.Life{Home: h, Epoch: l.ended[h]})
	}
	return out
}
