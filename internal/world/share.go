package world

import (
	"slices"

	"mobula/internal/ids"
	"mobula/wire"
)

// offer is an object that a program lets programs of other nodes have. It holds the object until one has got it.
type offer struct {
	of   *program
	id   ids.ObjectID
	val  uint64
	by   *program // who takes it; nil: nobody yet
	got  bool     // it has the value
	gone bool     // it was let go of before
}

// share offers an object to programs of other nodes, or takes one, uses one that was taken, or gives it back.
func (pr *program) share() {
	w := pr.w
	switch w.rng.IntN(4) {
	case 0:
		pr.put()
		id := pr.known[len(pr.known)-1]
		pr.get(id) // before its owner knows it nobody else may
		w.offers = append(w.offers, &offer{of: pr, id: id, val: w.model.want[id].val})
	case 1:
		i := slices.IndexFunc(w.offers, func(o *offer) bool {
			return o.by == nil && !o.gone && o.of.proc.n != pr.proc.n && pr.proc.handles[o.id] == nil
		})
		if i >= 0 {
			pr.take(w.offers[i])
		}
	case 2:
		if len(pr.taken) > 0 {
			pr.getTaken(pr.taken[w.rng.IntN(len(pr.taken))])
		}
	default:
		if len(pr.taken) > 0 {
			i := w.rng.IntN(len(pr.taken))
			o := pr.taken[i]
			pr.taken = slices.Delete(pr.taken, i, i+1)
			pr.call.release(o.id)
		}
	}
}

// take takes an object of another node's job, and has a task use it.
func (pr *program) take(o *offer) {
	o.by = pr
	pr.proc.hold(o.id, true)
	pr.call.held = append(pr.call.held, o.id)
	if o.got = pr.getTaken(o); !o.got {
		pr.call.release(o.id)
		o.gone = true
		return
	}
	pr.taken = append(pr.taken, o)
	opts := *options["sum"]
	opts.Affinity, opts.Node = wire.AffinitySoft, pr.w.nodes[pr.w.rng.IntN(len(pr.w.nodes))].home
	pr.expect(pr.call.submit(&opts, wire.Arg{Ref: o.id})[0], expectation{val: resultOf([]uint64{o.val}, 0), may: true}) // its job may end
	if pr.w.rng.IntN(2) == 0 {
		id := pr.call.putWith(mix(pr.w.rng.Uint64()), o.id)
		pr.known = append(pr.known, id)
	}
}

// getTaken reads an object of another node's job, which has to be there unless that job is over, or either node was taken for dead. False: it is not.
func (pr *program) getTaken(o *offer) bool {
	h := pr.proc.handles[o.id]
	if h.res != nil && pr.proc.pins[o.id] == nil {
		h.res = nil
	}
	out := pr.call.get(o.id)[0]
	w := pr.w
	if out.err == nil {
		w.model.shared++
	}
	switch {
	case out.err == nil && out.val != o.val:
		w.fail("%s of another node's job is %d, and is to be %d", briefObject(o.id), out.val, o.val)
	case out.err != nil && !o.mayBeGone(w) && !w.model.mayFail(o.id) && (!isShort(out.err) || !w.plan.short()):
		w.fail("%s of another node's job, which is to be %d, is error %d: %v", briefObject(o.id), o.val, out.err.Code, out.err)
	}
	return out.err == nil
}

// mayBeGone tells whether the job of an offer is over, or its object was let go of before anybody had it.
func (o *offer) mayBeGone(w *World) bool {
	for _, pr := range []*program{o.of, o.by} {
		if pr.ended || pr.cut || pr.proc.dead || pr.proc.buried || w.court.fenced[pr.proc.n.home] > 0 {
			return true
		}
	}
	return o.gone && !o.got
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
