package cluster

import "slices"

// spread gives the free nodes one after the other, in the order of their ids, from behind the one that was chosen last. Ray has each raylet begin with the
// first node and keeps a place in the list: here it is a node's id, so that a node which comes or goes moves nobody's turn.
// What is placed are leases: the owner shares out a queue of short tasks among the nodes that it is told of (sched.Awaited), in place of a turn for each task.
func spread(v *View, free set) []int32 {
	i := slices.IndexFunc(free, func(at int32) bool { return v.Nodes[at].ID > v.Last })
	if i <= 0 {
		return free
	}
	return append(slices.Clone(free[i:]), free[:i]...)
}
