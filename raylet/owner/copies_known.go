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

// expect counts a node among those that know of an object, before its store is told: so the job is opened there.
func (cp *copies) expect(o *objRec, node ids.Home) {
	cp.knows(o, node)
	cp.tell(node, true) // it may have been told before: it answers each time
}

// tellKnown tells all of it again.
func (cp *copies) tellKnown() {
	for _, node := range slices.Sorted(maps.Keys(cp.told)) {
		cp.tell(node, true)
	}
}
