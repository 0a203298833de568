package owner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/record"
	"mobula/wire"
)

// simWorld is everything around a core, on a virtual clock: a log, a store, a scheduler with
// worker processes, a directory and clients. Each part is a queue of events for the core; which
// goes next is drawn, the order within one is kept.
type simWorld struct {
	t   *testing.T
	rng *rand.Rand
	cfg Config
	c   *Core
	now int64

	log     []simRecord
	cookies map[uint64]int // position in log
	timer   int64          // when the core wants Timer; 0: never
	ended   bool
	epoch   uint64

	store   *simStore // of the job's own node, which is in stores too
	stores  map[ids.Home]*simStore
	sched   *simSched
	clients map[ids.ClientID]*simClient
	nextID  ids.ClientID

	queues map[string][]Event // to the core, by source
	names  map[string]ids.ActorID

	byDriver  map[ids.ObjectID]bool    // tasks that it has submitted, and its puts, as Forget records name them
	forgotten map[ids.ObjectID]bool    // of these
	notInLog  map[ids.ObjectID]bool    // all that was forgotten and did not come again
	want      map[ids.ObjectID]outcome // what each object must come to
	mayFail   map[ids.ObjectID]bool    // cancelled or lost for good: an error is right too
	steps     int
	deps      []simDep
	runs      map[ids.TaskID]int // attempts that started
	crash     float64            // chance of a rebuild a step
	refusals  float64            // chance that a task's arguments have no room
	silent    float64            // chance that a client says nothing after a rebuild
	anyOrder  bool               // actors run their calls in any order
	panics    float64            // chance that a call of an actor panics, each time that it goes on
	validated bool
}

type simRecord struct {
	cookie uint64
	b      []byte
	freed  bool
	lapsed bool
	gone   bool // with its segment
}

// simDep says that an object's value depends on another's.
type simDep struct{ of, on ids.ObjectID }

// outcome is a value, or an error's code.
type outcome struct {
	val uint64
	err errs.Code
}

func newSimWorld(t *testing.T, seed uint64, cfg Config) *simWorld {
	cfg.Job = 1
	w := &simWorld{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), cfg: cfg, now: 1e18,
		cookies: make(map[uint64]int), clients: make(map[ids.ClientID]*simClient), queues: make(map[string][]Event),
		want: make(map[ids.ObjectID]outcome), mayFail: make(map[ids.ObjectID]bool), names: make(map[string]ids.ActorID),
		runs: make(map[ids.TaskID]int), validated: true, byDriver: make(map[ids.ObjectID]bool), forgotten: make(map[ids.ObjectID]bool),
		notInLog: make(map[ids.ObjectID]bool),
	}
	w.store = newSimStore(w, 0)
	w.stores = map[ids.Home]*simStore{0: w.store}
	w.sched = newSimSched(w, 2)
	w.c = New(cfg)
	return w
}

func (w *simWorld) post(source string, ev Event) { w.queues[source] = append(w.queues[source], ev) }

// step gives the core one event and carries out what it asks.
func (w *simWorld) step(ev Event) {
	w.t.Helper()
	w.steps++
	w.now += 1 + w.rng.Int64N(2000)
	w.note("%T %s", ev, show(ev))
	ended := make(map[ids.ActorID]ids.ClientID) // in this step, for good
	for _, e := range w.c.Step(w.now, ev) {
		switch m := e.Wire.(type) {
		case *wire.StopActor:
			if !m.Restarts && !m.Close {
				ended[m.Actor] = e.Client
			}
		case *wire.Exec:
			for _, t := range m.Tasks {
				if by, ok := ended[ids.ActorID(t.Spec.ID)]; ok && by == e.Client {
					w.t.Fatalf("worker %d is told that actor %v has ended, and then to make it", e.Client, t.Spec.ID)
				}
			}
		}
		if e.Kind != Log && e.Kind != LogFree {
			w.note("    %d client %d %s", e.Kind, e.Client, show(e.Wire, e.msg))
		}
		w.do(&e)
	}
	if w.validated {
		if err := w.c.Validate(); err != nil {
			w.t.Fatalf("after step %d, %T %+v: %v", w.steps, ev, ev, err)
		}
	}
}

