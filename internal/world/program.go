package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// program is a driver's program: it submits tasks at random, with each other's results as arguments, knows what each has to give, and lets go of
// everything in the end.
type program struct {
	w      *World
	n      int
	proc   *process
	call   *call
	acts   int
	did    int
	known  []ids.ObjectID // that it holds and may use as arguments
	actors []*actorHandle
	reads  []openStream
	taken  []*offer // of programs of other nodes
	stage  string

	unwanted []ids.ObjectID // of what it has offered: who has taken it wants no more of it

	cut   bool // its connection broke, while its node lived
	ended bool
}

// weights say how often programs call what.
var weights = []struct {
	fn string
	n  int
}{{"sum", 20}, {"big", 20}, {"multi", 8}, {"wrap", 8}, {"give", 6}, {"pair", 6}, {"kids", 8}, {"tree2", 2}, {"tree1", 3}, {"flaky", 5}, {"fail", 2}, {"nap", 3}, {"alone", 4}, {"once", 3}}

func newProgram(w *World, n *Node, i int) *program {
	pr := &program{w: w, n: i, acts: w.cfg.Tasks / w.cfg.Jobs, stage: "connects"}
	pr.proc = newDriver(w, n, pr.main, pr.gaveUp)
	return pr
}

// gaveUp is the end of a program whose job is over: only the loss of its machine explains that, or of its connection.
func (pr *program) gaveUp(err *errs.Error) {
	switch {
	case pr.proc.dead:
	case pr.proc.away || err != nil && err.Code == errs.CodeComponentFailed && pr.w.plan.poisons > 0:
		pr.ended, pr.stage = true, "was turned away"
		pr.proc.exit()
	case pr.cut:
		pr.ended, pr.stage = true, "was cut off"
		pr.proc.exit()
	default:
		pr.w.fail("program %d is refused, and its node's jobs were kept: %v", pr.n, err)
	}
}

// where says what the program waits for.
func (pr *program) where() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s after %d acts, %d objects", pr.stage, pr.did, len(pr.known))
	for _, t := range pr.proc.threads {
		b.WriteString(", waits for " + t.what)
	}
	if o := pr.proc.n.owners[pr.proc.job]; o != nil {
		fmt.Fprintf(&b, ", %+v", o.core.Gauges())
		for _, id := range pr.proc.asked() {
			fmt.Fprintf(&b, "; it wants %s%s", briefObject(id), waitsFor(o.core, id.Task))
		}
	}
	n := pr.proc.n
	for _, o := range n.store.core.List(pr.proc.job, ids.ObjectID{}, 3) {
		fmt.Fprintf(&b, "; in the store %+v: %v", o, n.store.core.Why(o.ID))
	}
	return b.String() + "; " + n.jobs.explain()
}

// waitsFor says how far a task is, and what it waits for in turn.
func waitsFor(c *owner.Core, id ids.TaskID) string {
	why, known := c.WhyTask(id)
	if !known {
		return " (its task is not known)"
	}
	s := fmt.Sprintf(" (%s is %v, with %d leases of its class, of %+v)", brief(id), why.State, why.Leases, why.Of)
	for _, a := range why.Args {
		if a.State == object.Pending {
			return s + " for " + briefObject(a.ID) + waitsFor(c, a.ID.Task)
		}
	}
	return s
}

func (pr *program) main(t *thread) {
	w := pr.w
	pr.call = &call{p: pr.proc, thread: t, task: pr.proc.root, seqs: make(map[ids.ActorID]uint64)}
	if w.cfg.Shares {
		pr.meet()
	}
	pr.stage = "acts"
	for ; pr.did < pr.acts || !w.plan.spent() && pr.did < 20*pr.acts; pr.did++ {
		pr.act()
		if w.rng.IntN(3) == 0 {
			t.work(time.Millisecond)
		}
	}
	pr.forget()
	pr.stage = "reads its streams"
	for len(pr.reads) > 0 {
		pr.read(pr.reads[0])
	}
	pr.stage = "gets everything"
	for _, id := range slices.Clone(pr.known) {
		pr.get(id)
	}
	for _, o := range pr.taken {
		pr.getTaken(o)
	}
	pr.stage = "lets go"
	pr.withdraw()
	pr.call.letGo()
	pr.stage = "waits until nothing of its job is left"
	for pr.left() {
		t.sleep(int64(20 * time.Millisecond))
	}
	pr.stage = "has ended"
	pr.ended = true
	w.after(0, pr.proc.exit)
}

// act does one thing.
func (pr *program) act() {
	w := pr.w
	if w.cfg.Shares && w.rng.IntN(2) == 0 {
		pr.share()
		return
	}
	switch x := w.rng.IntN(100); {
	case x < 8:
		pr.put()
	case x < 22:
		if id, ok := pr.any(); ok {
			pr.get(id)
		}
	case x < 36:
		pr.drop()
	case x < 39:
		pr.cancel()
	case x < 42 && len(pr.actors) < 4:
		pr.create()
	case x < 52 && len(pr.actors) > 0:
		pr.callActor()
	case x < 53 && len(pr.actors) > 0:
		pr.killActor()
	case x < 56 && len(pr.reads) < 4:
		pr.open()
	case x < 64 && len(pr.reads) > 0:
		s := pr.reads[w.rng.IntN(len(pr.reads))]
		if w.rng.IntN(20) == 0 {
			pr.leave(s, true)
		} else {
			pr.read(s)
		}
	default:
		pr.submit()
	}
}

func (pr *program) any() (ids.ObjectID, bool) {
	if len(pr.known) == 0 {
		return ids.ObjectID{}, false
	}
	return pr.known[pr.w.rng.IntN(len(pr.known))], true
}

