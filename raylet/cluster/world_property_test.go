package cluster

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/sched"
	"mobula/wire"
)

// amounts is "CPU", 2000, "GPU", 1000.
func amounts(kv ...any) []wire.Resource {
	var out []wire.Resource
	for i := 0; i < len(kv); i += 2 {
		out = append(out, wire.Resource{Name: kv[i].(string), Amount: int64(kv[i+1].(int))})
	}
	return out
}

// populate draws nodes, and jobs on the first two.
func (w *world) populate(opts ...*wire.TaskOptions) {
	for id := range ids.Home(2 + w.roll(4, "more nodes")) {
		what := amounts(sched.CPU, 1000*(1+w.roll(4, "cpus")))
		if w.roll(3, "gpu") == 0 {
			what = append(what, amounts(sched.GPU, 1000)...)
		}
		w.begin(id+1, what, "", 0)
	}
	w.settle()
	for i := range 1 + w.roll(3, "jobs") {
		w.newOwner(w.nodes[ids.Home(1+i%2)], uint64(i+1), opts...)
	}
}

func (w *world) jobs() []*owner {
	var out []*owner
	for _, o := range w.owners {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *owner) int { return int(int64(a.job) - int64(b.job)) })
	return out
}

// act has something happen that owners do.
func (w *world) act() {
	all := w.jobs()
	if len(all) == 0 {
		return
	}
	o := all[w.roll(len(all), "owner")]
	leases := o.sorted()
	pick := func(ok func(*slot) bool) (ids.LeaseID, *slot) {
		for _, id := range leases {
			if l := o.leases[id]; ok(l) && w.roll(2, "this one") == 0 {
				return id, l
			}
		}
		return 0, nil
	}
	switch w.roll(6, "act") {
	case 0, 1:
		o.submit(o.classes[w.roll(len(o.classes), "class")], 1+w.roll(12, "tasks"))
	case 2, 3:
		if id, l := pick(func(l *slot) bool { return l.busy && !l.blocked }); l != nil {
			o.finish(id)
		}
	case 4:
		if id, l := pick(func(l *slot) bool { return !l.busy }); l != nil {
			o.giveBack(id)
		}
	case 5:
		if id, l := pick(func(l *slot) bool { return l.busy && !l.asked }); l != nil && l.blocked {
			l.asked = true
			o.say(sched.UnblockCPU{Lease: id})
		} else if l != nil {
			l.blocked = true
			o.say(sched.BlockCPU{Lease: id})
		}
	}
}

// fault has something go wrong.
func (w *world) fault() {
	all := w.members()
	m := all[w.roll(len(all), "node")]
	switch w.roll(8, "fault") {
	case 0:
		if m.id > 1 {
			w.kill(m)
		}
	case 1:
		id := ids.Home(2 + w.roll(6, "new node"))
		if w.nodes[id] == nil {
			w.begin(id, amounts(sched.CPU, 1000*(1+w.roll(4, "cpus")), sched.GPU, 1000), "", ids.LeaseID(id.ID(w.epoch<<16)))
		}
	case 2:
		w.restartSched(m)
	case 3:
		w.restartCore(m)
	case 4:
		if jobs := w.jobs(); len(jobs) > 0 {
			jobs[w.roll(len(jobs), "owner")].restart()
		}
	case 5:
		m.what = amounts(sched.CPU, 1000*(1+w.roll(4, "cpus")))
		w.stepSched(m, sched.SetResources{Total: m.what})
	case 6:
		if jobs := w.jobs(); len(jobs) > 0 {
			if o := jobs[w.roll(len(jobs), "owner")]; o.at != m {
				o.giveUp(m)
			}
		}
	case 7:
		m.fill(uint64(w.roll(2, "hot")) * 90)
	}
}

// play lets things happen in any order.
func (w *world) play(steps int, faults bool) {
	for range steps {
		switch n := w.roll(20, "what"); {
		case n < 7:
			w.act()
		case n < 16:
			w.deliver()
		case n < 18:
			w.pass(time.Duration(w.roll(60, "ms")) * time.Millisecond)
		case n < 19:
			all := w.members()
			w.gossip(all[w.roll(len(all), "node")], false)
		case faults:
			w.fault()
		}
	}
}

// calm lets time pass without faults: all that is said arrives. end says whether tasks end; leases without a task go back.
func (w *world) calm(end bool) {
	for _, m := range w.members() {
		w.gossip(m, true)
	}
	w.settle()
	w.pass(50 * time.Millisecond)
	w.settle()
	for _, o := range w.jobs() {
		for _, id := range o.sorted() {
			switch l := o.leases[id]; {
			case l.blocked && !l.asked:
				l.asked = true
				o.say(sched.UnblockCPU{Lease: id})
			case l.busy && !l.blocked && end:
				o.finish(id)
			case !l.busy && l.of.ready == 0:
				o.giveBack(id)
			}
		}
	}
	w.settle()
}

func (w *world) unfinished() int {
	n := 0
	for _, o := range w.jobs() {
		for _, k := range o.classes {
			n += k.ready
		}
		n += len(o.leases)
	}
	return n
}

