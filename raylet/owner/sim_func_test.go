package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// simGrant is an extent that a client has written and that is not sealed.
type simGrant struct {
	val uint64
	by  ids.ClientID
}

// What "kids" submits: the second takes one of the first's two returns.
var (
	pairOpts = &wire.TaskOptions{Func: "pair", NumReturns: 2, MaxRetries: -1}
	kidOpts  = &wire.TaskOptions{Func: "sum", NumReturns: 1, MaxRetries: -1}
)

// argVals are the values of a task's arguments as its worker sees them.
func argVals(t *wire.ExecTask) []uint64 {
	refs := make(map[int32]wire.ArgValue, len(t.Args))
	for _, a := range t.Args {
		refs[a.Index] = a
	}
	out := make([]uint64, len(t.Spec.Args))
	for i := range t.Spec.Args {
		a, ok := refs[int32(i)]
		switch {
		case !ok:
			out[i] = valueOf(t.Spec.Args[i].Value.Data)
		case a.Result.Kind == wire.ResultStored:
			out[i] = a.Extent.Off
		default:
			out[i] = valueOf(a.Result.Value.Data)
		}
	}
	return out
}

func taskVal(args []uint64, i int) uint64 { return mix(append([]uint64{uint64(i)}, args...)...) }

// canGoOn tells whether a task in the middle has what it waits for.
func (cl *simClient) canGoOn(r *simRun) bool {
	if r.cancelled && r.Spec.Opts.Func != "deaf" {
		return true
	}
	switch r.Spec.Opts.Func {
	case "kids":
		if !r.blocked {
			return true
		}
		if r.resumed {
			return true
		}
		for _, id := range r.children {
			if _, ok := cl.got[id]; !ok {
				return false
			}
		}
		return !r.waiting()
	case "nap", "deaf":
		return r.blocked // else until it is told to end
	case "stream":
		k := r.Spec.Opts.Backpressure
		return k == 0 || r.item < r.acked+uint32(k) || r.acked == ^uint32(0)
	}
	return true
}

// waiting tells whether Unblocked is out.
func (r *simRun) waiting() bool { return r.item == 1 }

// goOn takes a task one step further.
func (cl *simClient) goOn(l *simLane, r *simRun) {
	if r.cancelled && r.Spec.Opts.Func != "deaf" {
		cl.letGo(r)
		cl.done(l, r, nil, errs.New(errs.CodeCancelled, "its context ended"))
		return
	}
	if r.Spec.Kind == wire.TaskActorCall && cl.w.rng.Float64() < cl.w.panics {
		cl.breakActor(l, r)
		return
	}
	args := argVals(&r.ExecTask)
	o := r.Spec.Opts
	switch o.Func {
	case "sum":
		cl.done(l, r, []wire.Result{inlineResult(taskVal(args, 0), int(taskVal(args, 0)%3)*1000)}, nil)
	case "big":
		cl.done(l, r, []wire.Result{cl.stored(r, 0, taskVal(args, 0))}, nil)
	case "multi":
		var res []wire.Result
		for i := range o.NumReturns {
			if v := taskVal(args, int(i)); i%2 == 0 {
				res = append(res, inlineResult(v, 0))
			} else {
				res = append(res, cl.stored(r, int(i), v))
			}
		}
		cl.done(l, r, res, nil)
	case "pair":
		cl.done(l, r, []wire.Result{inlineResult(taskVal(args, 0), 0), inlineResult(taskVal(args, 1), 0)}, nil)
	case "wrap": // gives a reference to something it put
		id := r.Spec.ID.Put(1)
		cl.handles[id] = true
		cl.send(&wire.PutValue{ID: id, Value: wire.Value{Data: bytesOf(taskVal(args, 1), 0)}})
		res := inlineResult(taskVal(args, 0), 0)
		res.Value.Refs = []ids.ObjectID{id}
		cl.done(l, r, []wire.Result{res}, nil)
		cl.release(id)
	case "raise": // fails with a reference to something it put
		id := r.Spec.ID.Put(1)
		cl.handles[id] = true
		cl.send(&wire.PutValue{ID: id, Value: wire.Value{Data: bytesOf(taskVal(args, 1), 0)}})
		cl.done(l, r, nil, raised(id))
		cl.release(id)
	case "fail":
		cl.done(l, r, nil, errs.New(errs.CodeTaskFailed, "it always fails"))
	case "flaky": // fails for a while
		if cl.w.rng.IntN(2) == 0 {
			cl.done(l, r, nil, errs.New(errs.CodeTaskFailed, "it fails now and then"))
			return
		}
		cl.done(l, r, []wire.Result{cl.stored(r, 0, taskVal(args, 0))}, nil)
	case "gives": // the references in its arguments
		res := inlineResult(taskVal(args, 0), 0)
		for i := range r.Spec.Args {
			for _, id := range r.Spec.Args[i].Value.Refs {
				cl.addRef(id)
				res.Value.Refs = append(res.Value.Refs, id)
			}
		}
		cl.done(l, r, []wire.Result{res}, nil)
		cl.release(res.Value.Refs...)
	case "any":
		cl.done(l, r, []wire.Result{inlineResult(taskVal(args, 0), 2000)}, nil)
	case "make":
		cl.done(l, r, []wire.Result{cl.stored(r, 0, taskVal(args, 0))}, nil)
	case "nap", "deaf":
		r.blocked = false
	case "kids":
		cl.children(l, r, args)
	case "stream":
		cl.stream(l, r, args)
	case "new":
		cl.actors[ids.ActorID(r.Spec.ID)] = &simActor{lease: l.lease.id, seen: make(map[ids.TaskID]uint64), onPanic: o.OnPanic}
		cl.done(l, r, []wire.Result{inlineResult(1, 0)}, nil)
	case "inc":
		cl.inc(l, r)
	default:
		cl.w.t.Fatalf("no function %q", o.Func)
	}
}

