package owner

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// simDriver submits a random graph of tasks and knows what each must come to.
type simDriver struct {
	*simClient
	root  ids.TaskID
	calls uint64
	puts  uint32
	known []ids.ObjectID // that it has a handle on
	opts  map[string]*wire.TaskOptions
	lossy bool // what lies in the store may be lost
}

func newSimDriver(w *simWorld) *simDriver {
	d := &simDriver{simClient: w.join(wire.RoleDriver, 0), root: ids.RootTask(1, 99), opts: make(map[string]*wire.TaskOptions)}
	for _, o := range []*wire.TaskOptions{
		{Func: "sum", NumReturns: 1, MaxRetries: -1},
		{Func: "big", NumReturns: 1, MaxRetries: -1},
		{Func: "multi", NumReturns: 3, MaxRetries: -1},
		{Func: "wrap", NumReturns: 1, MaxRetries: -1},
		{Func: "fail", NumReturns: 1, MaxRetries: -1},
		{Func: "raise", NumReturns: 1, MaxRetries: -1},
		{Func: "kids", NumReturns: 1, MaxRetries: -1},
		{Func: "stream", NumReturns: wire.Streaming, MaxRetries: -1, Backpressure: 2},
		{Func: "new", NumReturns: 1, MaxRestarts: -1, MaxTaskRetries: -1, MaxPendingCalls: -1},
		{Func: "inc", NumReturns: 1},
	} {
		d.opts[o.Func] = o
	}
	return d
}

func (d *simDriver) put() {
	d.puts++
	id := d.root.Put(d.puts)
	v := mix(uint64(d.puts))
	d.w.want[id] = outcome{val: v}
	d.handles[id] = true
	d.known = append(d.known, id)
	if d.w.rng.IntN(3) > 0 {
		d.send(&wire.PutValue{ID: id, Value: wire.Value{Data: bytesOf(v, d.w.rng.IntN(3)*1000)}})
		return
	}
	d.w.mayFail[id] = d.lossy // nothing makes it again, once released
	d.w.store.granted[simAttempt{id, 0}] = simGrant{v, d.id}
	d.send(&wire.Seal{ID: id, Size: 8})
}

// task submits a task with random arguments and works out what it must give.
func (d *simDriver) task(fn string) *wire.TaskSpec {
	w := d.w
	d.calls++
	s := &wire.TaskSpec{ID: ids.Derive(d.root, d.calls), Parent: d.root, Opts: d.opts[fn]}
	var vals []uint64
	var bad errs.Code
	mayFail := false
	for range w.rng.IntN(3) {
		if len(d.known) > 0 && w.rng.IntN(3) > 0 {
			id := d.known[w.rng.IntN(len(d.known))]
			s.Args = append(s.Args, wire.Arg{Ref: id})
			out := w.want[id]
			vals = append(vals, out.val)
			mayFail = mayFail || w.mayFail[id]
			if bad == 0 {
				bad = out.err
			}
			continue
		}
		v := mix(w.rng.Uint64())
		a := wire.Arg{Value: wire.Value{Data: bytesOf(v, w.rng.IntN(2)*2000)}}
		if len(d.known) > 0 && w.rng.IntN(4) == 0 {
			a.Value.Refs = []ids.ObjectID{d.known[w.rng.IntN(len(d.known))]}
		}
		s.Args = append(s.Args, a)
		vals = append(vals, v)
	}
	for i := range s.Opts.NumReturns {
		id := s.ID.Return(int(i))
		for _, a := range s.Args {
			if !a.Ref.IsZero() {
				w.deps = append(w.deps, simDep{of: id, on: a.Ref})
			}
		}
		out := outcome{val: taskVal(vals, int(i))}
		switch {
		case bad != 0:
			out = outcome{err: bad}
		case fn == "fail", fn == "raise":
			out = outcome{err: errs.CodeTaskFailed}
		case fn == "kids":
			out.val = kidsVal(vals)
		}
		w.want[id] = out
		w.mayFail[id] = mayFail
		d.known = append(d.known, id)
	}
	if (fn == "wrap" || fn == "raise") && bad == 0 {
		w.deps = append(w.deps, simDep{of: s.ID.Put(1), on: s.ID.Return(0)})
		w.want[s.ID.Put(1)] = outcome{val: taskVal(vals, 1)}
	}
	d.submit(s)
	return s
}

// judge compares what a get gave with what it had to.
func (d *simDriver) judge(id ids.ObjectID, got outcome) {
	want, ok := d.w.want[id]
	if !ok || got == want || d.w.mayFail[id] && got.err != 0 {
		return
	}
	d.w.t.Fatalf("object %v (%v): got %+v, want %+v", id, d.w.explain(id), got, want)
}

// cancelOne cancels a task: it and everything that depends on it may end in an error.
func (d *simDriver) cancelOne() {
	if len(d.known) == 0 {
		return
	}
	id := d.known[d.w.rng.IntN(len(d.known))]
	if id.IsPut() {
		return
	}
	for o := range d.w.want { // those that it holds no more too: another's argument may be one
		if o.Task == id.Task {
			d.w.mayFail[o] = true
		}
	}
	d.send(&wire.Cancel{Task: id.Task, Force: d.w.rng.IntN(2) == 0, Recursive: d.w.rng.IntN(2) == 0})
}