func (w *simWorld) do(e *Effect) {
	switch e.Kind {
	case ToClient:
		if m, ok := e.Wire.(*wire.Exec); ok && w.clients[e.Client] != nil && w.sched.epoch == 0 {
			if l := w.sched.leases[m.Lease]; l == nil || l.worker.id != e.Client {
				w.t.Fatalf("tasks are pushed to %d over lease %v, which it does not have", e.Client, m.Lease)
			}
		}
		if cl := w.clients[e.Client]; cl != nil {
			if m, ok := e.Wire.(*wire.Exec); ok {
				cl.store().checkPinned(m)
			}
			cl.in = append(cl.in, e.Wire)
		}
	case Receipt:
		if cl := w.clients[e.Client]; cl != nil {
			cl.in = append(cl.in, simReceipt(e.N))
		}
	case ToStore:
		if s := w.stores[e.Node]; s != nil {
			s.handle(e.msg)
		}
	case ToSched:
		w.sched.handle(e.msg)
	case ToDirectory:
		w.directory(e.msg)
	case Log:
		for _, r := range *e.Records {
			ck := w.append(slices.Clone(r.Bytes))
			rec, _, err := record.Parse(r.Bytes)
			if err != nil {
				w.t.Fatalf("the core logs what cannot be read: %v", err)
			}
			w.remember(rec)
			if old := r.Appended(ck); old != 0 {
				w.free(old)
			}
		}
	case LogFree:
		for _, ck := range *e.Cookies {
			if *ck != 0 {
				w.free(*ck)
			}
		}
	case LogLapse:
		for _, ck := range *e.Cookies {
			w.log[w.cookies[*ck]].lapsed = true
		}
	case Fetch:
		at := e.Position()
		r := w.log[w.cookies[at]]
		switch {
		case at != 0 && !r.freed:
			w.post("log", Fetched{Token: e.Token, Record: r.b})
		case w.cfg.VolatileLog: // in the step that asked
			w.post("log", Fetched{Token: e.Token, Err: errs.New(errs.CodeUnknown, "no record %d", at)})
		default:
			w.t.Fatalf("record %d is read after it was freed", at)
		}
	case After:
		w.timer = w.now + e.N
	case JobEnded:
		w.ended = true
	}
}

func (w *simWorld) free(ck uint64) {
	w.t.Helper()
	r := &w.log[w.cookies[ck]]
	if r.freed {
		w.t.Fatalf("record %d is freed twice", ck)
	}
	r.freed = true
}

// remember notes what is forgotten of what the driver made: it does not come again.
func (w *simWorld) remember(rec record.Record) {
	var id ids.ObjectID
	switch rec := rec.(type) {
	case *record.Submit:
		id = ids.ObjectID{Task: rec.Spec.ID, Index: record.WholeTask}
	case *record.Object:
		id = rec.ID
	case *record.Forget:
		for _, id := range rec.IDs {
			w.forgotten[id] = w.byDriver[id]
			w.notInLog[id] = true
		}
		return
	}
	delete(w.notInLog, id)
	if w.forgotten[id] {
		w.t.Fatalf("%v was forgotten, and is taken once more", id)
	}
}

func (w *simWorld) directory(m any) {
	switch m := m.(type) {
	case ClaimName:
		key := m.Opts.Namespace + "/" + m.Opts.ActorName
		if has, ok := w.names[key]; ok && has != m.Actor {
			w.post("directory", FromDirectory{NameClaimed{Actor: m.Actor, Existing: has}})
			return
		}
		w.names[key] = m.Actor
		w.post("directory", FromDirectory{NameClaimed{Actor: m.Actor}})
	case ReleaseName:
		maps.DeleteFunc(w.names, func(_ string, a ids.ActorID) bool { return a == m.Actor })
	}
}

