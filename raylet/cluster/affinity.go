package cluster

import "mobula/internal/ids"

// allows tells whether a node may be chosen at all.
func (st Strategy) allows(id ids.Home) bool { return st.Kind != Affinity || st.Soft || st.Node == id }

// named narrows the free nodes to the one that a strategy names, as long as that is able: it is waited for, by a soft strategy too. Another will do for a
// soft one where the node is gone or can never run the shape. So it is in Ray, where it waits on that node, and here where it is.
func named(v *View, free set, s *Shape) set {
	if s.Strategy.Kind != Affinity {
		return free
	}
	i, known := v.find(s.Strategy.Node)
	switch {
	case !known || !v.Nodes[i].able(s):
		return free
	case free.has(v, s.Strategy.Node):
		return set{int32(i)}
	}
	return nil
}
