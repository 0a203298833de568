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
	every time.Duration // interval of heartbeats; 0: none, since nobody else reads the table
	due   bool          // a Beat will come
	last  int64         // when the last heartbeat was
	tells bool          // heartbeats are told to the servers, and the row is written only where the table does not have it

	row, writing, written uint64           // which content the row has now, in the last write, and in the table; each content has a number of its own
	waits                 bool             // the last write has no answer
	heard                 map[string]int64 // by key
	echo                  time.Duration    // between the last two of the node's own heartbeats that were shown: where many nodes are, each is shown less often
}

// announce begins to write the node's row. After a restart of the core its heartbeats count on, else they would be taken for old ones.
func (c *Core) announce(a Announce) {
	r := a.Record
	if was, ok := c.view[Nodes][r.Key()].(NodeRecord); ok && was.Life() == r.Life() {
		r.Beats = max(r.Beats, was.Beats)
	}
	c.appoint(a.Judge, r.Life())
	c.nodes.self, c.nodes.every, c.nodes.tells, c.nodes.due = &r, a.Every, a.Tells, false
	c.nodes.row++
	c.beat()
}

// beat has the others see that this node lives.
func (c *Core) beat() {
	n := &c.nodes
	n.due, n.last = false, c.now
	c.forgetDue()
	n.self.Beats++
	if !n.tells || n.written != n.row && !n.waits {
		n.writing, n.waits = n.row, true
		c.emit(Write{ID: beatID, Record: *n.self, Revision: -1})
	}
	if n.tells { // whatever becomes of the write: the table of heartbeats may have a leader where that of nodes has none
		c.emit(TellBeat{n.self.Heartbeat()})
		c.nextBeat()
	}
}

// beatDue takes the time of a heartbeat, unless the last one was shown just before and another followed.
func (c *Core) beatDue() {
	if n := &c.nodes; !n.tells || c.now-n.last >= int64(n.every/2) {
		c.beat()
	}
}

// shownSelf takes a heartbeat of the node's own that is shown. If it is about time, that is the moment for the next one: the nodes of a server beat when it has
// spoken to them, and it wakes once for all of them. In a large cluster each is shown seldom, and beats by its own clock.
func (c *Core) shownSelf() {
	if n := &c.nodes; n.tells && n.due && c.now-n.last >= int64(n.every*3/4) {
		c.beat()
	}
}

// follows has the row say which trust bundle the node follows.
func (c *Core) follows(number uint64) {
	if n := &c.nodes; n.self != nil {
		n.self.Trust = number
		n.row++
	}
}

// beaten goes on after the row was written, or not: a server that is away gets one write at a time.
func (c *Core) beaten(a Answered) {
	c.nodes.waits = false
	if a.Err == nil && a.Revision > 0 { // else a row was removed
		c.nodes.written = c.nodes.writing
	}
	c.nextBeat()
}

// nextBeat waits for the time of the next heartbeat, unless it does already.

func (c *Core) nextBeat() {
	n := &c.nodes
	if n.self == nil || n.every <= 0 || n.due {
		return
	}
	n.due = true
	wait := n.every
	if n.tells { // it is shown before that
		wait += wait / 4
	}
	c.emit(After{D: wait, Ev: Beat{}})
}

// heardOf notes when a node's row was written. It removes a row of a release before 0.5, which nobody read.
func (c *Core) heardOf(ev Changed) {
	self := c.nodes.self != nil && ev.Key == c.nodes.self.Key()
	switch {
	case ev.Record == nil:
		delete(c.nodes.heard, ev.Key)
		if self { // the table has lost it
			c.nodes.row++
		}
	case ev.Key != ev.Record.Key():
		c.emit(Delete{ID: beatID, Bucket: Nodes, Key: ev.Key, Revision: -1})
	default:
		if self && c.nodes.self.outdates(ev.Record.(NodeRecord)) {
			c.nodes.row++
		}
		c.heardNow(ev.Key)
	}
}

// outdates tells whether the node's row has to take the place of one in the table: that of the life before, or one from before the node followed its bundle.
func (r NodeRecord) outdates(was NodeRecord) bool {
	return was.Epoch < r.Epoch || was.Epoch == r.Epoch && was.Trust != r.Trust
}

// heardNow notes that a node was heard.
func (c *Core) heardNow(key string) {
	n := &c.nodes
	self := n.self != nil && key == n.self.Key()
	if self && n.heard[key] != 0 {
		n.echo = time.Duration(c.now - n.heard[key])
	}
	n.heard[key] = c.now
	if self {
		c.shownSelf()
	}
}

// beatsOf takes the heartbeats that a server has written: those of lives whose rows are there, and that are later than those before.
func (c *Core) beatsOf(r BeatsRecord) {
	for _, b := range r.Beats {
		row, known := c.view[Nodes][b.Home().String()].(NodeRecord)
		if !known {
			continue
		}
		if row, known = row.Beat(b); known {
			c.view[Nodes][row.Key()] = row
			c.heardNow(row.Key())
			c.lifeGoesOn(row)
		}
	}
}

// shown is a row as in a list. Without heartbeats no other node can be silent.
func (c *Core) shown(key string, r Record) Record {
	n, ok := r.(NodeRecord)
	if !ok {
		return r
	}
	n.Dead = c.dead(n)
	heard := time.Duration(c.now - c.nodes.heard[key])
	silent := !n.Dead && c.nodes.every > 0 && heard > missed*max(c.nodes.every, c.nodes.echo)
	if c.nodes.self != nil && key == c.nodes.self.Key() {
		n.Unshown = silent
	} else {
		n.Heard, n.Silent = heard, silent
	}
	return n
}
