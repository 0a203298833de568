package owner_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner"
	"mobula/raylet/sched"
	"mobula/wire"
)

// lanesWorld is an owner and a scheduler, both real, and worker processes with the real logic of a language, on a virtual clock.
// Each message is on its way for as long as the seed says; those of one sender to one receiver keep their order.
type lanesWorld struct {
	t     *testing.T
	rng   *rand.Rand
	plan  lanesPlan
	start func(w *lanesWorld, id ids.ClientID) side

	now     int64
	cfg     owner.Config
	core    *owner.Core
	epoch   uint64
	log     map[uint64][]byte
	cookie  uint64
	timer   int64
	queues  map[string][]owner.Event // to the owner, by sender
	sched   *sched.Core
	toSched []sched.Event
	ticks   []tick
	procs   map[ids.ClientID]*process
	next    ids.ClientID

	root    ids.TaskID
	depth   map[ids.TaskID]int // a task with a depth submits two more and gets both
	class   map[ids.TaskID]*wire.TaskOptions
	begun   map[ids.TaskID]ids.ClientID
	answers map[ids.ObjectID]bool
	trace   []string
	fault   string // found in a task's goroutine
}

type lanesPlan struct {
	roots, depth    int
	shared          bool // one process has several leases
	deaths, cancels float64
	rebuilds        float64
}

type tick struct {
	at int64
	ev sched.Event
}

// side is a worker process: the real logic of its language, and the tasks that run in it.
type side interface {
	deliver(m wire.Msg)
	acts() []func()  // what can happen in it
	whims() []func() // what may happen in it besides, at any time and without an end
	sent() []wire.Msg
	has() map[ids.TaskID]bool
	end()
}

type process struct {
	side
	in     []wire.Msg
	leases map[ids.LeaseID]bool
	stalls int // turns for which its tasks' threads get no processor
}

const lanesDriver ids.ClientID = 1

func newLanesWorld(t *testing.T, seed uint64, p lanesPlan, start func(*lanesWorld, ids.ClientID) side) *lanesWorld {
	w := &lanesWorld{t: t, rng: rand.New(rand.NewPCG(seed, 16)), plan: p, start: start, now: 1e18, cfg: owner.Config{Job: 1},
		log: make(map[uint64][]byte), queues: make(map[string][]owner.Event), procs: make(map[ids.ClientID]*process), next: lanesDriver,
		root: ids.RootTask(1, uint64(lanesDriver)), depth: make(map[ids.TaskID]int), class: make(map[ids.TaskID]*wire.TaskOptions),
		begun: make(map[ids.TaskID]ids.ClientID), answers: make(map[ids.ObjectID]bool)}
	w.core = owner.New(w.cfg)
	var effs []sched.Effect
	var err error
	if w.sched, effs, err = sched.New(sched.Config{Resources: []wire.Resource{{Name: "CPU", Amount: 2000}}}); err != nil {
		t.Fatal(err)
	}
	w.fromSched(effs)
	w.post("driver", owner.ClientJoined{Client: lanesDriver, Role: wire.RoleDriver})
	return w
}

var lanesOptions = []*wire.TaskOptions{{Func: "f", NumReturns: 1, MaxRetries: -1}, {Func: "g", NumReturns: 1, MaxRetries: -1}}

// spec makes a task of a random class; its depth is how many generations come after it.
func (w *lanesWorld) spec(parent ids.TaskID, n uint64, depth int) *wire.TaskSpec {
	id := ids.Derive(parent, n)
	w.depth[id] = depth
	if w.class[id] == nil {
		w.class[id] = lanesOptions[w.rng.IntN(len(lanesOptions))]
	}
	return &wire.TaskSpec{ID: id, Parent: parent, Opts: w.class[id]}
}

func (w *lanesWorld) post(source string, ev owner.Event) {
	if b, ok := ev.(owner.FromClient); ok {
		if q := w.queues[source]; len(q) > 0 && w.rng.IntN(2) == 0 {
			if last, ok := q[len(q)-1].(owner.FromClient); ok {
				q[len(q)-1] = owner.FromClient{Client: b.Client, Msgs: append(slices.Clip(last.Msgs), b.Msgs...)}
				return
			}
		}
	}
	w.queues[source] = append(w.queues[source], ev)
}

