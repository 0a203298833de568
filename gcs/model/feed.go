package model

import (
	"slices"

	"mobula/gcs"
)

// feed tells nodes of changes.
type feed struct {
	rows  map[gcs.Bucket]map[string]gcs.Changed
	beats *gcs.Told
	alive *gcs.Alive

	changes []gcs.Changed // that wait until what was before is sent
	waits   []message
	busy    bool
}

// message is told to all nodes that are connected.
type message struct {
	bytes int
	has   func(n *node, at int64) // a node has it then
}

func newFeed() feed {
	f := feed{rows: make(map[gcs.Bucket]map[string]gcs.Changed), beats: gcs.NewTold(), alive: gcs.NewAlive(0)}
	for _, b := range gcs.Buckets {
		f.rows[b] = make(map[string]gcs.Changed)
	}
	return f
}

// news takes a change: heartbeats may wait, all else is told at once.
func (s *server) news(c gcs.Changed) {
	f := &s.feed
	f.alive.Changed(s.t.clock.Now())
	if r, ok := c.Record.(gcs.BeatsRecord); ok {
		s.beaten(r)
		return
	}
	f.rows[c.Bucket][c.Key] = c
	f.changes = append(f.changes, c)
	if !f.busy {
		s.tellChanges()
	}
}

// tellChanges tells what has come meanwhile, together.
func (s *server) tellChanges() {
	all := s.feed.changes
	s.feed.changes = nil
	s.tell(len(all)*rowSpace, func(_ *node, at int64) {
		for _, c := range all {
			if h, ok := c.Record.(gcs.HomeRecord); ok && h.Fenced > 0 {
				s.t.told(int(h.Home)-1, at)
			}
		}
	})
}

// beaten takes heartbeats, and tells those that wait if it is time.
func (s *server) beaten(r gcs.BeatsRecord) {
	const most = 4096 // in one message
	rows := s.feed.rows[gcs.Nodes]
	for _, b := range r.Beats {
		at := rows[b.Home().String()]
		if row, known := at.Record.(gcs.NodeRecord); known {
			if row, known = row.Beat(b); known {
				at.Record = row
				rows[at.Key] = at
				s.feed.beats.Add(b)
			}
		}
	}
	for part := range slices.Chunk(s.feed.beats.Due(s.t.clock.Now(), s.t.cfg.Nodes), most) {
		s.tell(jsonSize(part), func(n *node, at int64) { n.shown(part, at) })
	}
}

// tell sends a message to each node that is connected, after those before.
func (s *server) tell(bytes int, has func(n *node, at int64)) {
	f := &s.feed
	f.alive.Said(s.t.clock.Now())
	f.waits = append(f.waits, message{bytes + feedHead, has})
	if !f.busy {
		s.sendNext()
	}
}

// live says that the server lives when its feed has told nothing for a while.
func (s *server) live() {
	say, wait := s.feed.alive.Due(s.t.clock.Now())
	if say {
		s.tell(0, func(*node, int64) {})
	}
	s.t.clock.After(wait, s.live)
}

func (s *server) sendNext() {
	f := &s.feed
	if f.busy = len(f.waits) > 0; !f.busy {
		if len(f.changes) > 0 {
			s.tellChanges()
		}
		return
	}
	m := f.waits[0]
	f.waits = f.waits[1:]
	s.send(m, 0)
}

// send sends a message to some nodes from a place on, and then to the others: the processors do other work meanwhile.
func (s *server) send(m message, from int) {
	const some = 64
	c, t := &s.t.cfg.Costs, s.t
	to := min(from+some, len(s.nodes))
	for _, n := range s.nodes[from:to] {
		if !n.running {
			continue
		}
		s.occupy(c.Send)
		s.wired = max(s.wired, s.free) + int64(float64(m.bytes)/c.Bandwidth*1e9)
		s.sent += uint64(m.bytes)
		n.received += uint64(m.bytes)
		m.has(n, s.wired+t.latency())
	}
	t.clock.At(s.free, func() {
		if to < len(s.nodes) {
			s.send(m, to)
		} else {
			s.sendNext()
		}
	})
}

// told notes that a node has heard of the end of another.
func (t *Tables) told(node int, at int64) {
	v := t.verdicts[node]
	if v == nil {
		v = &Verdict{First: at}
		t.verdicts[node] = v
	}
	v.First, v.Last = min(v.First, at), max(v.Last, at)
	v.Told++
}
