package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// logged is how many lines a failure shows.
const logged = 150

// dice decides what happens: it draws a number in [0, n).
type dice func(n int, what string) int

// world is a cluster of real schedulers and cores in one process. Messages are delivered in any order, but in order on each way; reports are lost and late.
// Pools, agents and owners are simple ones.
type world struct {
	t      testing.TB
	roll   dice
	now    int64
	nodes  map[ids.Home]*member
	owners map[ids.JobID]*owner
	ways   map[way][]func()
	timers []timer
	epoch  uint64
	setups bool // pools fail at times
	failed bool // one has
	log    strings.Builder
	held   map[ids.LeaseID]ids.JobID // by owners

}

// way is what messages are in order on.
type way struct{ from, to string }

type timer struct {
	at int64
	do func()
}

// member is a node in one of its lives.
type member struct {
	id     ids.Home
	what   []wire.Resource
	zone   string
	store  Store // as it reports it
	sched  *sched.Core
	core   *Core
	report *Reporter
	agents map[ids.JobID]*member // which node has opened it here
	knows  map[ids.Home]*member  // which others live, and their lives
	first  ids.LeaseID           // below all leases of this life
	last   ids.LeaseID
	closed map[ids.JobID]ids.LeaseID // the last lease when a job was closed here, or given up
	worker uint64
	dead   bool
}

// gave tells whether a lease of a job is of this life, and was not ended here with the job.
func (m *member) gave(job ids.JobID, id ids.LeaseID) bool { return id > m.first && id > m.closed[job] }

func newWorld(t testing.TB, roll dice) *world {
	return &world{t: t, roll: roll, now: 1, nodes: map[ids.Home]*member{}, owners: map[ids.JobID]*owner{}, ways: map[way][]func(){},
		held: map[ids.LeaseID]ids.JobID{}}
}

func (w *world) note(format string, args ...any) { fmt.Fprintf(&w.log, format+"\n", args...) }

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	lines := strings.Split(w.log.String(), "\n")
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(lines[max(0, len(lines)-logged):], "\n"))
}

func (w *world) members() []*member {
	return slices.SortedFunc(maps.Values(w.nodes), func(a, b *member) int { return cmp.Compare(a.id, b.id) })
}

// post puts a message on its way.
func (w *world) post(from, to string, do func()) {
	k := way{from, to}
	w.ways[k] = append(w.ways[k], do)
}

// begin starts a node's life. All others are told.
func (w *world) begin(id ids.Home, what []wire.Resource, zone string, last ids.LeaseID) *member {
	m := &member{id: id, what: what, zone: zone, agents: map[ids.JobID]*member{}, knows: map[ids.Home]*member{}, closed: map[ids.JobID]ids.LeaseID{}, last: max(last, ids.LeaseID(id.ID(0)))}
	m.first = m.last
	w.epoch++
	m.report = NewReporter(id, map[string]string{"zone": zone}, w.epoch<<32)
	m.worker = w.epoch << 20
	w.nodes[id] = m
	w.startSched(m, nil)
	w.startCore(m)
	for _, o := range w.members() {
		if o != m {
			w.introduce(o, m)
			w.introduce(m, o)
		}
	}
	return m
}

func (w *world) introduce(to, of *member) {
	w.post(of.name(), to.name(), func() {
		if !to.dead && !of.dead {
			to.knows[of.id] = of
			w.stepCore(to, NodeUp{of.id})
		}
	})
}

func (m *member) name() string { return fmt.Sprint("node ", m.id) }

// startSched makes a scheduler, which asks the owners of the jobs what they hold.
func (w *world) startSched(m *member, jobs []ids.JobID) {
	w.epoch++
	c, out, err := sched.New(sched.Config{Resources: m.what, FirstLease: m.last + 100, Jobs: jobs, Epoch: w.epoch})
	if err != nil {
		w.t.Fatal(err)
	}
	m.sched = c
	w.schedEffects(m, c, slices.Clone(out))
}