// rebuild throws the core away and makes a new one from the log. Freed records are left out
// or not, as the log likes.
func (w *simWorld) rebuild() {
	w.t.Helper()
	keepFreed := w.rng.IntN(2) == 0 && !w.cfg.VolatileLog
	c, err := Rebuild(w.cfg, func(yield func(uint64, []byte) bool) {
		for _, i := range w.rng.Perm(len(w.log)) {
			r := w.log[i]
			if !r.gone && (keepFreed || !r.freed) && !yield(r.cookie, r.b) {
				return
			}
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range w.log {
		w.log[i].freed = w.log[i].gone || w.log[i].freed && !keepFreed // the new core frees what it finds, again
		w.log[i].lapsed = false
	}
	for id := range w.notInLog {
		if c.isKnown(id) {
			w.t.Fatalf("%v was forgotten, and the log has it", id)
		}
	}
	held, _ := w.c.Held()
	w.c, w.timer = c, 0
	w.epoch++
	delete(w.queues, "log") // the old core's reads are answered to nobody
	ev := Restored{Epoch: w.epoch, Nodes: w.others()}
	for _, id := range slices.Sorted(maps.Keys(w.clients)) {
		ev.Clients = append(ev.Clients, ClientJoined{Client: id, Role: w.clients[id].role})
	}
	for _, evs := range w.queues { // clients that are gone and not yet told of were there too
		for _, e := range evs {
			if g, ok := e.(ClientGone); ok && w.clients[g.Client] == nil {
				ev.Clients = append(ev.Clients, ClientJoined{Client: g.Client, Role: wire.RoleWorker})
			}
		}
	}
	slices.SortFunc(ev.Clients, func(a, b ClientJoined) int { return int(a.Client) - int(b.Client) })
	w.step(ev)
	for _, ev := range held {
		if _, fromLog := ev.(Fetched); !fromLog {
			w.step(ev)
		}
	}
}

// simSegment is how many records a segment of the log has. One in which none is live goes as a whole, the last one apart.
const simSegment = 12

// oldest gives the records of the oldest segment there is, from its index on; false: it is the last one.
func (w *simWorld) oldest() (at int, recs []simRecord, ok bool) {
	for at+simSegment < len(w.log) {
		if recs = w.log[at : at+simSegment]; !recs[0].gone {
			return at, recs, true
		}
		at += simSegment
	}
	return 0, nil, false
}

// drop removes segments in which nothing is live, and the oldest ones if all that is live in them has lapsed.
func (w *simWorld) drop() {
	oldest := true
	for at := 0; at+simSegment < len(w.log); at += simSegment {
		recs := w.log[at : at+simSegment]
		if slices.ContainsFunc(recs, func(r simRecord) bool { return !r.freed && (!oldest || !r.lapsed) }) {
			oldest = false
			continue
		}
		for i := range recs {
			recs[i].freed, recs[i].gone = true, true
		}
	}
}

// tend is the upkeep of the log as the node does it, which moves what is live in the oldest segment. Sometimes it moves a record of any segment, which
// must do no harm.
func (w *simWorld) tend() {
	w.drop()
	if len(w.log) == 0 {
		return
	}
	at, recs, ok := w.oldest()
	if !ok || w.rng.IntN(2) == 0 {
		w.move(w.rng.IntN(len(w.log)))
		return
	}
	for i := range recs {
		w.move(at + i)
		if w.rng.IntN(2*simSegment) == 0 {
			return // the core is brought down here
		}
	}
	w.drop()
}

// move moves a live record to the end of the log.
func (w *simWorld) move(i int) {
	r := w.log[i]
	if r.freed || r.lapsed {
		return
	}
	at := w.c.Relocate(r.cookie, r.b)
	w.log[i].freed = true
	if at == nil && w.epoch > 0 {
		return // it was freed before, and the log did not remember
	}
	if at == nil {
		w.t.Fatalf("record %d is live and nobody knows it: %s", r.cookie, &r)
	}
	if *at != r.cookie {
		w.t.Fatalf("record %d is moved for %d", r.cookie, *at)
	}
	*at = w.append(r.b)
}

func (r *simRecord) String() string {
	rec, seq, err := record.Parse(r.b)
	return fmt.Sprintf("%d %T %+v %v", seq, rec, rec, err)
}

func (w *simWorld) append(b []byte) uint64 {
	ck := uint64(len(w.log) + 1)
	w.cookies[ck] = len(w.log)
	w.log = append(w.log, simRecord{cookie: ck, b: b})
	return ck
}

// turn lets one thing happen, and is false when nothing can but the passing of time.
func (w *simWorld) turn() bool {
	w.t.Helper()
	if w.crash > 0 && w.rng.Float64() < w.crash {
		w.rebuild()
		return true
	}
	if w.crash > 0 && w.rng.IntN(20) == 0 {
		w.tend()
	}
	var acts []func()
	for _, q := range slices.Sorted(maps.Keys(w.queues)) {
		if evs := w.queues[q]; len(evs) > 0 {
			acts = append(acts, func() {
				w.queues[q] = evs[1:]
				w.step(evs[0])
			})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.clients)) {
		cl := w.clients[id]
		if len(cl.in) > 0 {
			acts = append(acts, cl.receive)
		}
		if cl.canRun() {
			acts = append(acts, cl.run)
		}
	}
	if w.timer != 0 && w.timer <= w.now {
		acts = append(acts, func() {
			w.timer = 0
			w.step(Timer{})
		})
	}
	if w.sched.canGrant() {
		acts = append(acts, w.sched.grant)
	}
	if len(acts) == 0 {
		return false
	}
	acts[w.rng.IntN(len(acts))]()
	return true
}

// settle runs until nothing happens any more, time passing when it must.
func (w *simWorld) settle() {
	w.t.Helper()
	for n := 0; ; n++ {
		if n > 5_000 {
			w.t.Fatal("it does not come to rest")
		}
		if w.turn() {
			continue
		}
		if w.timer == 0 {
			return
		}
		w.now = max(w.now, w.timer)
		w.timer = 0
		w.step(Timer{})
	}
}

// check fails unless nothing is left in the core, the store and the log.
func (w *simWorld) check() {
	w.t.Helper()
	c := w.c
	if n := c.tasks.n + c.puts.n + len(c.placeholders) + len(c.actors.byID) + len(c.children) + len(c.fetches); n > 0 || c.lineage.bytes != 0 {
		for _, t := range c.tasks.all() {
			w.t.Logf("left: task %v %s %v live %d flags %b", t.id(), t.name(), t.state, t.live, t.flags)
			t.eachReturn(func(o *objRec) {
				w.t.Logf("  %v %v handle %v tasks %d objs %d lineage %d", o.id, o.state, o.holder, o.tasks, o.objs, o.lineage)
			})
		}
		for _, o := range c.placeholders {
			w.t.Logf("left: stray %v tasks %d objs %d lineage %d", o.id, o.tasks, o.objs, o.lineage)
		}
		w.t.Fatalf("left: %d tasks, %d puts, %d strays, %d actors, %d parents, %d reads, %d bytes of lineage",
			c.tasks.n, c.puts.n, len(c.placeholders), len(c.actors.byID), len(c.children), len(c.fetches), c.lineage.bytes)
	}
	if c.budget.inline != 0 || c.budget.specs != 0 {
		w.t.Fatalf("left: %d bytes inline, %d of specs", c.budget.inline, c.budget.specs)
	}
	for _, s := range w.stores {
		s.check()
	}
	if n := len(c.copies.byID); n > 0 {
		w.t.Fatalf("the places of %d objects are left", n)
	}
	for _, r := range w.log {
		if !r.freed {
			rec, _, _ := record.Parse(r.b)
			switch rec.(type) {
			case *record.Forget, *record.Options:
			default:
				if w.epoch == 0 {
					w.t.Fatalf("record %d is left: %+v", r.cookie, rec)
				}
			}
		}
	}
	if n := w.sched.held(); n > 0 {
		w.t.Fatalf("%d leases are still held", n)
	}
}

var simTrace = os.Getenv("OWNER_SIM_TRACE") != ""

// note keeps a line for a failing run, where OWNER_SIM_TRACE is set.
func (w *simWorld) note(format string, args ...any) {
	if simTrace {
		w.t.Logf(format, args...)
	}
}

// show prints messages with what they point to.
func show(vs ...any) string {
	if !simTrace {
		return ""
	}
	var out []string
	for _, v := range vs {
		if v == nil {
			continue
		}
		if f, ok := v.(FromClient); ok {
			out = append(out, fmt.Sprint(f.Client))
			for _, m := range f.Msgs {
				out = append(out, fmt.Sprintf("%T", m), show(m))
			}
			continue
		}
		switch m := v.(type) {
		case *wire.Submit:
			out = append(out, m.Spec.ID.String()[16:22], m.Spec.Opts.Func)
			if m.Spec.Kind == wire.TaskActorCall {
				out = append(out, fmt.Sprint("of ", m.Spec.Actor.String()[16:22], " seq ", m.Spec.Seq))
			}
			for _, a := range m.Spec.Args {
				out = append(out, a.Ref.String()[16:22]+a.Ref.String()[40:])
			}
		case *wire.Exec:
			out = append(out, fmt.Sprint("exec ", m.Lease))
			for _, t := range m.Tasks {
				out = append(out, t.Spec.ID.String()[16:22]+"#"+fmt.Sprint(t.Attempt))
			}
		case *wire.Done:
			out = append(out, fmt.Sprint(m.Task.String()[16:22], "#", m.Attempt, " lease ", m.Lease, " ", m.Err))
		default:
			out = append(out, fmt.Sprintf("%+v", v))
		}
	}
	return strings.Join(out, " ")
}

// explain says where an object stands, for a failing run.
func (w *simWorld) explain(id ids.ObjectID) string {
	why, ok := w.c.WhyObject(id)
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("%v, task %v", why.State, why.Task.State)
}
