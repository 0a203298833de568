package gcs

import "time"

const (
	// aliveAfter is how long a feed says nothing until it says that it lives: longer than between two rows of heartbeats, which come each GatherEvery, though not to
	// the moment.
	aliveAfter = GatherEvery * 3 / 2
	// staleAfter is how long the tables may show no change until the feed says nothing: its server may be cut off from them.
	staleAfter = 15 * time.Second
)

// Alive has a feed say that it lives when it has told nothing for a while.
type Alive struct{ said, changed int64 }

// NewAlive is of a feed that begins.
func NewAlive(now int64) *Alive { return &Alive{said: now, changed: now} }

// Said notes that the feed has told something.
func (a *Alive) Said(now int64) { a.said = now }

// Changed notes that the tables have shown a change.
func (a *Alive) Changed(now int64) { a.changed = now }

// Due tells whether the feed is to say now that it lives, and after which time it is to look again if it tells nothing until then.
func (a *Alive) Due(now int64) (say bool, wait time.Duration) {
	if left := time.Duration(a.said-now) + aliveAfter; left > 0 {
		return false, left
	}
	a.said = now
	return now-a.changed < int64(staleAfter), aliveAfter
}
