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

// wildPlan is a run in which everything goes wrong: what counts is that everything is answered, and
// that nothing is left.
type wildPlan struct {
	simPlan
	stores, scheds    float64 // restarts of the neighbours
	silent, refusals  float64
	memory            float64 // kills for memory
	actors, streams   bool
	deadlines, ungets bool
	detached, leaves  bool // named actors are detached; the driver leaves in the middle
}

func (p wildPlan) run(t *testing.T, seed uint64) {
	t.Helper()
	w := newSimWorld(t, seed, Config{InlineBudget: p.budget, SendWindow: int64(seed%3) * 700, MessageArgs: p.message, VolatileLog: p.volatile, MaxLineageBytes: 20 << 10, sweepPart: 3})
	w.crash, w.silent, w.refusals = p.crash, p.silent, p.refusals
	w.addNodes(p.others)
	d := &simActors{simDriver: newSimDriver(w), seq: make(map[[2]ids.TaskID]uint64)}
	d.lossy, w.anyOrder = true, true
	for _, o := range []*wire.TaskOptions{
		{Func: "sum", NumReturns: 1, MaxRetries: 1},
		{Func: "big", NumReturns: 1, MaxRetries: 2},
		{Func: "multi", NumReturns: 3, MaxRetries: 0},
		{Func: "flaky", NumReturns: 1, MaxRetries: 2, RetryExceptions: true, ExceptionRetries: 3},
		{Func: "gives", NumReturns: 1, MaxRetries: -1},
		{Func: "nap", NumReturns: 1, MaxRetries: 1},
		{Func: "deaf", NumReturns: 1, MaxRetries: 1},
		{Func: "any", NumReturns: 1},
		{Func: "make", NumReturns: 1},
		{Func: "new", NumReturns: 1, MaxRestarts: 2, MaxTaskRetries: 1, MaxPendingCalls: 8, MaxConcurrency: 2},
	} {
		d.opts[o.Func] = o
	}
	for i := range 2 {
		d.opts[fmt.Sprint("named ", i)] = &wire.TaskOptions{Func: "new", NumReturns: 1, MaxRestarts: int32(i), MaxTaskRetries: int32(i) - 1, MaxPendingCalls: -1,
			ActorName: fmt.Sprint(i), GetIfExists: i == 0, Detached: p.detached}
	}
	child := *d.opts["new"]
	child.Escalate = true
	child.OnPanic = wire.OnPanic(seed % 4)
	d.opts["child"] = &child
	if p.actors {
		w.panics = .02
	}
	funcs := []string{"sum", "big", "multi", "wrap", "kids", "fail", "flaky", "gives"}
	if p.deadlines {
		funcs = append(funcs, "nap", "deaf")
	}
	for range p.acts {
		switch w.rng.IntN(14) {
		case 0:
			d.put()
		case 1:
			d.dropOne()
		case 2:
			if len(d.known) > 0 {
				d.get(d.known[w.rng.IntN(len(d.known))])
			}
		case 3:
			if p.actors {
				d.actor()
			}
		case 4, 5:
			if p.actors && len(d.handles) > 0 {
				d.callAny()
			}
		case 6:
			if p.streams {
				d.wild = append(d.wild, d.open())
			}
		case 7:
			if len(d.asked) > 0 && p.ungets {
				list := slices.SortedFunc(maps.Keys(d.asked), ids.ObjectID.Compare)
				id := list[w.rng.IntN(len(list))]
				delete(d.asked, id)
				d.send(&wire.Unget{ID: id})
			}
		default:
			fn := funcs[w.rng.IntN(len(funcs))]
			d.submitAny(fn)
		}
		for _, s := range d.wild {
			if w.rng.IntN(4) == 0 {
				d.readAny(s)
			}
		}
		for range w.rng.IntN(12) {
			w.turn()
		}
		p.harm(w, d)
	}
	w.crash, w.silent, w.refusals = 0, 0, 0
	for _, s := range d.wild {
		for !s.ended && w.rng.IntN(3) > 0 { // to its end, or not
			if d.readAny(s); !s.ended {
				w.settle()
			}
		}
		if !s.ended || w.rng.IntN(2) == 0 {
			d.send(&wire.Release{IDs: []ids.ObjectID{s.spec.ID.Stream()}})
		}
	}
	if p.leaves {
		d.leave()
		return
	}
	for _, id := range slices.SortedFunc(maps.Values(w.names), func(a, b ids.ActorID) int { return slices.Compare(a[:], b[:]) }) {
		w.post("directory", FromDirectory{KillRequested{Actor: id}})
	}
	d.end()
}