func (d *simDriver) dropOne() {
	if len(d.known) == 0 {
		return
	}
	i := d.w.rng.IntN(len(d.known))
	id := d.known[i]
	d.known = slices.Delete(d.known, i, i+1)
	d.release(id)
}

// simPlan is what a run does to the world.
type simPlan struct {
	acts                    int
	deaths, losses, cancels float64
	crash                   float64
	budget, message         int64
	children, fails, gets   bool
	others                  int     // further nodes
	nodes                   float64 // deaths of one of them
	volatile                bool    // the log ends with the process: what was freed stays freed
}

func (p simPlan) run(t *testing.T, seed uint64) {
	t.Helper()
	w := newSimWorld(t, seed, Config{InlineBudget: p.budget, SendWindow: int64(seed%3) * 700, MessageArgs: p.message, VolatileLog: p.volatile, sweepPart: 3})
	w.crash = p.crash
	w.addNodes(p.others)
	d := newSimDriver(w)
	d.lossy = p.deaths+p.losses+p.nodes > 0
	funcs := []string{"sum", "sum", "big", "multi", "wrap"}
	if p.children {
		funcs = append(funcs, "kids")
	}
	if p.fails {
		funcs = append(funcs, "fail", "raise")
	}
	for range p.acts {
		switch w.rng.IntN(10) {
		case 0:
			d.put()
		case 1:
			d.dropOne()
		case 2:
			if len(d.known) > 0 && p.gets {
				d.get(d.known[w.rng.IntN(len(d.known))])
			}
		default:
			d.task(funcs[w.rng.IntN(len(funcs))])
		}
		for range w.rng.IntN(12) {
			w.turn()
		}
		p.harm(w, d)
	}
	d.finish()
}

// harm kills, loses and cancels now and then.
func (p simPlan) harm(w *simWorld, d *simDriver) {
	if w.rng.Float64() < p.deaths {
		for _, id := range slices.Sorted(maps.Keys(w.clients)) {
			if cl := w.clients[id]; cl.role == wire.RoleWorker && w.rng.IntN(2) == 0 {
				cl.die(errs.New(errs.CodeWorkerCrashed, "killed"), 0)
				break
			}
		}
	}
	if w.rng.Float64() < p.losses {
		w.anyStore().loseOne()
	}
	if p.others > 0 && w.rng.IntN(4) == 0 {
		w.anyStore().evictOne()
	}
	if w.rng.Float64() < p.nodes {
		w.killNode()
	}
	if w.rng.Float64() < p.cancels {
		d.cancelOne()
		w.spreadFailures()
	}
}

// finish gets everything, judges it, releases it, and looks for what is left.
func (d *simDriver) finish() {
	w := d.w
	w.t.Helper()
	w.spreadFailures()
	for range 3 { // references found in values are got in turn
		for _, id := range slices.SortedFunc(maps.Keys(d.handles), ids.ObjectID.Compare) {
			d.get(id)
		}
		w.settle()
		w.spreadFailures()
	}
	for id := range d.handles {
		got, ok := d.got[id]
		if !ok {
			w.t.Fatalf("a get of %v was never answered: %v", id, w.explain(id))
		}
		d.judge(id, got)
	}
	crashes := w.crash > 0
	w.crash = 0
	d.release(slices.SortedFunc(maps.Keys(d.handles), ids.ObjectID.Compare)...)
	w.settle()
	w.check()
	if crashes { // what was forgotten does not come back for good
		w.rebuild()
		w.settle()
		w.check()
	}
}

// spreadFailures lets what depends on what may fail, fail: every live task's returns.
func (w *simWorld) spreadFailures() {
	for again := true; again; {
		again = false
		for _, e := range w.deps {
			if w.mayFail[e.on] && !w.mayFail[e.of] {
				w.mayFail[e.of] = true
				again = true
			}
		}
	}
}

var simSeeds = 40 // of each plan; more were run when it was written

func TestSimulation(t *testing.T) {
	for name, p := range map[string]simPlan{
		"calm":     {acts: 60, gets: true},
		"nested":   {acts: 50, gets: true, children: true, fails: true},
		"deaths":   {acts: 60, gets: true, deaths: .1, children: true},
		"losses":   {acts: 60, gets: true, losses: .15},
		"cancels":  {acts: 60, gets: true, cancels: .1, children: true, fails: true},
		"budget":   {acts: 60, gets: true, budget: 8 << 10, message: 4 << 10, losses: .05},
		"nodes":    {acts: 60, gets: true, others: 3, children: true, fails: true},
		"no nodes": {acts: 60, gets: true, others: 3, nodes: .08, children: true, losses: .03},
		"rebuilds": {acts: 50, gets: true, crash: .01, children: true, fails: true},
		"volatile": {acts: 50, gets: true, crash: .01, losses: .05, children: true, fails: true, budget: 16 << 10, volatile: true},
		"moved":    {acts: 50, gets: true, crash: .01, others: 2, nodes: .05, children: true},
		"all":      {acts: 50, gets: true, others: 2, nodes: .03, deaths: .05, losses: .05, cancels: .05, crash: .004, children: true, fails: true, budget: 16 << 10, message: 2 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			for _, seed := range append(testkit.Seeds(t, simSeeds), 17960123611000018) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { p.run(t, seed) })
			}
		})
	}
}
