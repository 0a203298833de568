package gcs

import (
	"errors"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/remote"
	"mobula/remote/membership"
)

// ErrFenced is wrapped when a call comes from a life that is over.
var ErrFenced = errors.New("gcs: the node's life is over")

// fenceBit is set in the IDs of requests by which the judge ends lives. Nobody waits for their replies.
const fenceBit = 1 << 63

// lives is which lives are over, and who ends them.
type lives struct {
	fenced map[ids.Home]uint64 // lives up to this epoch are over
	judge  *membership.Judge   // nil: others judge
	forget int64               // when the judge next looks for rows that were kept long enough
	past   map[ids.Home]pastLife
}

// appoint makes the judge, and has it know what the view has.
func (c *Core) appoint(cfg *membership.JudgeConfig, self remote.Life) {
	c.lives.judge = nil
	if cfg == nil {
		return
	}
	c.lives.judge = membership.NewJudge(*cfg, self)
	for _, r := range c.view[Nodes] {
		n := r.(NodeRecord)
		c.lives.judge.Heard(c.now, n.Life(), n.Beats)
	}
	for home, epoch := range c.lives.fenced {
		c.lives.judge.Ended(remote.Life{Home: home, Epoch: epoch})
	}
}

// livesOn takes a change in the table of nodes. The judge fences the lives that it finds over, until the table of homes says so.
func (c *Core) livesOn(ev Changed) {
	if ev.Record == nil {
		if was, ok := c.view[Nodes][ev.Key].(NodeRecord); ok {
			c.programEnded(was)
			c.end(was.Life())
			c.emit(Left{was.Life()})
		}
		return
	}
	n := ev.Record.(NodeRecord)
	if ev.Key != n.Key() {
		return
	}
	delete(c.lives.past, n.Home)
	c.lifeGoesOn(n)
}

// lifeGoesOn takes a heartbeat.
func (c *Core) lifeGoesOn(n NodeRecord) {
	c.emit(Heard{n})
	if c.lives.judge == nil {
		return
	}
	for _, over := range c.lives.judge.Heard(c.now, n.Life(), n.Beats) {
		id := fenceBit | uint64(over.Home)
		if c.pending[id] == nil {
			c.request(Request{ID: id, Op: Fence{over}})
		}
	}
}

// verdict takes a change in the table of homes.
func (c *Core) verdict(ev Changed) {
	h, ok := ev.Record.(HomeRecord)
	if !ok || h.Fenced <= c.lives.fenced[h.Home] {
		return
	}
	c.lives.fenced[h.Home] = h.Fenced
	over := remote.Life{Home: h.Home, Epoch: h.Fenced}
	c.end(over)
	c.emit(Fenced{over})
}

func (c *Core) end(l remote.Life) {
	if c.lives.judge != nil {
		c.lives.judge.Ended(l)
	}
}

func (c *Core) accused(ev Accused) {
	if c.lives.judge != nil {
		c.lives.judge.Accused(c.now, ev.By, ev.Life)
	}
}

// fence goes on with a Fence: it reads the home's row and writes it as fenced.
func (c *Core) fence(a Answered, p *pending, op Fence) {
	if p.writing {
		if !a.Conflict {
			c.finish(Reply{ID: a.ID, Records: []Record{p.home}})
			return
		}
		p.writing = false
		c.emit(Read{ID: a.ID, Bucket: Homes, Key: op.Life.Home.String()})
		return
	}
	row, ok := a.Record.(HomeRecord)
	switch {
	case !ok || op.Life.Epoch > row.Epoch:
		c.finish(Reply{ID: a.ID, Err: errs.New(errs.CodeNotFound, "home %v has had no life %d", op.Life.Home, op.Life.Epoch)})
	case op.Life.Epoch <= row.Fenced:
		c.finish(Reply{ID: a.ID, Records: []Record{row}})
	default:
		row.Fenced = op.Life.Epoch
		c.writeHome(a.ID, p, row, int64(a.Revision))
	}
}
