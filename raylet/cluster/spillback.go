package cluster

// What was placed on a node that had room by its report may find it busy: another owner was faster. In Ray that node rejects the demand and names another one. Here
// it keeps its turn there, and is placed anew as soon as the node says that it waits, and another one has room.

// spillback gives how many of the leases that were placed on a node, and which it has not granted, go to other nodes that have room for so many: as many as wait
// there, as the node says. A lease that waits for its worker's start does not wait in that sense.
func spillback(n *Node, s *Shape, placed, room int) int { return min(placed, n.waits(s), room) }

// move takes back what was placed on nodes that have granted nothing for a while, and had the time to say so, as far as there is room elsewhere.
func (c *Core) move(cl *class) bool {
	if cl.placed == 0 || c.alone() {
		return false
	}
	c.wakeAt(c.now + int64(c.cfg.Patience))
	room, moved := -1, false
	for i := range cl.shares {
		s := &cl.shares[i]
		at, known := c.view.find(s.node)
		if s.placed == 0 || !known || c.now < s.since+int64(c.cfg.Patience) || c.peers[s.node].heard <= s.since {
			continue
		}
		n := &c.view.Nodes[at]
		if n.waits(&cl.shape) == 0 {
			continue
		}
		if room < 0 {
			room = c.room(cl)
		}
		if goes := spillback(n, &cl.shape, s.placed, room); goes > 0 {
			c.unplace(cl, s, goes)
			room -= goes
			moved = true
		}
	}
	return moved
}

// room is how many leases of a class the free nodes have room for.
func (ns *nodes) room(cl *class) int {
	n := 0
	for i := range ns.view.Nodes {
		if node := &ns.view.Nodes[i]; ns.able(cl, node) && ns.free(cl, node) {
			n += int(slots(node.Free, cl.shape.Need))
		}
	}
	return n
}
