package cluster

import "mobula/internal/ids"

// Audience is whom a node's reports are told. In a small cluster that is all others. In a large one it is those that choose nodes themselves; and whoever
// does not know yet whether this node does, so that it knows whom to tell. Else reports would cost the square of the number of nodes.
type Audience struct {
	chooses map[ids.Home]bool // what nodes have said last
	told    map[ids.Home]bool // and what they were told
	to      []ids.Home
}

// small is up to how many others all are told.
const small = 64

// NewAudience has heard of nobody.
func NewAudience() *Audience {
	return &Audience{chooses: make(map[ids.Home]bool), told: make(map[ids.Home]bool)}
}

// Heard takes a node's report, and tells whether the node begins to choose: then it is to be told soon.
func (a *Audience) Heard(n *Node) (begins bool) {
	begins = n.Chooses && !a.chooses[n.ID]
	a.chooses[n.ID] = n.Chooses
	return begins
}

// Gone forgets a node whose life has ended.
func (a *Audience) Gone(id ids.Home) {
	delete(a.chooses, id)
	delete(a.told, id)
}

// Of gives which of the others are to be told a report of this node. It is valid until the next call.
func (a *Audience) Of(n *Node, others []ids.Home) []ids.Home {
	if len(others) <= small {
		return others
	}
	a.to = a.to[:0]
	for _, id := range others {
		if told, ever := a.told[id]; a.chooses[id] || !ever || told != n.Chooses {
			a.to = append(a.to, id)
		}
	}
	return a.to
}

// Told notes who was told a report.
func (a *Audience) Told(n *Node, to []ids.Home) {
	for _, id := range to {
		a.told[id] = n.Chooses
	}
}