// raised is the failure of a function whose error has references in it.
func raised(refs ...ids.ObjectID) *errs.Error {
	return &errs.Error{Code: errs.CodeTaskFailed, Name: "f", Msg: "f: it raises", Cause: []*errs.Error{{Code: errs.CodePython, Refs: refs}}}
}

func inlineResult(v uint64, fill int) wire.Result {
	b := bytesOf(v, fill)
	return wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: b}, Size: uint64(len(b))}
}

// stored writes a return into the store and seals it.
func (cl *simClient) stored(r *simRun, i int, v uint64) wire.Result {
	id := r.Spec.ID.Return(i)
	if cl.store().sealed[id] == nil { // else Created said that it exists
		cl.store().granted[simAttempt{id, r.Attempt}] = simGrant{v, cl.id}
		cl.send(&wire.Seal{ID: id, Attempt: r.Attempt, Size: 8})
	}
	return wire.Result{Kind: wire.ResultStored, Size: 8}
}

func (cl *simClient) done(l *simLane, r *simRun, res []wire.Result, err *errs.Error) {
	l.run = nil
	n := cl.w.now
	cl.send(&wire.Done{
		Task: r.Spec.ID, Attempt: r.Attempt, Lease: l.lease.id, Results: res, Items: r.item, Err: err,
		Times: wire.Times{Received: n, Started: n, Ended: n + cl.w.rng.Int64N(300_000)},
	})
}

// children submits two tasks, waits for a result of each, and sums up.
func (cl *simClient) children(l *simLane, r *simRun, args []uint64) {
	if !r.blocked {
		pair := &wire.TaskSpec{ID: ids.Derive(r.Spec.ID, 1), Parent: r.Spec.ID, Opts: pairOpts,
			Args: []wire.Arg{{Value: wire.Value{Data: bytesOf(taskVal(args, 0), 0)}}}}
		sum := &wire.TaskSpec{ID: ids.Derive(r.Spec.ID, 2), Parent: r.Spec.ID, Opts: kidOpts, Args: []wire.Arg{{Ref: pair.ID.Return(0)}}}
		cl.submit(pair)
		cl.submit(sum)
		r.children = append(r.children, pair.ID.Return(1), sum.ID.Return(0))
		for _, id := range r.children {
			cl.get(id)
		}
		cl.release(pair.ID.Return(0)) // who takes it holds it
		r.blocked = true
		var back []ids.TaskID
		if r.Spec.Kind != wire.TaskActorCall { // an actor's calls can run nowhere else
			for _, t := range l.queue {
				back = append(back, t.Spec.ID)
			}
			l.queue = nil
		}
		cl.send(&wire.Blocked{Task: r.Spec.ID, Lease: l.lease.id, Returned: back})
		return
	}
	if !r.resumed {
		r.item = 1
		cl.send(&wire.Unblocked{Task: r.Spec.ID, Lease: l.lease.id})
		return
	}
	var vals []uint64
	for _, id := range r.children {
		out := cl.got[id]
		if out.err != 0 {
			cl.letGo(r)
			cl.done(l, r, nil, errs.New(errs.CodeTaskFailed, "a child failed"))
			return
		}
		vals = append(vals, out.val)
	}
	r.item = 0
	cl.done(l, r, []wire.Result{inlineResult(mix(vals...), 0)}, nil)
	cl.letGo(r)
}

func (cl *simClient) letGo(r *simRun) { cl.release(r.children...) }

func kidsVal(args []uint64) uint64 {
	arg := []uint64{taskVal(args, 0)}
	return mix(taskVal(arg, 1), taskVal([]uint64{taskVal(arg, 0)}, 0))
}

// stream makes as many items as its first argument says, a step each.
func (cl *simClient) stream(l *simLane, r *simRun, args []uint64) {
	n := uint32(args[0] % 6)
	if r.item == n {
		cl.done(l, r, nil, nil)
		return
	}
	v := taskVal(args, int(r.item))
	res := inlineResult(v, 0)
	if r.item%2 == 1 {
		res = cl.stored(r, int(r.item), v)
	}
	cl.send(&wire.StreamItem{Task: r.Spec.ID, Attempt: r.Attempt, Index: r.item, Result: res})
	r.item++
}

// inc is an actor's method: it checks the order of its callers' calls.
func (cl *simClient) inc(l *simLane, r *simRun) {
	a := cl.actors[r.Spec.Actor]
	if last := a.seen[r.Spec.Parent]; r.Spec.Seq <= last {
		cl.w.t.Fatalf("call %d of %v came after %d", r.Spec.Seq, r.Spec.Parent, last)
	}
	a.seen[r.Spec.Parent] = r.Spec.Seq
	a.n++
	cl.done(l, r, []wire.Result{inlineResult(a.n, 0)}, nil)
}
