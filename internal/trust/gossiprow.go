package trust

import "time"

// GossipRow says which keys the gossip has. A key is known by its generation: it follows from the cluster's secret and that number, so no row has it.
//
// A rotation takes three stages. The next key is given to all nodes, which read with it; when all have it they encrypt with it; when all do, the key before
// goes. So at each moment every node can read what every other one writes.
type GossipRow struct {
	Uses   uint64    `json:"uses"`           // the generation that encrypts
	Also   uint64    `json:"also,omitempty"` // another one that is read; 0: none
	Wanted uint64    `json:"wanted"`         // the generation that is to encrypt alone in the end
	Stage  uint64    `json:"stage"`          // counts changes of Uses and Also
	Since  time.Time `json:"since"`          // when Uses began to encrypt; zero: with the cluster
}

// FirstGossip is the row of a cluster that has rotated no key.
func FirstGossip() GossipRow { return GossipRow{Uses: 1, Wanted: 1} }

// Keys are the generations of the keys that nodes have: the first one encrypts.
func (r GossipRow) Keys() []uint64 {
	if r.Also == 0 {
		return []uint64{r.Uses}
	}
	return []uint64{r.Uses, r.Also}
}

// Rotating tells whether a rotation is under way.
func (r GossipRow) Rotating() bool { return r.Also != 0 || r.Wanted > r.Uses }

// Rotated wants a key that nobody has been given yet. During a rotation that is one more, unless such a one is to come already.
func (r GossipRow) Rotated() GossipRow {
	if given := max(r.Uses, r.Also); r.Wanted <= given {
		r.Wanted = given + 1
	}
	return r
}

// Next is the next stage of a rotation. all tells that every node has the keys of this one.
func (r GossipRow) Next(now time.Time, all bool) GossipRow {
	switch {
	case r.Also == 0 && r.Wanted > r.Uses:
		r.Also = r.Wanted
	case r.Also == 0 || !all:
		return r
	case r.Also > r.Uses:
		r.Uses, r.Also, r.Since = r.Also, r.Uses, now
	default:
		r.Also = 0
	}
	r.Stage++
	return r
}