// startCore makes a core that knows of no lease.
func (w *world) startCore(m *member) {
	w.epoch++
	c, err := New(CoreConfig{Config: DefaultConfig(), Self: m.id, Random: seeded(w.epoch), CloseAfter: time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	m.core = c
}

func (w *world) stepSched(m *member, ev sched.Event) {
	if m.dead {
		return
	}
	w.note("%v: %T%+v", m.name(), ev, ev)
	w.schedEffects(m, m.sched, slices.Clone(m.sched.Step(w.now, ev)))
}

func (w *world) schedEffects(m *member, c *sched.Core, out []sched.Effect) {
	for _, e := range out {
		switch e := e.(type) {
		case sched.ToOwner:
			w.toOwner(m, e)
		case sched.NeedWorker:
			m.last = max(m.last, e.Lease)
			w.post("pool", m.name(), func() { w.serve(m, c, e.Lease) })
		case sched.After:
			w.after(e.D, func() {
				if m.sched == c {
					w.stepSched(m, e.Ev)
				}
			})
		}
	}
}

// serve gives a lease a worker, or fails to.
func (w *world) serve(m *member, c *sched.Core, id ids.LeaseID) {
	if m.sched != c {
		return
	}
	if w.setups && w.roll(12, "setup") == 0 {
		w.failed = true
		w.stepSched(m, sched.NoWorker{Lease: id, Err: errs.New(errs.CodeRuntimeSetup, "it does not start")})
		return
	}
	m.worker++
	w.stepSched(m, sched.WorkerReady{Lease: id, Worker: ids.ClientID(m.id.ID(m.worker))})
}

// toOwner takes what a scheduler says to the node of the owner, by the job's agent if that is another one.
func (w *world) toOwner(m *member, e sched.ToOwner) {
	home := m
	if e.Job.Home() != m.id {
		home = m.agents[e.Job]
	}
	if home == nil {
		return
	}
	w.post(m.name(), home.name(), func() { w.stepCore(home, FromScheduler{m.id, e.Job, e.Msg}) })
}

func (w *world) stepCore(m *member, ev Event) {
	if m.dead {
		return
	}
	w.note("core %v: %T%+v", m.id, ev, ev)
	w.coreEffects(m, m.core, slices.Clone(m.core.Step(w.now, ev)))
	if err := m.core.validate(); err != nil {
		w.failf("core %v after %T%+v: %v", m.id, ev, ev, err)
	}
}

func (w *world) coreEffects(m *member, c *Core, out []Effect) {
	for _, e := range out {
		w.note("  %T%+v", e, e)
		switch e := e.(type) {
		case ToScheduler:
			w.send(m, e.Node, func(to *member) {
				if to != m && to.agents[e.Job] != m {
					w.failf("%v is sent %T of job %v, which is not open there", to.name(), e.Event, e.Job)
				}
				w.stepSched(to, e.Event)
			})
		case OpenJob:
			w.send(m, e.Node, func(to *member) { to.agents[e.Job] = m })
		case CloseJob:
			w.send(m, e.Node, func(to *member) {
				delete(to.agents, e.Job)
				w.stepSched(to, sched.DropJob{Job: e.Job})
				last := to.last
				to.closed[e.Job] = last
				w.post(to.name(), m.name(), func() {
					w.workersEnded(m, e.Job, to.id, last)
					w.stepCore(m, JobClosed{to.id, e.Job})
				})
			})
		case ToOwner:
			w.checkRefusal(m, e)
			w.post(m.name(), e.Job.String(), func() {
				if o := w.owners[e.Job]; o != nil {
					o.handle(e.Msg)
				}
			})
		case After:
			w.after(e.D, func() {
				if m.core == c {
					w.stepCore(m, Timer{})
				}
			})
		}
	}
}

// checkRefusal checks that an owner is told so only of what no node can run that the core knows, or where workers were made to fail. What all schedulers
// have refused that could be asked is passed on: that may be over by now, and then it is told too.
func (w *world) checkRefusal(m *member, e ToOwner) {
	no, ok := e.Msg.(sched.Infeasible)
	if !ok || w.owners[e.Job] == nil {
		return
	}
	if no.Err.Code == errs.CodeRuntimeSetup {
		if !w.failed {
			w.failf("no worker could be started: %v", no.Err)
		}
		return
	}
	if !strings.Contains(no.Err.Error(), "no node can run it") {
		return
	}
	k := w.owners[e.Job].classes[no.Key.Class-1]
	s, _ := ShapeOf(k.opts, wire.TaskNormal)
	for i := range m.core.view.Nodes {
		n := &m.core.view.Nodes[i]
		if at := w.nodes[n.ID]; n.able(&s) && at != nil && holds(at.what, k.need) {
			w.failf("class %v of job %v is infeasible, and node %v is able: %v", no.Key.Class, e.Job, n.ID, no.Err)
		}
	}
}

func (w *world) send(m *member, to ids.Home, do func(*member)) {
	at := m
	if to != m.id {
		at = m.knows[to]
	}
	if at == nil {
		w.failf("%v sends to node %v, which it does not know", m.name(), to)
	}
	w.post(m.name(), at.name(), func() {
		if !at.dead {
			do(at)
		}
	})
}

func (w *world) after(d time.Duration, do func()) {
	w.timers = append(w.timers, timer{w.now + int64(d), do})
}

// gossip has a node report to every node, late or not at all.
func (w *world) gossip(m *member, reliable bool) {
	var l sched.Load
	m.sched.Load(&l)
	n := *m.report.Report(&l, Alive, m.store, true)
	n.Total, n.Free, n.Backlog = slices.Clone(n.Total), slices.Clone(n.Free), slices.Clone(n.Backlog)
	for _, to := range w.members() {
		if to == m {
			w.stepCore(m, NodeReport{n})
		} else if reliable || w.roll(4, "report") > 0 {
			w.post(fmt.Sprint("report ", w.now, m.id), to.name(), func() { w.stepCore(to, NodeReport{n}) })
		}
	}
}

// open gives the ways on which there is something.
func (w *world) open() []way {
	return slices.SortedFunc(maps.Keys(w.ways), func(a, b way) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
}

// deliver delivers one message; false: there is none.
func (w *world) deliver() bool {
	open := w.open()
	if len(open) == 0 {
		return false
	}
	k := open[w.roll(len(open), "way")]
	do := w.ways[k][0]
	if w.ways[k] = w.ways[k][1:]; len(w.ways[k]) == 0 {
		delete(w.ways, k)
	}
	do()
	return true
}

// settle delivers all that is under way.
func (w *world) settle() {
	for i := 0; w.deliver(); i++ {
		if i > 200_000 {
			w.failf("messages without end")
		}
	}
}

// pass lets time go by, timer by timer.
func (w *world) pass(d time.Duration) {
	end := w.now + int64(d)
	for {
		i := -1
		for j, t := range w.timers {
			if t.at <= end && (i < 0 || t.at < w.timers[i].at) {
				i = j
			}
		}
		if i < 0 {
			break
		}
		t := w.timers[i]
		w.timers = slices.Delete(w.timers, i, i+1)
		w.now = max(w.now, t.at)
		t.do()
	}
	w.now = end
}

// kill ends a node's life with all that is on it. What it has sent may have arrived or not; what is on its way to it is lost.
func (w *world) kill(m *member) {
	w.note("%v is killed", m.name())
	m.dead = true
	delete(w.nodes, m.id)
	for _, k := range w.open() {
		if k.to == m.name() || k.from == m.name() && w.roll(2, "lost with it") == 0 {
			delete(w.ways, k)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.owners)) {
		if id.Home() == m.id {
			w.owners[id].end()
		}
	}
	for _, o := range w.members() {
		w.post(m.name(), o.name(), func() { // behind all that arrives of it
			delete(o.knows, m.id)
			for _, job := range w.jobs() {
				if job.at == o {
					w.post(o.name(), job.job.String(), func() { job.nodeGone(m.id) })
				}
			}
			w.stepCore(o, NodeGone{m.id})
			for _, job := range slices.Sorted(maps.Keys(o.agents)) {
				if job.Home() == m.id {
					delete(o.agents, job)
					w.stepSched(o, sched.DropJob{Job: job})
				}
			}
		})
	}
}

// restartSched replaces a node's scheduler by one that knows nothing.
func (w *world) restartSched(m *member) {
	w.note("the scheduler of %v restarts", m.name())
	jobs := slices.Collect(maps.Keys(m.agents))
	for id := range w.owners {
		if id.Home() == m.id {
			jobs = append(jobs, id)
		}
	}
	slices.Sort(jobs)
	w.startSched(m, jobs)
}

// restartCore replaces a node's core by one that knows nothing.
func (w *world) restartCore(m *member) {
	w.note("the core of %v restarts", m.name())
	var jobs []ids.JobID
	for id := range w.owners {
		if id.Home() == m.id {
			jobs = append(jobs, id)
		}
	}
	slices.Sort(jobs)
	w.startCore(m)
	w.stepCore(m, Restored{Nodes: slices.Sorted(maps.Keys(m.knows)), Jobs: jobs, Epoch: w.epoch})
}
