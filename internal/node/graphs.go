package node

import (
	"mobula/graph/run"
	"mobula/internal/registry"
)

// startGraphs prepares the node to run task graphs, below the raylet.
func (n *Node) startGraphs() {
	h := &run.Host{Parent: n.rayletSup, Threads: int(max(1, n.cfg.CPUs)), Memory: int64(n.cfg.StoreBytes)}
	n.system = map[string]*registry.Function{run.Func: h.Function()}
}

// systemFunction finds a function that the node itself runs.
func (n *Node) systemFunction(name string) (*registry.Function, bool) {
	f, ok := n.system[name]
	return f, ok
}
