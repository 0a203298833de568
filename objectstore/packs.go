package objectstore

import (
	"encoding/binary"

	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/wire"
)

// packTarget is the data in one block of packed values: large enough that a block's
// record is nothing beside it, small enough to come back for one value.
const packTarget = 1 << 20

// pack moves values into blocks. Each value stays an object of its own; blocks are
// allocated, spilled and restored whole. A block that finds no room is given up.
func (pk *packs) pack(e Pack) {
	p := &packing{job: e.Job}
	var size uint64
	flush := func() {
		if len(p.values) > 0 {
			p.dropped = make(map[ids.ObjectID]bool)
			for _, v := range p.values {
				pk.packing[v.ID] = p
			}
			p.d = &demand{lane: laneCreate, need: size, pack: p}
			pk.demands.enqueue(p.d)
		}
		p, size = &packing{job: e.Job}, 0
	}
	for _, v := range e.Values {
		if r, ok := pk.objects.objs[v.ID]; ok {
			pk.emit(ToOwner{e.Job, Packed{v.ID, r.size()}}) // said twice
			continue
		}
		n := aligned(uint64(len(v.Value.Data)))
		if _, ok := pk.packing[v.ID]; ok || n > pk.space.alloc.Limit() {
			continue
		}
		if size+n > min(packTarget, pk.space.alloc.Limit()) {
			flush()
		}
		p.values = append(p.values, v)
		size += n
	}
	flush()
}

func aligned(n uint64) uint64 { return (n + alloc.Align - 1) &^ (alloc.Align - 1) }

func (pk *packs) dropPack(d *demand) {
	d.stage = stageDone
	for _, v := range d.pack.values {
		if pk.packing[v.ID] == d.pack {
			delete(pk.packing, v.ID)
		}
	}
}

// packInto fills the block that a packing was given.
func (pk *packs) packInto(d *demand) {
	pk.dropPack(d)
	o := &object{slot: pk.objects.newSlot(), size: d.need, job: d.pack.job, block: d.block, resident: true}
	var parts []Part
	var off uint64
	for _, v := range d.pack.values {
		if d.pack.dropped[v.ID] {
			continue
		}
		if o.id.IsZero() {
			o.id = v.ID // a block goes by its first value's id in spill files
		}
		n := uint64(len(v.Value.Data))
		if n > 0 {
			parts = append(parts, Part{off, v.Value.Data})
		}
		pk.objects.objs[v.ID] = ref{o, uint32(len(o.values))}
		o.values = append(o.values, value{off: uint32(off), size: uint32(n), metaOff: uint32(len(o.meta)), mLen: uint32(len(v.Value.Meta))})
		o.meta = append(o.meta, v.Value.Meta...)
		off += aligned(n)
	}
	if o.live = len(o.values); o.live == 0 {
		pk.objects.freeSlots = append(pk.objects.freeSlots, o.slot)
		pk.space.freeBlock(d.block)
		return
	}
	pk.counts.Blocks++
	pk.counts.PackedValues += uint64(o.live)
	pk.emit(CopyIn{d.pack.job, wire.Extent{Off: o.block.Off, Size: o.size}, parts})
	pk.objects.recordWith(o, pk.directory(d.pack, o))
	for _, v := range d.pack.values {
		if !d.pack.dropped[v.ID] {
			pk.emit(ToOwner{d.pack.job, Packed{v.ID, uint64(len(v.Value.Data))}})
		}
	}
	pk.objects.relist(o)
}

// A directory is longIDs and its entries: task 20, index 4, offset 4, size 4, length of meta 2, meta. One of release 0.4 is entries alone, with tasks
// of 16 bytes; none begins with longIDs, since its jobs were never that many.
const (
	longIDs    = 0xff
	afterTask  = 4 + 4 + 4 + 2 // bytes of an entry between the task's id and meta
	shortIDLen = ids.TaskSize - 4
)

func (pk *packs) directory(p *packing, o *object) []byte {
	out := append(make([]byte, 0, 1+len(o.values)*(ids.TaskSize+afterTask)+len(o.meta)), longIDs)
	i := 0
	for _, v := range p.values {
		if p.dropped[v.ID] {
			continue
		}
		e := o.values[i]
		out = append(out, v.ID.Task[:]...)
		out = binary.LittleEndian.AppendUint32(out, v.ID.Index)
		out = binary.LittleEndian.AppendUint32(out, e.off)
		out = binary.LittleEndian.AppendUint32(out, e.size)
		out = binary.LittleEndian.AppendUint16(out, uint16(e.mLen))
		out = append(out, o.meta[e.metaOff:e.metaOff+e.mLen]...)
		i++
	}
	return out
}

// readDirectory is the reverse of directory; false if the bytes are not one of a block of
// size bytes.
func readDirectory(b []byte, size uint64) (idList []ids.ObjectID, values []value, meta []byte, ok bool) {
	idLen := shortIDLen
	if len(b) > 0 && b[0] == longIDs {
		idLen, b = ids.TaskSize, b[1:]
	}
	for len(b) > 0 {
		if len(b) < idLen+afterTask {
			return nil, nil, nil, false
		}
		task, _ := ids.TaskOf(b[:idLen])
		b = b[idLen:]
		id := ids.ObjectID{Task: task, Index: binary.LittleEndian.Uint32(b)}
		v := value{off: binary.LittleEndian.Uint32(b[4:]), size: binary.LittleEndian.Uint32(b[8:]), metaOff: uint32(len(meta))}
		v.mLen = uint32(binary.LittleEndian.Uint16(b[12:]))
		b = b[afterTask:]
		if uint64(v.off)+uint64(v.size) > size || len(b) < int(v.mLen) {
			return nil, nil, nil, false
		}
		meta = append(meta, b[:v.mLen]...)
		b = b[v.mLen:]
		idList, values = append(idList, id), append(values, v)
	}
	return idList, values, meta, len(values) > 0
}

// free drops an object to which no reference is left. Pins keep the bytes until they fall.
func (pk *packs) free(id ids.ObjectID) {
	if p, ok := pk.packing[id]; ok {
		delete(pk.packing, id)
		if p.dropped[id] = true; len(p.dropped) == len(p.values) && p.d.stage == stageWaiting {
			pk.dropPack(p.d)
		}
	}
	r, ok := pk.objects.objs[id]
	if !ok {
		return
	}
	if r.o.values != nil {
		r.o.values[r.sub].gone = true
		pk.objects.dropFreedValue(id, r)
	} else {
		pk.objects.letGo(r.o)
	}
	pk.restores.cancelRestore(r.o)
	pk.objects.relist(r.o)
}
