package world

import (
	"maps"
	"slices"

	"mobula/gcs"
)

// checkEnd fails where something is left of programs that have ended.
func (w *World) checkEnd() {
	for _, n := range w.nodes {
		if n.gone {
			continue
		}
		if !n.up {
			w.fail("node %v did not come up again", n.home)
		}
		n.checkEnd()
		n.checkOthers()
	}
	for key, r := range w.tables.rows[gcs.Actors] {
		a := r.record.(gcs.ActorRecord)
		if w.node(a.Job.Home()).gone {
			continue // the actor of a node that never comes back keeps its name
		}
		w.fail("the name %s is left in the tables: %+v", key, a)
	}
	for _, p := range w.processes {
		if !p.dead {
			w.fail("process %s, a worker: %v, lives on", p.name, p.worker != 0)
		}
	}
}

// checkOthers fails where something is left of what a node had with others.
func (n *Node) checkOthers() {
	if t := n.transfer; len(n.links.agents)+len(t.fetches)+len(t.served)+len(t.expects) > 0 {
		n.w.fail("left of node %v: jobs of others %v, %d imports, %d exports", n.home, n.links.hosted(), len(t.fetches), len(t.served))
	}
	for _, home := range n.sortedPeers() {
		if p := n.peers[home]; !p.to.gone && p.core.Waiting() > 0 {
			n.w.fail("node %v: %d messages wait for node %v", n.home, p.core.Waiting(), home)
		}
	}
}

func (n *Node) checkEnd() {
	w := n.w
	if len(n.owners)+len(n.sessions)+len(n.disk.jobs)+len(n.jobs.open)+len(n.jobs.started) > 0 {
		w.fail("left of node %v: owners %v, sessions %v, jobs on disk %v, asks %v, jobs of the raylet %v", n.home,
			slices.Sorted(maps.Keys(n.owners)), slices.Sorted(maps.Keys(n.sessions)), n.disk.logged(), n.jobs.open, n.jobs.started)
	}
	total, free, leases := n.raylet.core.Usage()
	if leases > 0 || !slices.Equal(total, free) || len(n.raylet.core.Workers()) > 0 {
		w.fail("left of the raylet of node %v: %d leases, %v of %v free, workers %+v", n.home, leases, free, total, n.raylet.core.Workers())
	}
	if left := n.store.left(); left != "" {
		w.fail("left of the store of node %v: %s", n.home, left)
	}
	if len(n.memory.files)+len(n.memory.mapped)+len(n.spill.files)+len(n.disk.index.slots) > 0 {
		w.fail("left of node %v: files of jobs %v, %d mapped, %d spilled, %d slots of the index", n.home, n.memory.left(), len(n.memory.mapped), len(n.spill.files), len(n.disk.index.slots))
	}
}