// leave ends the driver; the job ends when its detached actors do, and nothing is left.
func (d *simActors) leave() {
	w := d.w
	d.die(nil, 0)
	w.settle()
	for _, id := range slices.SortedFunc(maps.Values(w.names), func(a, b ids.ActorID) int { return slices.Compare(a[:], b[:]) }) {
		w.post("directory", FromDirectory{KillRequested{Actor: id}})
	}
	w.settle()
	if !w.ended {
		for _, a := range w.c.actors.byID {
			w.t.Logf("left: actor %v %v", a.id, a.state)
		}
		for _, t := range w.c.tasks.all() {
			w.t.Logf("left: task %v %s %v live %d flags %b", t.id(), t.name(), t.state, t.live, t.flags)
		}
		w.t.Fatalf("the job does not end: %d sweeps, %d leases, orphan %v", w.c.sweeps.Len(), len(w.c.leases.byID), w.c.orphan)
	}
	if n := w.sched.held(); n > 0 {
		w.t.Fatalf("%d leases are still held", n)
	}
}

// submitAny submits a task; one that does not end by itself has a deadline, or is cancelled.
func (d *simActors) submitAny(fn string) {
	w := d.w
	s := d.task(fn)
	for i := range s.Opts.NumReturns {
		w.mayFail[s.ID.Return(int(i))] = true
	}
	if fn != "nap" && fn != "deaf" {
		return
	}
	if w.rng.IntN(2) == 0 {
		s.Deadline = w.now + w.rng.Int64N(3e9) // nobody has looked at it yet
		return
	}
	d.send(&wire.Cancel{Task: s.ID, Force: w.rng.IntN(3) == 0, Recursive: w.rng.IntN(2) == 0, Insist: true})
}

// actor creates an actor, of a name maybe of a name, and maybe with an argument.
func (d *simActors) actor() {
	w := d.w
	d.simDriver.calls++
	s := &wire.TaskSpec{ID: ids.Derive(d.root, d.simDriver.calls), Parent: d.root, Kind: wire.TaskActorCreate, Opts: d.opts["new"]}
	s.Actor = ids.ActorID(s.ID)
	switch w.rng.IntN(4) {
	case 0:
		s.Opts = d.opts["named 0"]
	case 1:
		s.Opts = d.opts["named 1"]
	default:
		if d.opts["named 0"].Detached && len(d.handles) > 0 && w.rng.IntN(2) == 0 { // made by an actor, which may be a detached one
			s.Parent, s.Opts = d.handles[w.rng.IntN(len(d.handles))].Task, d.opts["child"]
		}
	}
	if len(d.known) > 0 && w.rng.IntN(2) == 0 {
		s.Args = []wire.Arg{{Ref: d.known[w.rng.IntN(len(d.known))]}}
	}
	d.submit(s)
	d.handles = append(d.handles, s.ID.Return(0))
	w.mayFail[s.ID.Return(0)] = true
}

func (d *simActors) callAny() {
	w := d.w
	h := d.handles[w.rng.IntN(len(d.handles))]
	parent := ids.Derive(d.root, 1<<40+w.rng.Uint64N(3))
	key := [2]ids.TaskID{parent, h.Task}
	d.seq[key]++
	fns := []string{"any", "any", "make", "kids", "flaky", "gives", "nap", "deaf", "stream"}
	fn := fns[w.rng.IntN(len(fns))]
	s := &wire.TaskSpec{ID: ids.Derive(ids.Derive(parent, d.seq[key]), uint64(h.Task[15])<<8|uint64(h.Task[14])), Parent: parent, Kind: wire.TaskActorCall, Opts: d.opts[fn],
		Actor: ids.ActorID(h.Task), Seq: d.seq[key]}
	if fn == "stream" {
		o := &openStream{spec: s, args: []uint64{mix(w.rng.Uint64())}}
		s.Args = []wire.Arg{{Value: wire.Value{Data: bytesOf(o.args[0], 0)}}}
		d.submit(s)
		d.wild = append(d.wild, o)
		return
	}
	if len(d.known) > 0 && w.rng.IntN(3) == 0 {
		s.Args = append(s.Args, wire.Arg{Ref: d.known[w.rng.IntN(len(d.known))]})
	}
	if len(d.known) > 0 && w.rng.IntN(3) == 0 {
		s.Args = append(s.Args, wire.Arg{Value: wire.Value{Data: bytesOf(1, 0), Refs: []ids.ObjectID{d.known[w.rng.IntN(len(d.known))]}}})
	}
	id := s.ID.Return(0)
	w.mayFail[id] = true
	ends := fn != "nap" && fn != "deaf"
	if !ends && w.rng.IntN(2) == 0 {
		s.Deadline = w.now + w.rng.Int64N(3e9)
		ends = true
	}
	d.submit(s)
	d.calls = append(d.calls, id)
	d.known = append(d.known, id)
	if !ends {
		d.send(&wire.Cancel{Task: s.ID, Force: fn == "deaf" || w.rng.IntN(3) == 0})
	}
	switch w.rng.IntN(10) {
	case 0:
		d.send(&wire.Cancel{Task: id.Task, Force: w.rng.IntN(2) == 0})
	case 1:
		h := d.handles[w.rng.IntN(len(d.handles))]
		d.send(&wire.KillActor{Actor: ids.ActorID(h.Task), Restart: w.rng.IntN(2) == 0})
	case 2:
		if len(d.handles) > 1 {
			i := w.rng.IntN(len(d.handles))
			d.release(d.handles[i])
			d.handles = slices.Delete(d.handles, i, i+1)
		}
	}
}

