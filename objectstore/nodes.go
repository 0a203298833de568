package objectstore

import (
	"fmt"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/spill"
)

// Objects have copies on other nodes: decision 0018. Where, the object's owner knows, and says. To this core another node is one more place
// that an object is restored from: what is known to be elsewhere needs no write before its memory is used again, and is imported when
// somebody asks for it. The other way round another node reads an object here under a pin of its own, an export.

// located takes an owner's word on where else an object is. Where that is nowhere, the owner is told whether it is here.
func (no *nodes) located(e Located) {
	o := no.objects.objs[e.ID].o
	switch {
	case o != nil && o.values != nil:
		return // a block is kept as a whole
	case len(e.On) == 0 && (o == nil || o.attempt != e.Attempt):
		m := no.creates.missing(e.ID)
		m.Copy, m.Err = e.Attempt, lostError(e.ID, "is not on this node")
		no.emit(ToOwner{e.ID.Job(), m})
		return
	case o != nil && o.attempt != e.Attempt && !o.gone:
		return // another attempt's bytes are not these
	case o != nil && o.attempt != e.Attempt: // who waits for that asks again
		no.restores.supersede(e.ID, ref{o: o}, lostError(e.ID, "was made again"))
		o = nil
	case o != nil && o.gone:
		no.objects.keep(o)
	}
	if o == nil {
		o = &object{id: e.ID, attempt: e.Attempt, slot: no.objects.newSlot(), size: e.Size, meta: e.Meta, job: e.ID.Job()}
		no.objects.objs[e.ID] = ref{o: o}
		no.objects.recordWith(o, append([]byte{}, e.Meta...))
	}
	no.setElsewhere(o, slices.Clone(e.On))
	if len(e.On) == 0 && (o.resident || o.spilled) && !o.dead && !o.gone {
		no.emit(ToOwner{o.id.Job(), Imported{o.id, o.attempt}}) // it stays from now on: only a copy is dropped without a word
	}
}

// setElsewhere notes the nodes that have an object. One that is on none, and not here, is lost; one that is here for another job alone is kept for its own.
func (no *nodes) setElsewhere(o *object, on []ids.Home) {
	no.noteElsewhere(o, on)
	if len(on) > 0 || o.resident || o.spilled || o.draining {
		no.objects.relist(o)
		return
	}
	if o.twin() != nil && !o.gone {
		no.restores.rescue(o)
		return
	}
	if d := o.restore; d != nil {
		if d.stage == stageReading {
			return // its end settles it
		}
		no.restores.failRestore(d, lostError(o.id, "is on no node any more"))
	}
	no.restores.forget(o)
	no.emit(ToOwner{o.id.Job(), Lost{ID: o.id, Copy: o.attempt, Err: lostError(o.id, "is on no node any more")}})
}

// noteElsewhere has a new core know it too, unless the object was let go.
func (no *nodes) noteElsewhere(o *object, on []ids.Home) {
	switch k := locatedKey(o.id); {
	case o.gone && len(on) == 0 && o.noted:
		no.objects.forgetPlaces(o)
	case o.gone:
	case len(on) > 0:
		no.keepNote(k, Located{o.id, o.attempt, o.size, o.meta, on})
	case len(o.elsewhere) > 0:
		no.emit(Forget{k})
	}
	o.elsewhere = on
}

var errNowhere = fmt.Errorf("no node has it: %w", spill.ErrMissing)

// importInto has a demand's object read from another node.
func (no *nodes) importInto(d *demand, job uint64, to SpillRead) {
	o := d.o.origin()
	if len(o.elsewhere) == 0 {
		no.restores.restoreDone(RestoreDone{job, errNowhere})
		return
	}
	d.imports, d.node = true, o.elsewhere[0]
	no.emit(Import{Job: job, From: d.node, Others: slices.Clone(o.elsewhere[1:]), ID: o.id, Attempt: o.attempt, Place: to.Place, Extent: to.Extent, Cold: d.cold})
}

// comesFromNode tells whether an object that is not in memory is read from another node.
func (o *object) comesFromNode() bool { return o.of == nil && !o.spilled && o.twin() == nil }

// importFailed tells whether an import that failed goes on at once with another node. One that has lost the object is not asked again.
func (no *nodes) importFailed(d *demand, lost bool) bool {
	if !d.imports {
		return false
	}
	d.imports = false
	o := d.o.origin()
	on := slices.DeleteFunc(slices.Clone(o.elsewhere), func(h ids.Home) bool { return h == d.node })
	if !lost && len(on) < len(o.elsewhere) {
		on = append(on, d.node) // the others first
	}
	no.noteElsewhere(o, on)
	return lost && (len(on) > 0 || d.mayCopy())
}

// export pins an object for another node.
func (no *nodes) export(e Export) {
	k := exportKey{e.To, e.Token}
	if x := no.exports[k]; x != nil {
		if x.r.o.resident {
			no.exported(x)
		}
		return
	}
	r := no.objects.objs[e.ID]
	if o := r.o; o == nil || o.values == nil && o.attempt != e.Attempt || !o.isHere() {
		no.emit(Exported{To: e.To, Token: e.Token, ID: e.ID, Err: lostError(e.ID, "is not on this node")})
		return
	}
	no.note++
	x := &export{e, r, no.note}
	no.exports[k] = x
	no.keepNote(NoteKey{N: x.note}, e)
	r.o.exports++
	if r.o.resident {
		no.exported(x)
	} else {
		no.restores.requestRestore(r.o, laneExport)
	}
	no.objects.relist(r.o)
}

func (no *nodes) exported(x *export) {
	no.emit(Exported{To: x.To, Token: x.Token, ID: x.ID, Place: x.r.o.job, Extent: x.r.extent()})
}

// endExport drops another node's pin. Whoever refuses it says why.
func (no *nodes) endExport(k exportKey, why *errs.Error) {
	x := no.exports[k]
	if x == nil {
		return
	}
	delete(no.exports, k)
	no.emit(Forget{NoteKey{N: x.note}})
	if why != nil {
		no.emit(Exported{To: x.To, Token: x.Token, ID: x.ID, Err: why})
	}
	o := x.r.o
	o.exports--
	no.restores.cancelRestore(o)
	no.progress.noteProgress()
	no.objects.relist(o)
}

// nodeGone drops a node's copies. Its pins fall when who reads for it says so: it may be in the middle of the bytes.
func (no *nodes) nodeGone(node ids.Home) {
	for _, id := range sortedObjects(no.objects.objs) {
		if o := no.objects.objs[id].o; o != nil && slices.Contains(o.elsewhere, node) {
			no.setElsewhere(o, slices.DeleteFunc(slices.Clone(o.elsewhere), func(h ids.Home) bool { return h == node }))
		}
	}
}

// exportsOf lists the pins of other nodes on an object, in the order in which they were asked for.
func (no *nodes) exportsOf(o *object) []*export {
	if o.exports == 0 {
		return nil
	}
	return slices.DeleteFunc(no.sortedExports(), func(x *export) bool { return x.r.o != o })
}

func (no *nodes) sortedExports() []*export {
	out := make([]*export, 0, len(no.exports))
	for _, x := range no.exports {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b *export) int { return int(a.note) - int(b.note) })
	return out
}

// isHere tells whether there are bytes of an object on this node, be it for another job.
func (o *object) isHere() bool { return o.resident || o.spilled || o.twin() != nil }

// origin is what a copy for another job is of, or the object itself.
func (o *object) origin() *object {
	if o.of != nil {
		return o.of
	}
	return o
}
