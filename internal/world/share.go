package world

import (
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// offer is an object that a program lets programs of other nodes have. It holds the object until one has got it.
type offer struct {
	of    *program
	id    ids.ObjectID
	val   uint64
	inner *offer   // what its value has a reference to: what its program has of another; nil: nothing
	by    *program // who takes it; nil: nobody yet
	got   bool     // it has the value
	gone  bool     // it was let go of before
	in    *offer   // in whose value the reference to it was found; nil: in none
}

// meet waits until the other programs have begun, for a while: there is nobody to share with before.
func (pr *program) meet() {
	pr.stage = "meets the others"
	by := pr.w.now + int64(5*time.Second)
	for pr.w.now < by && slices.ContainsFunc(pr.w.programs, func(o *program) bool { return !o.proc.begun && !o.ended }) {
		pr.call.thread.sleep(int64(time.Millisecond))
	}
}

// share offers an object to programs of other nodes, or takes one, uses one that was taken, passes it on, or gives it back.
func (pr *program) share() {
	w := pr.w
	pr.forget()
	switch w.rng.IntN(8) {
	case 0:
		pr.put()
		id := pr.known[len(pr.known)-1]
		pr.get(id) // before its owner knows it nobody else may
		w.offers = append(w.offers, &offer{of: pr, id: id, val: w.model.want[id].val})
	case 1, 2, 3:
		i := slices.IndexFunc(w.offers, func(o *offer) bool {
			return o.by == nil && !o.gone && o.of.proc.n != pr.proc.n && pr.proc.handles[o.id] == nil
		})
		if i >= 0 {
			pr.take(w.offers[i])
		}
	case 4:
		if len(pr.taken) > 0 {
			pr.getTaken(pr.taken[w.rng.IntN(len(pr.taken))])
		}
	case 5, 6:
		if len(pr.taken) > 0 {
			pr.passOn(w.rng.IntN(len(pr.taken)))
		}
	default:
		if len(pr.taken) > 0 {
			pr.giveBack(w.rng.IntN(len(pr.taken)))
		}
	}
}

// take takes an object of another node's job, and has a task use it.
func (pr *program) take(o *offer) {
	w := pr.w
	o.by = pr
	pr.proc.hold(o.id, true)
	pr.call.held = append(pr.call.held, o.id)
	if o.got = pr.getTaken(o); !o.got {
		pr.call.release(o.id)
		o.gone = true
		return
	}
	pr.taken = append(pr.taken, o)
	if o.inner != nil {
		pr.openBox(o)
		return
	}
	opts := *options["sum"]
	opts.Affinity, opts.Node = wire.AffinitySoft, w.nodes[w.rng.IntN(len(w.nodes))].home
	pr.expect(pr.call.submit(&opts, wire.Arg{Ref: o.id})[0], expectation{val: resultOf([]uint64{o.val}, 0), may: true}) // its job may end
	if w.rng.IntN(2) == 0 {
		id := pr.call.putWith(mix(w.rng.Uint64()), o.id)
		pr.known = append(pr.known, id)
	}
}

// openBox takes what the value of a taken object has a reference to, and mostly lets go of that object at once, as does who had offered it.
func (pr *program) openBox(box *offer) {
	w, in := pr.w, box.inner
	pr.proc.hold(in.id, false)
	pr.call.held = append(pr.call.held, in.id)
	pr.taken = append(pr.taken, &offer{of: in.of, id: in.id, val: in.val, inner: in.inner, by: pr, got: true, in: box})
	if w.rng.IntN(4) > 0 {
		box.of.unwanted = append(box.of.unwanted, box.id)
	}
	if w.rng.IntN(4) > 0 {
		pr.giveBack(len(pr.taken) - 2)
	}
}

// forget lets go of what the program has offered and others have got.
func (pr *program) forget() {
	for _, id := range pr.unwanted {
		if i := slices.Index(pr.known, id); i >= 0 {
			pr.known = slices.Delete(pr.known, i, i+1)
			pr.call.release(id)
		}
	}
	pr.unwanted = nil
}

// passOn offers a value with a reference to what was taken, and may keep that only so.
func (pr *program) passOn(i int) {
	w, o := pr.w, pr.taken[i]
	v := mix(w.rng.Uint64())
	id := pr.call.putWith(v, o.id)
	pr.known = append(pr.known, id)
	if w.rng.IntN(2) == 0 {
		pr.giveBack(i)
	}
	pr.get(id)
	w.offers = append(w.offers, &offer{of: pr, id: id, val: v, inner: o})
}

// giveBack lets go of what was taken.
func (pr *program) giveBack(i int) {
	o := pr.taken[i]
	pr.taken = slices.Delete(pr.taken, i, i+1)
	pr.call.release(o.id)
}

// getTaken reads an object of another node's job, which has to be there unless that job is over, or a node was taken for dead by which it came. False: it is not.
func (pr *program) getTaken(o *offer) bool {
	h := pr.proc.handles[o.id]
	if h.res != nil && pr.proc.pins[o.id] == nil {
		h.res = nil
	}
	out := pr.call.get(o.id)[0]
	w := pr.w
	if out.err == nil {
		w.model.shared++
		if o.in != nil {
			w.model.passed++
		}
	}
	switch {
	case out.err == nil && out.val != o.val:
		w.fail("%s of another node's job is %d, and is to be %d", briefObject(o.id), out.val, o.val)
	case out.err != nil && !o.mayBeGone(w) && !w.model.mayFail(o.id) && (!isShort(out.err) || !w.plan.short()):
		w.fail("%s of another node's job, which is to be %d, is error %d: %v", briefObject(o.id), o.val, out.err.Code, out.err)
	}
	return out.err == nil
}

// mayBeGone tells whether the job of an offer is over, or its object was let go of before anybody had it, or a home was lost by which the reference came. That a job has
// ended by which it came does not matter.
func (o *offer) mayBeGone(w *World) bool {
	for _, pr := range []*program{o.of, o.by} {
		if pr.ended || pr.cut || pr.proc.dead || pr.proc.buried || pr.homeLost() {
			return true
		}
	}
	for x := o.in; x != nil; x = x.inner.in {
		if x.of.homeLost() || w.model.mayFail(x.id) {
			return true
		}
	}
	return o.gone && !o.got
}

// homeLost tells whether the node of a program was lost, or taken for that.
func (pr *program) homeLost() bool {
	n := pr.proc.n
	return n.wasLost || pr.w.court.fenced[n.home] > 0
}

// offers tells whether a program has an object that is to be taken.
func (pr *program) offers(id ids.ObjectID) bool {
	return slices.ContainsFunc(pr.w.offers, func(o *offer) bool { return o.of == pr && o.id == id && !o.got && !o.gone })
}

// withdraw takes the program's offers back.
func (pr *program) withdraw() {
	for _, o := range pr.w.offers {
		if o.of == pr {
			o.gone = true
		}
	}
}

// putWith is put of a small value with a reference to an object.
func (c *call) putWith(v uint64, inner ids.ObjectID) ids.ObjectID {
	c.puts++
	id := c.task.In(c.p.job).Put(c.puts)
	c.p.hold(id, false)
	c.p.send(&wire.PutValue{ID: id, Value: wire.Value{Meta: c.meta(), Data: bytesOf(v, smallSize(v)), Refs: []ids.ObjectID{inner}}})
	c.held = append(c.held, id)
	c.p.w.model.want[id] = &expectation{val: v}
	return id
}