func (w *lanesWorld) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *lanesWorld) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.trace[max(0, len(w.trace)-400):] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

func source(id ids.ClientID) string { return fmt.Sprintf("worker %4d", id) }

// step gives the owner one event.
func (w *lanesWorld) step(ev owner.Event) {
	w.now += 1 + w.rng.Int64N(100_000)
	if b, ok := ev.(owner.FromClient); ok {
		for _, m := range b.Msgs {
			w.note("%d says %T %+v", b.Client, m, m)
		}
	} else {
		w.note("%T %+v", ev, ev)
	}
	for _, e := range w.core.Step(w.now, ev) {
		switch e.Kind {
		case owner.ToClient:
			w.toClient(e.Client, e.Wire)
		case owner.Receipt:
			w.post("node", owner.ClientRead{Client: e.Client, Bytes: e.N})
		case owner.ToSched:
			w.toSched = append(w.toSched, e.Sched())
		case owner.Log:
			for _, r := range *e.Records {
				w.cookie++
				w.log[w.cookie] = slices.Clone(r.Bytes)
				delete(w.log, r.Appended(w.cookie))
			}
		case owner.LogFree:
			for _, ck := range *e.Cookies {
				delete(w.log, *ck)
			}
		case owner.Fetch:
			w.post("log", owner.Fetched{Token: e.Token, Record: w.log[e.Position()]})
		case owner.After:
			w.timer = w.now + e.N
		}
	}
	if err := w.core.Validate(); err != nil {
		w.fail("%v", err)
	}
}

func (w *lanesWorld) toClient(id ids.ClientID, m wire.Msg) {
	if r, ok := m.(*wire.Resolved); ok && id == lanesDriver {
		w.answers[r.ID] = true
	}
	if p := w.procs[id]; p != nil {
		p.in = append(p.in, m)
	}
}

func (w *lanesWorld) fromSched(effs []sched.Effect) {
	for _, e := range slices.Clone(effs) {
		switch e := e.(type) {
		case sched.ToOwner:
			w.post("sched", owner.FromSched{Msg: e.Msg})
		case sched.After:
			w.ticks = append(w.ticks, tick{w.now + int64(e.D), e.Ev})
		case sched.NeedWorker:
			id := w.process()
			w.procs[id].leases[e.Lease] = true
			w.toSched = append(w.toSched, sched.WorkerReady{Lease: e.Lease, Worker: id})
		case sched.ReleaseWorker:
			for _, p := range w.procs {
				delete(p.leases, e.Lease)
			}
		}
	}
}

// process finds a process for a lease.
func (w *lanesWorld) process() ids.ClientID {
	for _, id := range slices.Sorted(maps.Keys(w.procs)) {
		if p := w.procs[id]; len(p.leases) == 0 || w.plan.shared && w.rng.IntN(5) > 0 {
			return id
		}
	}
	w.next++
	w.procs[w.next] = &process{side: w.start(w, w.next), leases: make(map[ids.LeaseID]bool)}
	w.post(source(w.next), owner.ClientJoined{Client: w.next, Role: wire.RoleWorker})
	return w.next
}

// began notes that a task's code runs, which must not run elsewhere.
func (w *lanesWorld) began(task ids.TaskID, in ids.ClientID) {
	w.note("%v begins in %d", task, in)
	if other := w.begun[task]; w.procs[other] != nil {
		w.fault = fmt.Sprintf("task %v begins in worker %d, and runs in worker %d", task, in, other)
	}
	w.begun[task] = in
}

func (w *lanesWorld) ended(task ids.TaskID) { delete(w.begun, task) }

// collect puts what a process has said on its way. What it says of itself is for the node.
func (w *lanesWorld) collect(id ids.ClientID) {
	msgs := slices.DeleteFunc(w.procs[id].sent(), func(m wire.Msg) bool { return m.Kind() == wire.KindStats })
	if len(msgs) > 0 {
		w.post(source(id), owner.FromClient{Client: id, Msgs: msgs})
	}
}

