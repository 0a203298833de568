package node

import (
	"maps"
	"slices"
	"sync"

	"mobula/internal/ids"
	"mobula/raylet/cluster"
	"mobula/raylet/sched"
	"mobula/wire"
)

// known are the last reports of the nodes of the cluster, which outlive the core that chooses among them.
type known struct {
	mu sync.Mutex
	of map[ids.Home]cluster.Node // guarded by mu
}

// note takes what an event says of a node.
func (k *known) note(ev cluster.Event) {
	switch ev := ev.(type) {
	case cluster.NodeReport:
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.of == nil {
			k.of = make(map[ids.Home]cluster.Node)
		}
		k.of[ev.Node.ID] = ev.Node
	case cluster.NodeGone:
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.of, ev.Node)
	}
}

// reports are for a core that begins: nodes do not repeat themselves soon.
func (k *known) reports() (out []cluster.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, home := range slices.Sorted(maps.Keys(k.of)) {
		out = append(out, cluster.NodeReport{Node: k.of[home]})
	}
	return out
}

// capacity adds up what the nodes have that run tasks; 0: none has reported.
func (c *chooser) capacity() (cpus float64, store uint64) {
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	for _, n := range c.known.of {
		i := slices.IndexFunc(n.Total, func(r wire.Resource) bool { return r.Name == sched.CPU })
		if i < 0 || n.Total[i].Amount <= 0 {
			continue
		}
		cpus += float64(n.Total[i].Amount) / float64(sched.OneCPU)
		store += n.Store.Limit
	}
	return cpus, store
}
