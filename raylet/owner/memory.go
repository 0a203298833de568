package owner

import (
	"bytes"
	"time"

	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

const (
	packMin   = 1 << 10 // bytes; a smaller value costs more as an object of the store
	packBatch = 4 << 20 // bytes asked for and not answered
	packRetry = time.Second
)

func sizeOf(r *wire.Result) int64 { return int64(len(r.Value.Data) + len(r.Value.Meta)) }

// packable tells whether the store can take an inline value: what it refers to only the owner counts.
func (o *objRec) packable() bool { return len(o.res.Value.Refs) == 0 && o.flags&objBorrowed == 0 }

// enforceBudget packs values and pages specs out while the budget is exceeded.
func (ms *memory) enforceBudget() {
	b := &ms.objects.budget
	if len(b.cold) > 64 && b.inline < int64(len(b.cold))*packMin/2 {
		ms.pruneInlineLRU()
	}
	if b.used() <= ms.cfg.InlineBudget {
		return
	}
	ms.pack()
	if b.specs > ms.cfg.InlineBudget/2 {
		ms.pageOutSpecs()
	}
}

// pruneInlineLRU forgets the values that are no longer there.
func (ms *memory) pruneInlineLRU() {
	b := &ms.objects.budget
	keep := b.cold[:0]
	for _, o := range b.cold {
		if o.state == object.Inline && o.flags&objPacking == 0 {
			keep = append(keep, o)
		}
	}
	clear(b.cold[len(keep):])
	b.cold = keep
}

// pack asks the store to take values, a batch at a time.
func (ms *memory) pack() {
	b := &ms.objects.budget
	var vs []objectstore.PackValue
	i := 0
	for ; i < len(b.cold) && b.packing < packBatch && b.used()-b.packing > ms.cfg.InlineBudget; i++ {
		o := b.cold[i]
		if o.state != object.Inline || o.flags&objPacking != 0 || !o.held() && o.lineage == 0 {
			continue
		}
		vs = append(vs, b.ask(o))
	}
	clear(b.cold[:i])
	b.cold = b.cold[i:]
	ms.askPack(vs)
}

func (ms *memory) askPack(vs []objectstore.PackValue) {
	b := &ms.objects.budget
	if len(vs) == 0 {
		return
	}
	ms.toStore(objectstore.Pack{Job: ms.cfg.Job, Values: vs})
	if b.timer == nil {
		b.timer = ms.timers.add(ms.now+int64(packRetry), timer{kind: timerPack})
	}
}

// packed says that the store has a value now.
func (ms *memory) packed(m objectstore.Packed) {
	o := ms.objects.object(m.ID)
	if o == nil || o.state != object.Inline || len(o.res.Value.Refs) > 0 {
		if o == nil || o.state == object.Freed {
			ms.copies.frees = append(ms.copies.frees, m.ID) // it was dropped meanwhile
		}
		return
	}
	ms.objects.budget.drop(o)
	ms.journal.logPacked(o, m.Size)
	ms.objects.moveObject(o, object.Pack)
	o.flags |= objPacked
	meta := bytes.Clone(o.res.Value.Meta) // it lies beside the value, whose bytes are to go
	o.res = &wire.Result{Kind: wire.ResultStored, Value: wire.Value{Meta: meta}, Size: m.Size}
	ms.stats.Packed++
	ms.packSettled(o)
}

// packSettled wakes what waits for the end of a pack. Each looks again at where the value is.
func (ms *memory) packSettled(o *objRec) {
	if w := o.waits; w != nil {
		o.waits = nil
		ms.objects.wake(w)
		if len(w.gets) > 0 {
			w.tasks, o.waits = nil, w
		} else {
			ms.objects.recycle(w)
		}
	}
}

// packOver gives up on packs that were not answered: the store had no room. They are tried
// again, last.
func (ms *memory) packOver() {
	b := &ms.objects.budget
	b.timer = nil
	for _, o := range b.asked {
		if o.flags&objPacking != 0 {
			o.flags &^= objPacking
			b.packing -= sizeOf(o.res)
			b.cold = append(b.cold, o)
			ms.packSettled(o)
		}
	}
	clear(b.asked)
	b.asked = b.asked[:0]
}

// unpack reads a value back from the log after its packed copy was lost.
func (ms *memory) unpack(o *objRec) bool {
	f := &fetch{obj: o, left: []*uint64{&o.cookie}}
	if t := o.rec; t != nil {
		f.left = append(f.left, &t.doneAt)
		if t.x != nil {
			f.left = append(f.left, t.x.ends...)
		}
	}
	if !ms.askNext(f) {
		return false
	}
	ms.objects.moveObject(o, object.Lose)
	o.res = nil
	o.flags &^= objPacked
	return true
}

// askNext asks for the next record that may have an object's value; false: there is none.
func (ms *memory) askNext(f *fetch) bool {
	for len(f.left) > 0 {
		place := f.left[0]
		f.left = f.left[1:]
		if *place != 0 {
			ms.journal.askLog(place, f)
			return true
		}
	}
	return false
}

// fetched is a record from the log.
func (ms *memory) fetched(ev Fetched) {
	f := ms.journal.fetches[ev.Token]
	if f == nil {
		return
	}
	delete(ms.journal.fetches, ev.Token)
	if f.task != nil {
		ms.specFetched(f.task, ev)
		return
	}
	ms.valueFetched(f, ev)
}

func (ms *memory) valueFetched(f *fetch, ev Fetched) {
	o := f.obj
	if o.state != object.Pending {
		return
	}
	res, err := findResult(ev, o.id)
	if err != nil && ms.askNext(f) {
		return
	}
	if err != nil {
		ms.objects.resolve(o, errorResult(err), object.SetError)
		return
	}
	ms.objects.resolve(o, res, object.SetInline)
}

// unpacking tells whether an object's value is on its way back from the log.
func (ms *memory) unpacking(o *objRec) bool {
	for _, f := range ms.journal.fetches {
		if f.obj == o {
			return true
		}
	}
	return false
}