// turn lets one thing happen; false: nothing can.
func (w *lanesWorld) turn() bool {
	var acts []func()
	stalled := false
	for _, q := range slices.Sorted(maps.Keys(w.queues)) {
		if evs := w.queues[q]; len(evs) > 0 {
			acts = append(acts, func() {
				if w.queues[q] = evs[1:]; len(evs) == 1 {
					delete(w.queues, q)
				}
				w.step(evs[0])
			})
		}
	}
	if len(w.toSched) > 0 {
		acts = append(acts, func() {
			ev := w.toSched[0]
			w.toSched = w.toSched[1:]
			w.note("sched: %T %+v", ev, ev)
			w.fromSched(w.sched.Step(w.now, ev))
		})
	}
	for _, id := range slices.Sorted(maps.Keys(w.procs)) {
		p := w.procs[id]
		do := p.acts()
		if p.stalls > 0 {
			p.stalls--
			stalled = stalled || len(do) > 0
			do = nil
		} else if len(do) > 0 && w.rng.IntN(40) == 0 {
			p.stalls = w.rng.IntN(100)
		}
		if len(acts)+len(do) > 0 && w.rng.IntN(4) == 0 {
			do = append(do, p.whims()...)
		}
		if len(p.in) > 0 {
			do = append(do, func() {
				m := p.in[0]
				p.in = p.in[1:]
				w.note("%d hears %T %+v", id, m, m)
				p.deliver(m)
			})
		}
		for _, f := range do {
			acts = append(acts, func() {
				f()
				w.collect(id)
			})
		}
	}
	if w.timer != 0 && w.timer <= w.now {
		acts = append(acts, func() {
			w.timer = 0
			w.step(owner.Timer{})
		})
	}
	for i, t := range w.ticks {
		if t.at <= w.now {
			acts = append(acts, func() {
				w.ticks = slices.Delete(w.ticks, i, i+1)
				w.fromSched(w.sched.Step(w.now, t.ev))
			})
			break
		}
	}
	if len(acts) == 0 {
		w.now += int64(time.Millisecond)
		return stalled
	}
	acts[w.rng.IntN(len(acts))]()
	if w.fault != "" {
		w.fail("%s", w.fault)
	}
	if w.rng.IntN(50) == 0 {
		w.now += int64(20 * time.Millisecond)
	}
	w.harm()
	return true
}

func (w *lanesWorld) harm() {
	p := w.plan
	if w.rng.Float64() < p.deaths {
		if ids := slices.Sorted(maps.Keys(w.procs)); len(ids) > 0 {
			w.kill(ids[w.rng.IntN(len(ids))])
		}
	}
	if w.rng.Float64() < p.cancels {
		tasks := slices.SortedFunc(maps.Keys(w.depth), func(a, b ids.TaskID) int { return slices.Compare(a[:], b[:]) })
		w.post("driver", owner.FromClient{Client: lanesDriver, Msgs: []wire.Msg{&wire.Cancel{Task: tasks[w.rng.IntN(len(tasks))], Recursive: w.rng.IntN(2) == 0}}})
	}
	if w.rng.Float64() < p.rebuilds {
		w.rebuild()
	}
}

func (w *lanesWorld) kill(id ids.ClientID) {
	p := w.procs[id]
	delete(w.procs, id)
	p.end()
	maps.DeleteFunc(w.begun, func(_ ids.TaskID, in ids.ClientID) bool { return in == id })
	err := errs.New(errs.CodeWorkerCrashed, "killed")
	w.post(source(id), owner.ClientGone{Client: id, Err: err})
	w.toSched = append(w.toSched, sched.WorkerGone{Worker: id, Leases: slices.Sorted(maps.Keys(p.leases)), Err: err})
}

