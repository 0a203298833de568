package objectstore

import (
	"mobula/internal/errs"
	"mobula/objectstore/alloc"
)

// placed goes on with a demand that has its room.
func (rm *placing) placed(d *demand) {
	switch {
	case d.pack != nil:
		rm.packs.packInto(d)
	case d.o != nil:
		rm.restores.read(d)
	default:
		rm.creates.grantDemand(d)
	}
}

// failDemand ends a demand for which no room can be had anywhere.
func (rm *placing) failDemand(d *demand, err *errs.Error) {
	refused := true
	switch {
	case d.pack != nil:
		rm.packs.dropPack(d)
	case d.o != nil:
		refused = rm.restores.failRestore(d, err)
		rm.objects.relist(d.o)
		rm.restores.loseIfNowhere(d.o)
	default:
		rm.creates.refuseDemand(d, err)
	}
	if refused {
		rm.counts.GaveUp++
	}
}

// owner is whose file a demand is served from.
func (rm *placing) owner(d *demand) alloc.Owner {
	switch {
	case d.pack != nil:
		return alloc.Owner(d.pack.job)
	case d.o != nil:
		return alloc.Owner(d.o.job)
	}
	return alloc.Owner(d.job)
}

func (rm *placing) unavailable(d *demand) *errs.Error {
	return errs.New(errs.CodeSegmentUnavailable, "%v; backed so far %d: %s", rm.space.reserveErr, rm.space.alloc.Backed(), rm.space.figures(d.need))
}
