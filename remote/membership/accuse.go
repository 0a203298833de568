package membership

import (
	"cmp"
	"math"
	"slices"

	"mobula/internal/ids"
)

// doubts are the lives about which the control plane is asked. They die in crowds, and every other node notices: so each node asks by chance only, the
// more likely the longer there is no verdict, and never more than so often.
type doubts struct {
	lives map[ids.Home]*member
	at    int64 // when one of them is due, at the earliest
	since int64 // when the present interval began
	asked int   // questions in it
}

// plea is when the control plane is asked about a life next.
type plea struct {
	at    int64
	round int   // how often it was considered and not done
	gap   int64 // before the next question, once one was asked
}

// doubt begins or ends the questions about a life.
func (c *Core) doubt(m *member) {
	d := &c.doubts
	home := m.node.Home
	if m.state != Suspect && m.state != Dead {
		delete(d.lives, home)
		return
	}
	if d.lives[home] == nil {
		m.plea = plea{at: c.now, gap: int64(c.cfg.AccuseEvery)}
		d.lives[home] = m
		d.at = min(d.at, c.now)
	}
}

// plead asks about the lives that are due, first about those that have waited longest.
func (c *Core) plead() {
	d := &c.doubts
	if d.at > c.now {
		return
	}
	every := int64(c.cfg.AccuseEvery)
	if c.now-d.since >= every {
		d.since, d.asked = c.now, 0
	}
	for _, m := range d.due(c.now) {
		if d.asked >= c.cfg.AccuseBurst {
			break
		}
		p := &m.plea
		if !c.chosen(p.round) {
			p.round++
			p.at = c.now + every
			continue
		}
		d.asked++
		c.emit(Accuse{Life: m.node.Life, Why: m.why})
		p.at = c.now + p.gap
		p.gap = min(2*p.gap, int64(c.cfg.AccuseMax))
	}
	d.at = math.MaxInt64
	for _, m := range d.lives {
		d.at = min(d.at, m.plea.at)
	}
	if d.at <= c.now { // more than may be asked now
		d.at = d.since + every
	}
}

// due gives the lives whose time has come.
func (d *doubts) due(now int64) (out []*member) {
	for _, m := range d.lives {
		if m.plea.at <= now {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.plea.at, b.plea.at), cmp.Compare(a.node.Home, b.node.Home))
	})
	return out
}

// chosen tells by chance whether this node is one of those that ask, of whom there are twice as many in each round.
func (c *Core) chosen(round int) bool {
	n := int64(c.size())
	return c.cfg.Random == nil || c.cfg.Random(n) < int64(c.cfg.Accusers)<<min(round, 32)
}
