package gcs

import "time"

// beatID is the ID of writes of the node's own row, which belong to no request.
const beatID = 0

// missed is how many heartbeats a node may miss before it counts as silent.
const missed = 3

// nodes has what the core knows of nodes besides their rows: its own heartbeat, and when it last heard each of the others, by its own
// clock.
type nodes struct {
	self  *NodeRecord
	every time.Duration    // interval of heartbeats; 0: none, since nobody else reads the table
	due   bool             // a Beat will come
	heard map[string]int64 // by key
}

// announce begins to write the node's row.
func (c *Core) announce(a Announce) {
	r := a.Record
	c.nodes.self, c.nodes.every, c.nodes.due = &r, a.Every, false
	c.beat()
}

func (c *Core) beat() {
	c.nodes.due = false
	c.nodes.self.Beats++
	c.emit(Write{ID: beatID, Record: *c.nodes.self, Revision: -1})
}

// beaten goes on after a heartbeat, written or not: a server that is away gets one write at a time.
func (c *Core) beaten() {
	if n := &c.nodes; n.self != nil && n.every > 0 && !n.due {
		n.due = true
		c.emit(After{D: n.every, Ev: Beat{}})
	}
}

// heardOf notes a heartbeat. It removes a row of a release before 0.5, which nobody read.
func (c *Core) heardOf(ev Changed) {
	switch {
	case ev.Record == nil:
		delete(c.nodes.heard, ev.Key)
	case ev.Key != ev.Record.Key():
		c.emit(Delete{ID: beatID, Bucket: Nodes, Key: ev.Key, Revision: -1})
	default:
		c.nodes.heard[ev.Key] = c.now
	}
}

// shown is a row as in a list. Without heartbeats no other node can be silent.
func (c *Core) shown(key string, r Record) Record {
	n, ok := r.(NodeRecord)
	if !ok {
		return r
	}
	if c.nodes.self == nil || key != c.nodes.self.Key() {
		n.Heard = time.Duration(c.now - c.nodes.heard[key])
		n.Silent = c.nodes.every > 0 && n.Heard > missed*c.nodes.every
	}
	return n
}
