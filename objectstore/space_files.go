package objectstore

import (
	"mobula/objectstore/alloc"
)

// Each job's processes have a file of their own, made when it is first needed. What another job's file had warm where a block is
// cut is given back there first, so that no page has memory twice: decision 0016.

// punchTakenFromOthers gives back what the last allocation took from other owners. A part to which a reservation brings memory is backed when that ends.
func (sp *space) punchTakenFromOthers() {
	var out []alloc.Owned
	for _, t := range sp.alloc.Taken() {
		out = append(out, sp.settled(t)...)
	}
	if len(out) > 0 {
		sp.emit(Punch{out})
	}
}

// punchUnowned gives back what a writer that gave up may have brought to where a reservation that has ended was on its way, and has brought
// nothing that counts. What is in use now is looked at when it is given back.
func (sp *space) punchUnowned(r *reservation) {
	var out []alloc.Owned
	for _, x := range r.ranges {
		for _, loose := range sp.alloc.FreeUnbacked(alloc.Owned{Owner: r.owner, Range: x}) {
			out = append(out, sp.settled(loose)...)
		}
	}
	if len(out) > 0 {
		sp.emit(Punch{out})
	}
}

// punchUnwritten gives back what a writer may have brought of a part of a cold extent. A
// reservation under way that meets it would count what was punched: it counts what is there when it ends.
func (sp *space) punchUnwritten(b alloc.Block) {
	sp.alloc.Unback(b)
	if rs := sp.settled(alloc.Owned{Owner: b.Owner, Range: b.Range()}); len(rs) > 0 {
		sp.emit(Punch{rs})
	}
}

// pending tells whether a reservation for another owner than o is under way that meets the range.
func (sp *space) pending(o alloc.Owner, r alloc.Range) bool {
	if sp.reserving == 0 {
		return false
	}
	for _, j := range sp.jobs {
		if v, ok := j.(*reservation); ok && v.owner != o {
			for _, x := range v.ranges {
				if x.Off < r.End() && r.Off < x.End() {
					return true
				}
			}
		}
	}
	return false
}

// settled lists the parts of an owner's range to which no memory is on its way.
func (sp *space) settled(r alloc.Owned) []alloc.Owned {
	out := []alloc.Owned{r}
	if sp.reserving == 0 {
		return out
	}
	for _, j := range sp.jobs {
		v, ok := j.(*reservation)
		if !ok || v.owner != r.Owner || v.d != nil && v.d.cold {
			continue
		}
		for _, x := range v.ranges {
			out = without(out, x)
		}
	}
	return out
}

// without takes a range out of others.
func without(rs []alloc.Owned, x alloc.Range) (out []alloc.Owned) {
	for _, r := range rs {
		if x.End() <= r.Off || r.End() <= x.Off {
			out = append(out, r)
			continue
		}
		if r.Off < x.Off {
			out = append(out, alloc.Owned{Owner: r.Owner, Range: alloc.Range{Off: r.Off, Size: x.Off - r.Off}})
		}
		if x.End() < r.End() {
			out = append(out, alloc.Owned{Owner: r.Owner, Range: alloc.Range{Off: x.End(), Size: r.End() - x.End()}})
		}
	}
	return out
}