// expect notes what an object has to be.
func (pr *program) expect(id ids.ObjectID, x expectation) {
	pr.w.model.want[id] = &x
	pr.known = append(pr.known, id)
}

func (pr *program) put() {
	v := mix(pr.w.rng.Uint64())
	size := smallSize(v)
	if v&4 != 0 {
		size = largeSize(v)
	}
	id := pr.call.put(v, size)
	pr.expect(id, expectation{val: v})
}

// submit calls a function with random arguments.
func (pr *program) submit() {
	w := pr.w
	fn := pr.function()
	var args []wire.Arg
	var vals []uint64
	var deps []ids.ObjectID
	var bad errs.Code
	for range w.rng.IntN(4) {
		id, ok := pr.any()
		if !ok || w.model.want[id].any || w.rng.IntN(3) == 0 {
			v := mix(w.rng.Uint64())
			a := byValue(v)
			if ok && w.rng.IntN(4) == 0 {
				a.Value.Refs = []ids.ObjectID{id}
			}
			args, vals = append(args, a), append(vals, v)
			continue
		}
		x := w.model.want[id]
		args, vals, deps = append(args, wire.Arg{Ref: id}), append(vals, x.val), append(deps, id)
		if bad == 0 {
			bad = x.err
		}
	}
	o := options[fn]
	for i, id := range pr.call.submit(o, args...) {
		x := expectation{val: resultOf(vals, i), deps: deps, err: bad, may: fn == "once"}
		switch {
		case bad != 0:
		case fn == "fail":
			x.err = errs.CodeTaskFailed
		case fn == "kids":
			x.val = kidsOf(vals)
		case treeOf[fn] != "":
			x.val = treeValue(fn, vals)
		}
		pr.expect(id, x)
	}
}

func (pr *program) function() string {
	all := 0
	for _, x := range weights {
		all += x.n
	}
	at := pr.w.rng.IntN(all)
	for _, x := range weights {
		if at -= x.n; at < 0 {
			return x.fn
		}
	}
	return ""
}

// get reads an object and compares it with what it has to be; one that was got before may be read anew.
func (pr *program) get(id ids.ObjectID) {
	if h := pr.proc.handles[id]; h.res != nil && h.res.stored && pr.proc.pins[id] == nil && pr.w.rng.IntN(2) == 0 {
		h.res = nil
	}
	out := pr.call.get(id)[0]
	pr.w.model.judge(pr.w, id, out)
	if x := pr.w.model.want[id]; x.any && out.err == nil {
		pr.w.model.called(pr.w, id, out.val)
	}
	pr.adopt(pr.proc.handles[id].inner)
}

// adopt makes what a value has references to known, as objects of the program's own.
func (pr *program) adopt(inner []ids.ObjectID) {
	for _, id := range inner {
		far := id.Job() != pr.proc.job
		if v, put := pr.w.model.puts[id]; put && !slices.Contains(pr.known, id) && (far || pr.w.rng.IntN(2) == 0) {
			pr.proc.hold(id, false)
			pr.call.held = append(pr.call.held, id)
			pr.expect(id, expectation{val: v, may: far}) // another job may end
			if far {
				pr.lend(id, v)
			}
		}
	}
}

// lend has a task read what is another job's, if it can be on another node.
func (pr *program) lend(id ids.ObjectID, v uint64) {
	o := *options["sum"]
	o.Affinity, o.Node = wire.AffinitySoft, pr.w.nodes[pr.w.rng.IntN(len(pr.w.nodes))].home
	pr.expect(pr.call.submit(&o, wire.Arg{Ref: id})[0], expectation{val: resultOf([]uint64{v}, 0), deps: []ids.ObjectID{id}})
}

// drop lets go of an object.
func (pr *program) drop() {
	if len(pr.known) == 0 {
		return
	}
	i := pr.w.rng.IntN(len(pr.known))
	id := pr.known[i]
	if pr.offers(id) {
		return // who takes it has it from then on
	}
	pr.known = slices.Delete(pr.known, i, i+1)
	pr.call.release(id)
}

// release gives back one of what the call holds.
func (c *call) release(id ids.ObjectID) {
	i := slices.Index(c.held, id)
	c.held = slices.Delete(c.held, i, i+1)
	c.p.release(id)
}

// cancel cancels a task: its results may be errors, and so may what is made of them.
func (pr *program) cancel() {
	id, ok := pr.any()
	w := pr.w
	if x := w.model.want[id]; !ok || id.IsPut() || x.any || x.item {
		return
	}
	for _, other := range pr.known {
		if other.Task == id.Task {
			w.model.want[other].may = true
		}
	}
	for i := range 3 {
		if x := w.model.want[id.Task.Return(i)]; x != nil {
			x.may = true
		}
	}
	w.model.disturbed = w.now
	pr.proc.send(&wire.Cancel{Task: id.Task, Force: w.rng.IntN(2) == 0, Recursive: w.rng.IntN(2) == 0})
}

// left tells whether something of the program's job is left, though it holds nothing any more.
func (pr *program) left() bool {
	o := pr.proc.n.owners[pr.proc.job]
	if o == nil || !pr.proc.n.up || o.rests() {
		return true
	}
	for _, n := range pr.w.nodes {
		if n.up && n.store.has(pr.proc.job) {
			return true
		}
	}
	g := o.core.Gauges()
	return g.Recovering || g.Tasks+g.Objects+g.Actors > 0 || g.InlineBytes+g.SpecBytes+g.LineageBytes > 0
}
