package gcs

import (
	"cmp"
	"slices"
	"time"

	"mobula/remote"
)

// What is kept of nodes whose lives are over: the rows of the last ones, for so long.
const (
	keptDead    = 100
	keptDeadFor = 24 * time.Hour
)

// forgetEvery is how often a judge looks for rows that have been kept long enough.
const forgetEvery = time.Minute

// forgetBit is set, beside fenceBit, in the IDs of requests by which the judge removes rows.
const forgetBit = 1 << 62

// Forget removes the row of a node whose life is over. A later life keeps its row.
type Forget struct{ Life remote.Life }

func (Forget) op() {}

// forgetDue has the judge remove rows now and then. A node that ends in order removes its own row; those of nodes that were lost would add up: each program on another
// machine is a node. What a row says is for people to read: which lives are over is in the table of homes (forget_homes.go).
func (c *Core) forgetDue() {
	if c.lives.judge == nil || c.now < c.lives.forget {
		return
	}
	c.lives.forget = c.now + int64(forgetEvery)
	c.forgetHomesDue()
	var dead []NodeRecord
	for _, r := range c.view[Nodes] {
		if n := r.(NodeRecord); c.dead(n) {
			dead = append(dead, n)
		}
	}
	slices.SortFunc(dead, func(a, b NodeRecord) int { // the latest first, as far as this core has seen them live
		return cmp.Or(cmp.Compare(c.nodes.heard[b.Key()], c.nodes.heard[a.Key()]), cmp.Compare(b.Started, a.Started), cmp.Compare(b.Home, a.Home))
	})
	for i, n := range dead {
		id := fenceBit | forgetBit | uint64(n.Home)
		if (i >= keptDead || c.now-c.nodes.heard[n.Key()] >= int64(keptDeadFor)) && c.pending[id] == nil {
			c.request(Request{ID: id, Op: Forget{n.Life()}})
		}
	}
}

// dead tells whether the life of a row is over.
func (c *Core) dead(n NodeRecord) bool { return n.Epoch > 0 && n.Epoch <= c.lives.fenced[n.Home] }

// forget goes on with a Forget. Another judge may have been first, or the node may be back.
func (c *Core) forget(a Answered, p *pending, op Forget) {
	row, ok := a.Record.(NodeRecord)
	if p.writing || !ok || row.Life() != op.Life {
		c.finish(Reply{ID: a.ID})
		return
	}
	p.writing = true
	c.emit(Delete{ID: a.ID, Bucket: Nodes, Key: row.Key(), Revision: int64(a.Revision)})
}
