package gcs

import (
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/internal/trust"
	"mobula/remote"
)

// Each program on another machine is a node, and has a home that is used once. What is in the table of homes every node has in memory, so the judge removes the row of such a
// home when the program's node has been gone for a day. A home that is in no table is dead for everybody. The rows of other nodes stay: they come back in their directory after
// any time, and until then they can be revoked.
//
// A new home is above all in the table. So the highest row stays, or its home would be given out again.

// pastLife is a program's node whose row is not there any more.
type pastLife struct {
	epoch uint64
	since int64
}

// homeBit is set, beside fenceBit and forgetBit, in the IDs of requests by which the judge removes rows of homes.
const homeBit = 1 << 61

// ForgetHome removes a home's row. One of a later life stays.
type ForgetHome struct{ Life remote.Life }

func (ForgetHome) op() {}

// programEnded notes that the row of a node was removed: by itself in the end, or by a judge a day after it was lost.
func (c *Core) programEnded(n NodeRecord) {
	if n.Role == string(trust.Driver) {
		c.lives.past[n.Home] = pastLife{n.Epoch, c.now}
	}
}

// forgetHomesDue has the judge remove the rows of homes that were kept long enough, as far as it has seen their ends itself.
func (c *Core) forgetHomesDue() {
	var highest ids.Home
	for _, r := range c.view[Homes] {
		highest = max(highest, r.(HomeRecord).Home)
	}
	for _, home := range slices.Sorted(maps.Keys(c.lives.past)) {
		p := c.lives.past[home]
		id := fenceBit | forgetBit | homeBit | uint64(home)
		if c.now-p.since >= int64(keptDeadFor) && c.pending[id] == nil && home < highest {
			c.request(Request{ID: id, Op: ForgetHome{remote.Life{Home: home, Epoch: p.epoch}}})
		}
	}
}

// forgetHome goes on with a ForgetHome. Another judge may have been first, or the node may be back.
func (c *Core) forgetHome(a Answered, p *pending, op ForgetHome) {
	row, ok := a.Record.(HomeRecord)
	if p.writing || !ok || row.Epoch != op.Life.Epoch {
		delete(c.lives.past, op.Life.Home)
		c.finish(Reply{ID: a.ID})
		return
	}
	p.writing = true
	c.emit(Delete{ID: a.ID, Bucket: Homes, Key: row.Key(), Revision: int64(a.Revision)})
}
