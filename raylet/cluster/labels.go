package cluster

// preferred narrows the free nodes to those that a shape would rather have.
func preferred(v *View, free set, s *Shape) set {
	if len(s.Prefer) == 0 {
		return free
	}
	return free.rather(v, func(n *Node) bool { return s.Prefer.Matches(n.Labels) })
}
