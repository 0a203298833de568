package owner

import (
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// budget counts what the core keeps in memory for values and tasks.
type budget struct {
	inline  int64 // bytes of inline values of objects
	specs   int64 // bytes of specs, as wire.CostOfSpec
	returns int64 // bytes of the records of further returns
	unread  int64 // bytes of answers that clients have not read, as far as is known
	cold    []*objRec
	asked   []*objRec // Pack is out
	packing int64     // bytes of asked
	timer   *timer
	looked  uint64 // queued tasks that were looked at, whether their specs can go
}

// add counts an inline value; the oldest are packed first.
func (b *budget) add(o *objRec) {
	if o.flags&objBorrowed != 0 {
		return // its own owner counts it
	}
	n := sizeOf(o.res)
	b.inline += n
	if n >= packMin && len(o.res.Value.Refs) == 0 {
		o.flags |= objCold
		b.cold = append(b.cold, o)
	}
}

// ask notes that the store is asked to take a value.
func (b *budget) ask(o *objRec) objectstore.PackValue {
	o.flags |= objPacking
	b.packing += sizeOf(o.res)
	b.asked = append(b.asked, o)
	return objectstore.PackValue{ID: o.id, Value: o.res.Value}
}

// drop uncounts a value that is given up.
func (b *budget) drop(o *objRec) {
	if o.state != object.Inline {
		return
	}
	n := sizeOf(o.res)
	b.inline -= n
	if o.flags&objPacking != 0 {
		o.flags &^= objPacking
		b.packing -= n
	}
}

// used is all that the budget bounds.
func (b *budget) used() int64 { return b.inline + b.specs + b.returns + b.unread }

func (b *budget) addSpec(s *wire.TaskSpec) { b.specs += wire.CostOfSpec(s) }

func (b *budget) dropSpec(s *wire.TaskSpec) { b.specs -= wire.CostOfSpec(s) }
