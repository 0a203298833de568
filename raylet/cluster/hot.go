package cluster

// cool leaves hot nodes out while another one is free: work sent there would make its store spill, or wait for memory. In Ray a node is left out while
// its pulls wait for memory; how full its store is counts in its utilisation only.
func cool(v *View, free set, cfg Config) set {
	return free.rather(v, func(n *Node) bool { return !hot(n, cfg) })
}

func hot(n *Node, cfg Config) bool {
	return n.Short || n.Store.Limit > 0 && float64(n.Store.Held) >= cfg.HotStore*float64(n.Store.Limit)
}
