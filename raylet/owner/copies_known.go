package owner

import (
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/cluster"
)

// A job must stay open on a node as long as the store there has an object of it, or may have: whoever chooses nodes is told of which nodes that is so.

// count notes that one object more, or fewer, is known to the nodes of a set.
func (cp *copies) count(set *copySet, n int) {
	for _, nodes := range [][]ids.Home{set.on, set.told} {
		for _, node := range nodes {
			if node == cp.home() {
				continue
			}
			if was := cp.known[node]; was == 0 || was+n == 0 {
				cp.changed = append(cp.changed, node)
			}
			if cp.known[node] += n; cp.known[node] == 0 {
				delete(cp.known, node)
			}
		}
	}
}

// change has a set changed, and counts it anew.
func (cp *copies) change(set *copySet, how func()) {
	cp.count(set, -1)
	how()
	cp.count(set, 1)
}

// flushKnown tells who chooses nodes what has changed.
func (cp *copies) flushKnown() {
	if len(cp.changed) == 0 {
		return
	}
	slices.Sort(cp.changed)
	for _, node := range slices.Compact(cp.changed) {
		if knows := cp.known[node] > 0; knows != cp.told[node] {
			cp.tell(node, knows)
		}
	}
	cp.changed = cp.changed[:0]
}

func (cp *copies) tell(node ids.Home, knows bool) {
	if knows {
		cp.told[node] = true
	} else {
		delete(cp.told, node)
		delete(cp.opened, node) // it is closed there in a while
	}
	cp.toCluster(cluster.Holds{Job: cp.cfg.Job, Node: node, Objects: knows})
}

// expect asks for the job to be open on a node whose store is to be told of an object. Who chooses nodes may not know the node yet, and then forgets that: so the
// node does not count as told before the answer (isOpen).
func (cp *copies) expect(node ids.Home) {
	cp.expected[node] = true
	cp.toCluster(cluster.Holds{Job: cp.cfg.Job, Node: node, Objects: true}) // it may have been told before: it answers each time
}

// isOpen notes the answer. If nothing is to be there any more, that is told when the step ends.
func (cp *copies) isOpen(node ids.Home) {
	delete(cp.expected, node)
	cp.opened[node], cp.told[node] = true, true
	cp.changed = append(cp.changed, node)
}

// tellKnown tells all of it again.
func (cp *copies) tellKnown() {
	for _, node := range slices.Sorted(maps.Keys(cp.expected)) {
		cp.expect(node)
	}
	for _, node := range slices.Sorted(maps.Keys(cp.told)) {
		cp.tell(node, true)
	}
}
