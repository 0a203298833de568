package cluster

import (
	"cmp"
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// State says whether a node takes new work.
type State uint8

// The states of a node.
const (
	Alive    State = iota
	Draining       // it finishes what is there, and takes no new work
	Dead
)

// Node is what a node said of itself in its last report. It is a hint: much may have happened since.
type Node struct {
	ID      ids.Home
	Version uint64 // of the report: a later one has a higher one, over the node's lives too
	State   State
	Total   []wire.Resource // what it has; each name once
	Free    []wire.Resource // what of it is not taken
	Labels  map[string]string
	Store   Store
	Short   bool // of memory: it begins nothing beside what runs
	Backlog []Backlog
	Last    ids.LeaseID // the last lease that its scheduler had made: Free lacks what that one takes and all before it
	Chooses bool        // it has jobs, so it chooses nodes itself, and is to be told of the others
}

// Clone copies a report, whose maker writes over it.
func (n *Node) Clone() Node {
	c := *n
	c.Total, c.Free, c.Backlog = slices.Clone(n.Total), slices.Clone(n.Free), slices.Clone(n.Backlog)
	return c
}

// Store is the memory of a node's object store, in bytes.
type Store struct{ Limit, Held uint64 }

// Backlog is how many demands of a shape wait on a node.
type Backlog struct {
	Shape Shape
	N     int
}

// View is the nodes that one of them knows, itself among them.
type View struct {
	Self  ids.Home
	Nodes []Node   // by ID
	Last  ids.Home // whom Spread chose last
}

// Report takes a node's report, and tells whether it is news: one that was overtaken by a later one is not.
func (v *View) Report(n Node) bool {
	i, known := v.find(n.ID)
	switch {
	case !known:
		v.Nodes = slices.Insert(v.Nodes, i, n)
	case n.Version <= v.Nodes[i].Version:
		return false
	default:
		v.Nodes[i] = n
	}
	return true
}

// Remove forgets a node.
func (v *View) Remove(id ids.Home) {
	if i, known := v.find(id); known {
		v.Nodes = slices.Delete(v.Nodes, i, i+1)
	}
}

// take takes what so many leases need off what is free; below zero it gives it back.
func (n *Node) take(need []wire.Resource, times int64) {
	for _, x := range need {
		for j := range n.Free {
			if n.Free[j].Name == x.Name {
				n.Free[j].Amount -= times * x.Amount
			}
		}
	}
}

// find gives the place of a node.
func (v *View) find(id ids.Home) (int, bool) {
	return slices.BinarySearchFunc(v.Nodes, id, func(n Node, id ids.Home) int { return cmp.Compare(n.ID, id) })
}

func amountOf(rs []wire.Resource, name string) int64 {
	for i := range rs {
		if rs[i].Name == name {
			return rs[i].Amount
		}
	}
	return 0
}

// holds tells whether there is at least what is needed.
func holds(have, need []wire.Resource) bool {
	for i := range need {
		if amountOf(have, need[i].Name) < need[i].Amount {
			return false
		}
	}
	return true
}

// able tells whether the node could run the shape if nothing else ran there.
func (n *Node) able(s *Shape) bool {
	return n.State == Alive && s.Strategy.allows(n.ID) && holds(n.Total, s.Need) && s.Labels.Matches(n.Labels) && n.lends(s)
}

// lends tells whether the node takes what does not name it. One without CPUs, as of a program that connects to a cluster, takes only what it was given other
// resources for; every node has memory. In Ray what asks for nothing runs there too.
func (n *Node) lends(s *Shape) bool {
	return amountOf(n.Total, sched.CPU) > 0 || s.Strategy.Kind == Affinity && s.Strategy.Node == n.ID ||
		slices.ContainsFunc(s.Need, func(x wire.Resource) bool { return x.Name != sched.Memory })
}

// free tells of a node that is able whether it could run the shape now. What waits there of the shape comes first: a report may be older than that the
// resources were freed for it. Ray looks at the resources alone.
func (n *Node) free(s *Shape) bool { return holds(n.Free, s.Need) && n.waits(s) == 0 }

// waits gives how many demands of the shape wait there.
func (n *Node) waits(s *Shape) int {
	if i := slices.IndexFunc(n.Backlog, func(b Backlog) bool { return b.Shape.Equal(*s) }); i >= 0 {
		return n.Backlog[i].N
	}
	return 0
}

// fits gives how many leases of the shape, at most so many, the node can take one after the other as long as it is free and good.
func (n *Node) fits(s *Shape, most int, good func(*Node) bool) (takes int) {
	left := *n
	left.Free = slices.Clone(n.Free)
	for ; takes < most && left.free(s) && good(&left); takes++ {
		left.take(s.Need, 1)
	}
	return takes
}

// set is nodes of a view, by their places in it, in order.
type set []int32

// has tells whether a node is in the set.
func (st set) has(v *View, id ids.Home) bool {
	i, known := v.find(id)
	if !known {
		return false
	}
	_, in := slices.BinarySearch(st, int32(i))
	return in
}

// rather keeps the nodes of which good says yes, unless it says so of none. The set that it is called on is used up.
func (st set) rather(v *View, good func(*Node) bool) set {
	bad := func(i int32) bool { return !good(&v.Nodes[i]) }
	if !slices.ContainsFunc(st, func(i int32) bool { return !bad(i) }) {
		return st
	}
	return slices.DeleteFunc(st, bad)
}