// readAny takes the next item of a stream if it is there, whatever it is, and asks for the one after.
func (d *simActors) readAny(s *openStream) {
	if s.ended {
		return
	}
	k := nextOf(s.spec.ID, s.next)
	m := d.items[k]
	if m == nil {
		if !d.streams[k] {
			d.streams[k] = true
			d.send(&k)
		}
		return
	}
	if m.Result.Kind == wire.ResultNone || m.Result.Kind == wire.ResultError {
		s.ended = true
		if k.Leaves {
			delete(d.reads, s.spec.ID)
			d.send(&wire.Release{IDs: []ids.ObjectID{s.spec.ID.Stream()}})
		}
		return
	}
	s.next++
}

func (p wildPlan) harm(w *simWorld, d *simActors) {
	p.simPlan.harm(w, d.simDriver)
	if w.rng.Float64() < p.stores {
		w.anyStore().restart()
	}
	if w.rng.Float64() < p.scheds {
		w.sched.restart()
	}
	if w.rng.Float64() < p.memory {
		for _, id := range slices.Sorted(maps.Keys(w.clients)) {
			if cl := w.clients[id]; cl.role == wire.RoleWorker && w.rng.IntN(2) == 0 {
				cl.die(errs.New(errs.CodeOutOfMemory, "too much"), 1<<30)
				break
			}
		}
	}
}

// end gets everything and releases it: every get is answered, and nothing is left.
func (d *simActors) end() {
	w := d.w
	for range 3 {
		for _, id := range slices.SortedFunc(maps.Keys(d.simDriver.handles), ids.ObjectID.Compare) {
			d.get(id)
		}
		w.settle()
	}
	for id := range d.simDriver.handles {
		if _, ok := d.got[id]; !ok {
			w.t.Fatalf("a get of %v was never answered: %v", id, w.explain(id))
		}
	}
	d.release(slices.SortedFunc(maps.Keys(d.simDriver.handles), ids.ObjectID.Compare)...)
	w.settle()
	w.check()
}

func TestSimulationOfTheWorst(t *testing.T) {
	for name, p := range map[string]wildPlan{
		"calm":      {},
		"deadlines": {deadlines: true},
		"ungets":    {ungets: true},
		"refusals":  {refusals: .1},
		"memory":    {memory: .1},
		"actors":    {actors: true},
		"streams":   {streams: true},
		"stores":    {stores: .05},
		"scheds":    {scheds: .05},
		"silent":    {silent: .2, simPlan: simPlan{crash: .005}},
		"deaths":    {actors: true, streams: true, simPlan: simPlan{deaths: .1, losses: .1, cancels: .1}},
		"all": {actors: true, streams: true, deadlines: true, ungets: true, refusals: .02, memory: .02, stores: .02, scheds: .02, silent: .05,
			simPlan: simPlan{crash: .003, deaths: .05, losses: .05, cancels: .05, budget: 16 << 10, message: 2 << 10}},
		"nodes":    {actors: true, streams: true, stores: .03, simPlan: simPlan{others: 3, nodes: .08, deaths: .05, losses: .05, cancels: .05, crash: .003}},
		"volatile": {actors: true, streams: true, deadlines: true, simPlan: simPlan{volatile: true, crash: .005, deaths: .05, losses: .05, cancels: .05, budget: 16 << 10}},
		"leaves":   {actors: true, streams: true, leaves: true, deadlines: true},
		"detached": {actors: true, streams: true, leaves: true, detached: true, simPlan: simPlan{deaths: .05, crash: .003}},
	} {
		p.acts = 60
		t.Run(name, func(t *testing.T) {
			// Of the last three, one kills an actor whose calls name it by another id, one rebuilds a core that was told that a stream is left, and one
			// kills an actor while such a call waits for an argument.
			for _, seed := range append(testkit.Seeds(t, simSeeds/4), 4_000_007, 5_000_007, 17959393191000007) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { p.run(t, seed) })
			}
		})
	}
}