// rebuild throws the owner away and makes another from its log.
func (w *lanesWorld) rebuild() {
	held, _ := w.core.Held()
	core, err := owner.Rebuild(w.cfg, func(yield func(uint64, []byte) bool) {
		for _, ck := range slices.Sorted(maps.Keys(w.log)) {
			if !yield(ck, w.log[ck]) {
				return
			}
		}
	})
	if err != nil {
		w.fail("%v", err)
	}
	w.core, w.timer = core, 0
	w.epoch++
	delete(w.queues, "log")
	ev := owner.Restored{Epoch: w.epoch, Clients: []owner.ClientJoined{{Client: lanesDriver, Role: wire.RoleDriver}}}
	known := slices.Collect(maps.Keys(w.procs))
	for _, evs := range w.queues { // those whose end is on its way are not told of yet
		for _, e := range evs {
			if g, ok := e.(owner.ClientGone); ok {
				known = append(known, g.Client)
			}
		}
	}
	slices.Sort(known)
	for _, id := range known {
		ev.Clients = append(ev.Clients, owner.ClientJoined{Client: id, Role: wire.RoleWorker})
	}
	w.step(ev)
	for _, ev := range held {
		if _, fromLog := ev.(owner.Fetched); !fromLog {
			w.step(ev)
		}
	}
	h := &wire.Holdings{Component: wire.ComponentOwner, Epoch: w.epoch}
	for i := range w.plan.roots {
		id := ids.Derive(w.root, uint64(i+1)).Return(0)
		h.Handles = append(h.Handles, id)
		if !w.answers[id] {
			h.Gets = append(h.Gets, wire.Get{ID: id, Fetch: true})
		}
	}
	w.post("driver", owner.FromClient{Client: lanesDriver, Msgs: []wire.Msg{h}})
}

// settle lets everything happen that can, time passing when it must, and sees to it that who is said to have a task has it.
func (w *lanesWorld) settle() {
	for n, idle := 0, 0; idle < 3; n++ {
		if n > 100_000 {
			w.fail("it does not come to rest")
		}
		if w.turn() {
			idle = 0
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(w.procs)) {
			w.collect(id)
		}
		if len(w.queues) > 0 {
			continue
		}
		w.checkLanes()
		at := w.now + int64(20*time.Millisecond)
		if w.timer != 0 {
			at = max(at, w.timer)
		}
		w.now = at
		for _, id := range slices.Sorted(maps.Keys(w.procs)) {
			for _, f := range w.procs[id].whims() {
				f()
			}
			w.collect(id)
		}
		if w.timer == 0 && len(w.ticks) == 0 {
			idle++
		}
	}
}

// checkLanes holds where nothing is on its way.
func (w *lanesWorld) checkLanes() {
	w.core.OnLanes(func(worker ids.ClientID, lease ids.LeaseID, t ids.TaskID, state string) {
		if p := w.procs[worker]; p != nil && !p.has()[t] {
			w.fail("task %v is %s on lease %v of worker %d, which does not have it", t, state, lease, worker)
		}
	})
}

// run submits all, and is done when each has been answered and nothing is left.
func (w *lanesWorld) run() {
	defer func() {
		for _, p := range w.procs {
			p.end()
		}
	}()
	var roots []ids.ObjectID
	for i := range w.plan.roots {
		s := w.spec(w.root, uint64(i+1), w.rng.IntN(w.plan.depth+1))
		roots = append(roots, s.ID.Return(0))
		w.post("driver", owner.FromClient{Client: lanesDriver, Msgs: []wire.Msg{&wire.Submit{Spec: s}, &wire.Get{ID: s.ID.Return(0), Fetch: true}}})
		for range w.rng.IntN(60) {
			w.turn()
		}
	}
	for range 2000 { // while harm is done
		w.turn()
	}
	w.plan.deaths, w.plan.cancels, w.plan.rebuilds = 0, 0, 0
	w.settle()
	for _, id := range roots {
		if !w.answers[id] {
			w.fail("root %v has no answer, and nothing happens any more", id)
		}
	}
	w.post("driver", owner.FromClient{Client: lanesDriver, Msgs: []wire.Msg{&wire.Release{IDs: roots}}})
	w.settle()
	if len(w.begun) > 0 {
		w.fail("%d tasks run still", len(w.begun))
	}
}

// lanesSeeds is how many runs of each plan there are.
var lanesSeeds = func() int {
	if os.Getenv("MOBULA_STRESS") != "" {
		return 200
	}
	return 20
}()

var lanesPlans = map[string]lanesPlan{
	"calm":     {roots: 6, depth: 3},
	"cancels":  {roots: 6, depth: 3, cancels: .01},
	"deaths":   {roots: 5, depth: 3, deaths: .004},
	"rebuilds": {roots: 5, depth: 3, rebuilds: .004},
	"all":      {roots: 5, depth: 3, deaths: .002, cancels: .005, rebuilds: .002},
}
