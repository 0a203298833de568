package model

import (
	"cmp"
	"slices"
	"time"

	"mobula/gcs"
	"mobula/internal/ids"
)

// node is a node that is no server, or what a server does as any other node: it writes its row, and beats.
type node struct {
	t        *Tables
	row      gcs.NodeRecord
	server   *server // that it is connected to
	core     *gcs.Core
	timer    uint64 // the number of the core's present one
	running  bool
	sent     uint64
	received uint64
}

// newNode makes a node that begins to write its row within a second.
func (t *Tables) newNode(i int) *node {
	n := &node{t: t, row: t.row(i), server: t.servers[i%len(t.servers)], running: true}
	if i < len(t.servers) {
		n.server, n.core = t.servers[i], t.servers[i].core
	} else {
		n.core = gcs.NewCore()
		n.server.nodes = append(n.server.nodes, n)
	}
	announce := gcs.Announce{Record: t.row(i), Every: Beat, Tells: true}
	t.clock.After(time.Duration(t.random.Int64N(int64(Beat))), func() {
		if i < len(t.servers) {
			announce.Judge = judgeConfig()
			n.server.step(announce)
			return
		}
		n.step(announce)
	})
	return n
}

// step steps the core of a node that is no server.
func (n *node) step(ev gcs.Event) {
	if !n.running {
		return
	}
	for _, e := range n.core.Step(n.t.clock.Now(), ev) {
		switch e := e.(type) {
		case gcs.Write:
			n.ask(e)
		case gcs.TellBeat:
			n.tell(e.Heartbeat)
		case gcs.After:
			n.timer++
			timer := n.timer
			n.t.clock.After(e.D, func() {
				if timer == n.timer {
					n.step(e.Ev)
				}
			})
		}
	}
}

// tell has the server hear a heartbeat.
func (n *node) tell(b gcs.Heartbeat) {
	t, s, began := n.t, n.server, n.t.clock.Now()
	n.sent += uint64(jsonSize(b) + beatHead)
	t.clock.At(began+t.latency(), func() {
		s.work(t.cfg.Costs.Send, func() { s.hear(b, began) })
	})
}

// shown has the core see its own heartbeat among those that a server tells.
func (n *node) shown(all []gcs.Heartbeat, at int64) {
	home := n.row.Home
	i, found := slices.BinarySearchFunc(all, home, func(b gcs.Heartbeat, h ids.Home) int { return cmp.Compare(b.Home(), h) })
	if !found {
		return
	}
	row := n.row
	row.Beats = all[i].Number()
	n.t.clock.At(at, func() { n.step(gcs.Changed{Bucket: gcs.Nodes, Key: row.Key(), Record: row}) })
}

// ask has the service write the node's row: it reads first whether the node's life is over.
func (n *node) ask(w gcs.Write) {
	t, s := n.t, n.server
	n.sent += uint64(t.rowSize + askHead)
	t.clock.At(t.clock.Now()+t.latency(), func() {
		s.work(t.cfg.Costs.Handle, func() {
			s.call(gcs.Read{ID: w.ID, Bucket: gcs.Homes, Key: w.Record.(gcs.NodeRecord).Key()}, func(gcs.Answered) {
				s.call(w, func(a gcs.Answered) {
					s.sent += answerHead
					t.clock.At(t.clock.Now()+t.latency(), func() {
						n.received += answerHead
						n.step(a)
					})
				})
			})
		})
	})
}