// drain lets everything end, and checks that it does and that nothing is left of it.
func (w *world) drain() {
	w.setups = false
	w.settle() // an owner that was restarted may hold leases that are yet to be repeated
	least := w.unfinished()
	for round := 0; w.unfinished() > 0; round++ {
		if n := w.unfinished(); n < least {
			least, round = n, 0
		}
		if round > 600 { // half a minute in which nothing has ended: one node may have much to do
			for _, o := range w.jobs() {
				for _, k := range o.classes {
					w.note("owner %v: %+v", o.job, *k)
				}
				for id, l := range o.leases {
					w.note("lease %v: %+v", id, *l)
				}
			}
			w.failf("%d tasks and leases are left", w.unfinished())
		}
		w.calm(true)
	}
	for range 100 {
		w.pass(200 * time.Millisecond)
		w.settle()
	}
	for _, m := range w.members() {
		total, free, leases := m.sched.Usage()
		if !slices.Equal(total, free) || leases > 0 {
			w.failf("%v has %v free of %v, and %d leases", m.name(), free, total, leases)
		}
		var l sched.Load
		if m.sched.Load(&l); len(l.Waiting) > 0 {
			w.failf("%v: %+v waits", m.name(), l.Waiting)
		}
		if len(m.core.leases) > 0 || len(m.core.waiting) > 0 || len(m.agents) > 0 {
			w.failf("%v has the leases %v, %d classes that wait, the jobs %v of other nodes", m.name(), slices.Sorted(maps.Keys(m.core.leases)), len(m.core.waiting), m.agents)
		}
	}
	for _, o := range w.jobs() {
		for _, k := range o.classes {
			s, _ := ShapeOf(k.opts, wire.TaskNormal)
			able := slices.ContainsFunc(o.at.core.view.Nodes, func(n Node) bool { return n.able(&s) })
			if able == (k.infeasible != nil) && k.infeasible != nil {
				w.failf("owner %v: class %v stays infeasible: %v", o.job, k.key.Class, k.infeasible)
			}
		}
	}
}

var shapes = []*wire.TaskOptions{
	{Func: "one"},
	{Func: "spread", Spread: true},
	{Func: "half", Resources: amounts(sched.CPU, 500)},
	{Func: "two", Resources: amounts(sched.CPU, 2000)},
	{Func: "gpu", Resources: amounts(sched.CPU, 1000, sched.GPU, 1000)},
}

// Whatever owners do, and whatever dies or forgets meanwhile: no lease is lost or held twice, a node's death takes its leases alone, and in the end all that
// some node can run has run, and nothing is left on any node.
func TestRandomWorld(t *testing.T) { playRandomly(t) }

// As TestRandomWorld, 30 times.
func TestStressRandomWorld(t *testing.T) {
	if os.Getenv("MOBULA_STRESS") == "" {
		t.Skip("set MOBULA_STRESS=1: 3,000 runs")
	}
	for i := range 30 {
		t.Run(strconv.Itoa(i), playRandomly) // each has a name of its own, and so a seed of its own
	}
}

func playRandomly(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		w := newWorld(tb{t, rt}, func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(rt, what) })
		w.populate(shapes...)
		w.setups = rapid.Bool().Draw(rt, "failing pools")
		w.play(rapid.IntRange(0, 200).Draw(rt, "steps"), true)
		w.drain()
	})
}

// tb has rapid's way to fail a test, which shrinks what was drawn.
type tb struct {
	testing.TB
	rt *rapid.T
}

func (t tb) Fatalf(format string, args ...any) { t.rt.Fatalf(format, args...) }
func (t tb) Fatal(args ...any)                 { t.rt.Fatal(args...) }

// As TestStressRandomWorld, in longer runs from fixed seeds, each twice: the same seed gives the same.
func TestWorldFromSeeds(t *testing.T) {
	run := func(seed uint64) string {
		r := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t, func(n int, _ string) int { return r.IntN(n) })
		w.populate(shapes...)
		w.setups = seed%3 == 0
		w.play(1500, true)
		w.drain()
		return w.log.String()
	}
	for _, seed := range testkit.Seeds(t, 20) {
		once, again := run(seed), run(seed)
		if once == again {
			continue
		}
		a, b := strings.Split(once, "\n"), strings.Split(again, "\n")
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("seed %d gives two different runs: %s\nand %s", seed, a[i], b[i])
			}
		}
	}
}

// No task waits for long while a node that could run it has room: two seconds after things have calmed down none does.
func TestNoTaskWaitsWhileANodeIsFree(t *testing.T) {
	for _, seed := range testkit.Seeds(t, 40) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := newWorld(t, func(n int, _ string) int { return r.IntN(n) })
		w.populate(shapes[:2]...)
		w.play(400, false)
		for range 40 {
			w.calm(false)
		}
		for _, o := range w.jobs() {
			for _, k := range o.classes {
				for _, m := range w.members() {
					if _, free, _ := m.sched.Usage(); k.ready > 0 && holds(free, k.need) {
						w.failf("seed %d: %d tasks of owner %v wait, and %v has %v free", seed, k.ready, o.job, m.name(), free)
					}
				}
			}
		}
		w.drain()
	}
}
