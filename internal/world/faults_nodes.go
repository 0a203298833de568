package world

import (
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/raylet/owner"
)

// nodeFaults are the faults that need more than one node.
func nodeFaults() []fault {
	return []fault{
		{"remote crash", 2, true, crash(kindPeer)},
		{"transfer crash", 1, true, crash(kindTransfer)},
		{"cluster crash", 2, true, crash(kindChooser)},
		{"cluster poisoned", 1, true, poison(kindChooser)},
		{"remote poisoned", 1, true, poison(kindPeer)},
		{"transfer poisoned", 1, true, poison(kindTransfer)},
		{"line broken", 3, true, (*plan).breakLine},
		{"link down", 2, true, (*plan).cutLink},
		{"link slow", 2, true, (*plan).slowLink},
		{"node cut off", 1, true, (*plan).cutOff},
		{"node stopped", 2, true, (*plan).stopNode},
		{"node away", 1, true, (*plan).nodeAway},
		{"node lost", 0, true, (*plan).loseNode},
		{"no quorum", 1, true, (*plan).loseQuorum},
		{"node doubted", 1, true, (*plan).doubtNode},
	}
}

// breakLine breaks a connection between two nodes that live.
func (pl *plan) breakLine(*Node) bool {
	var all []*line
	for _, l := range pl.w.lines {
		if l.ends[0].open && l.ends[1].open {
			all = append(all, l)
		}
	}
	if len(all) == 0 {
		return false
	}
	all[pl.w.rng.IntN(len(all))].breakOff()
	return true
}

// another draws another node that runs; nil: there is none.
func (pl *plan) another(n *Node) *Node {
	var all []*Node
	for _, o := range pl.w.nodes {
		if o != n && !o.gone {
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[pl.w.rng.IntN(len(all))]
}

// during counts a fault that lasts for a while.
func (pl *plan) during(d int64) {
	pl.ongoing++
	pl.w.after(d, func() {
		pl.ongoing--
		pl.w.model.disturbed = pl.w.now // what stood still hears only now what was given up
	})
}

// cutLink has two nodes not reach each other for a while, though both reach the tables: neither is dead.
func (pl *plan) cutLink(n *Node) bool {
	o := pl.another(n)
	if o == nil {
		return false
	}
	d := pl.w.between(10*time.Millisecond, 15*time.Second)
	pl.w.cut(n, o, d)
	pl.during(d)
	return true
}

// slowLink has each thing between two nodes take long for a while.
func (pl *plan) slowLink(n *Node) bool {
	o := pl.another(n)
	if o == nil {
		return false
	}
	d := pl.w.between(time.Millisecond, 500*time.Millisecond)
	pl.w.slow[pairOf(n, o)] = max(pl.w.slow[pairOf(n, o)], pl.w.now+d)
	pl.during(d)
	return true
}

// The limits of what a node survives.
const (
	stopShort = 2 * time.Second  // for which a node may be stopped or cut off, and lives on
	stopLong  = 20 * time.Second // after which it is dead to the others
)

// outage draws how long a node is not heard: it survives that, or does not.
func (pl *plan) outage(n *Node) int64 {
	if pl.w.rng.IntN(2) == 0 {
		return pl.w.between(10*time.Millisecond, stopShort)
	}
	n.mayLive = false
	return pl.w.between(stopShort, stopLong)
}

// cutOff has a node reach neither the others nor the tables.
func (pl *plan) cutOff(n *Node) bool {
	if n.gone || n.lone > pl.w.now || n.stopped > pl.w.now {
		return false
	}
	d := pl.outage(n)
	n.lone = pl.w.now + d
	n.control.box.hold(d)
	n.control.calls.hold(d)
	for _, o := range pl.w.nodes {
		if o != n {
			pl.w.cut(n, o, d)
		}
	}
	pl.during(d)
	return true
}

// stopNode stops all processes of a machine, which go on after a while as if nothing had been. An owner that waits for its clients would give them up, since
// its time is over when it goes on.
func (pl *plan) stopNode(n *Node) bool {
	if n.gone || n.lone > pl.w.now || n.stopped > pl.w.now || n.recovering() {
		return false
	}
	d := pl.outage(n)
	n.stopped = pl.w.now + d
	for _, b := range n.boxes {
		b.hold(d)
	}
	for _, p := range pl.w.processes {
		if p.n == n && !p.dead {
			p.turns.hold(d)
			if p.conn != nil {
				p.conn.down.hold(d)
			}
		}
	}
	pl.during(d)
	return true
}

// nodeAway ends a node's process, which starts again when the others know that it is dead, or when they do not.
func (pl *plan) nodeAway(n *Node) bool {
	if n.gone {
		return false
	}
	pl.armed = &armed{n: n, until: pl.w.steps + patience, do: func() {
		d := pl.w.between(2*time.Second, stopLong)
		pl.during(d)
		n.die(d, pl.w.rng.IntN(2) == 0)
	}}
	return true
}

// losable tells whether there is a program on another node than this one.
func (pl *plan) losable(n *Node) bool {
	return !n.gone && slices.ContainsFunc(pl.w.programs, func(p *program) bool { return !p.ended && !p.cut && p.proc.n != n })
}

// loseNode ends a node for good, with its programs.
func (pl *plan) loseNode(n *Node) bool {
	if !pl.losable(n) {
		return false
	}
	pl.armed = &armed{n: n, until: pl.w.steps + patience, do: n.lose}
	return true
}

// loseQuorum has the tables answer nobody for a while, nor show any row: no node hears of another's end meanwhile, and the judge's time stands still.
func (pl *plan) loseQuorum(*Node) bool {
	if !pl.w.hasQuorum() {
		return false
	}
	d := pl.w.between(10*time.Millisecond, 15*time.Second)
	pl.w.noQuorum = pl.w.now + d
	for _, n := range pl.w.nodes {
		if n.control != nil {
			n.control.calls.hold(d)
		}
	}
	pl.during(d)
	return true
}

// doubtNode has two nodes take each other for dead, which both live, as far as the hints go: only the control plane ends a life.
func (pl *plan) doubtNode(n *Node) bool {
	o := pl.another(n)
	if o == nil || len(n.owners)+len(o.owners) == 0 {
		return false
	}
	for _, x := range [][2]*Node{{n, o}, {o, n}} {
		for _, job := range slices.Sorted(maps.Keys(x[0].owners)) {
			x[0].toOwner(job, owner.NodeDoubted{Node: x[1].home, Err: errs.New(errs.CodeWorkerCrashed, "node %v does not run: its machine refuses connections", x[1].home)})
		}
	}
	return true
}
