package owner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// at names what comes from a component of a node.
func at(component string, node ids.Home) string {
	if node == 0 {
		return component
	}
	return fmt.Sprintf("node %v %s", node, component)
}

// addNodes gives the world nodes beside the job's own.
func (w *simWorld) addNodes(n int) {
	for i := range n {
		node := ids.Home(i + 1)
		w.stores[node] = newSimStore(w, node)
	}
}

// others are the nodes that live, beside the job's own, and those of whose death the core has not heard.
func (w *simWorld) others() []ids.Home {
	var out []ids.Home
	for node := ids.Home(1); node < 8; node++ {
		if w.stores[node] != nil || len(w.queues[at("end", node)]) > 0 {
			out = append(out, node)
		}
	}
	return out
}

func (w *simWorld) anyStore() *simStore {
	nodes := slices.Sorted(maps.Keys(w.stores))
	return w.stores[nodes[w.rng.IntN(len(nodes))]]
}

// killNode ends a node with all that it has, and begins its next life if the core has heard of that. What it had sent last is lost on the way.
func (w *simWorld) killNode() {
	node := ids.Home(w.rng.IntN(3) + 1)
	if w.stores[node] == nil {
		if node <= 2 && len(w.queues[at("end", node)]) == 0 {
			w.stores[node] = newSimStore(w, node)
		}
		return
	}
	for _, id := range slices.Sorted(maps.Keys(w.clients)) {
		if cl := w.clients[id]; id.Home() == node {
			cl.dead = true
			delete(w.clients, id)
			delete(w.queues, cl.source())
		}
	}
	maps.DeleteFunc(w.queues, func(q string, evs []Event) bool {
		g, gone := lastGone(evs) // of a worker that had died before
		return gone && g.Home() == node || strings.HasPrefix(q, at("", node))
	})
	maps.DeleteFunc(w.sched.leases, func(id ids.LeaseID, _ *simLease) bool { return id.Home() == node })
	delete(w.stores, node)
	w.post(at("end", node), NodeGone{Node: node, Err: errs.New(errs.CodeWorkerCrashed, "node %v is dead", node)})
}

// lastGone gives the client of whose end a queue tells.
func lastGone(evs []Event) (ids.ClientID, bool) {
	if len(evs) == 0 {
		return 0, false
	}
	g, ok := evs[len(evs)-1].(ClientGone)
	return g.Client, ok
}
