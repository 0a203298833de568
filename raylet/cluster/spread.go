package cluster

import "mobula/internal/ids"

// spread takes the free nodes one after the other, in the order of their ids, from behind the one that was chosen last. Ray has each raylet begin with the
// first node and keeps a place in the list: here it is a node's id, so that a node which comes or goes moves nobody's turn.
func spread(v *View, free set) ids.Home {
	for _, at := range free {
		if id := v.Nodes[at].ID; id > v.Last {
			return id
		}
	}
	return v.Nodes[free[0]].ID
}
