package gcs

import "time"

// beatID is of the writes of the node's own row, which are nobody's requests.
const beatID = 0

// missed is how many heartbeats a node may miss before it is taken for silent.
const missed = 3

// nodes is what the core knows of nodes besides their rows: its own heartbeat, and when it heard each of the others, by its own clock.
type nodes struct {
	self  *NodeRecord
	every time.Duration    // of heartbeats; 0: none, as nobody else reads the table
	due   bool             // a Beat is to come
	heard map[string]int64 // by key
}

// announce begins to say what the node is.
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

// beaten goes on behind a heartbeat, whether it could be written or not: a server that is away gets one write at a time.
func (c *Core) beaten() {
	if n := &c.nodes; n.self != nil && n.every > 0 && !n.due {
		n.due = true
		c.emit(After{D: n.every, Ev: Beat{}})
	}
}

// heardOf notes a heartbeat. A row of a release before 0.5, which nobody read, is removed.
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

// shown is a row as a list has it. Without heartbeats there is nobody else to be silent.
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
