package gcs

import (
	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
)

// beginLife reads the row of a directory that had a life before. A new directory gets a home above all homes in the view, by creating its row;
// another node may have created that row first.
func (c *Core) beginLife(id uint64, p *pending, op Begin) {
	claim := op.Claim
	if claim.Last != nil {
		c.emit(Read{ID: id, Bucket: Homes, Key: claim.Last.Home.String()})
		return
	}
	var next ids.Home
	for _, r := range c.view[Homes] {
		h := r.(HomeRecord)
		if h.Life == claim.Life && h.Identity == claim.Identity { // it was granted before the core was restarted
			next = h.Home
			break
		}
		next = max(next, h.Home+1)
	}
	c.writeHome(id, p, HomeRecord{Row: register.First(next, claim), Node: op.Node}, 0)
}

func (c *Core) writeHome(id uint64, p *pending, row HomeRecord, revision int64) {
	if row.Home > ids.MaxHome {
		c.finish(Reply{ID: id, Err: errs.New(errs.CodeInvalid, "all homes of the cluster, up to %v, are given out", ids.MaxHome)})
		return
	}
	p.writing, p.home = true, row
	c.emit(Write{ID: id, Record: p.home, Revision: revision})
}

// begun goes on with a Begin. After a write that came too late, or whose outcome is unknown, it reads the row again.
func (c *Core) begun(a Answered, p *pending, op Begin) {
	claim := op.Claim
	if p.writing {
		if !a.Conflict {
			c.finish(Reply{ID: a.ID, Records: []Record{p.home}})
			return
		}
		p.writing = false
		c.emit(Read{ID: a.ID, Bucket: Homes, Key: p.home.Key()})
		return
	}
	row := p.home.Row // the row that a new directory tried to create
	switch {
	case a.Record != nil:
		row = a.Record.(HomeRecord).Row
	case claim.Last != nil: // the node was its own control plane, or this one has lost the row
		row = *claim.Last
	}
	granted := a.Record != nil && row.Life == claim.Life && row.Identity == claim.Identity
	if claim.Last == nil && a.Record != nil && !granted {
		c.writeHome(a.ID, p, HomeRecord{Row: register.First(row.Home+1, claim), Node: op.Node}, 0)
		return
	}
	next, err := row.Next(claim)
	switch {
	case err != nil:
		c.finish(Reply{ID: a.ID, Err: err})
	case a.Record != nil && next == row:
		c.finish(Reply{ID: a.ID, Records: []Record{a.Record}})
	default:
		var fenced uint64
		if a.Record != nil {
			fenced = a.Record.(HomeRecord).Fenced
		}
		c.writeHome(a.ID, p, HomeRecord{Row: next, Node: op.Node, Fenced: fenced}, int64(a.Revision))
	}
}
