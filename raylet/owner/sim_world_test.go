package owner

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/sched"
	"mobula/wire"
)

// simWorld is everything around a core, on a virtual clock: a log, a store, a scheduler with
// worker processes, a registry and clients. Each part is a queue of events for the core; which
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

	store   *simStore
	sched   *simSched
	clients map[ids.ClientID]*simClient
	nextID  ids.ClientID

	queues map[string][]Event // to the core, by source
	names  map[string]ids.ActorID

	want      map[ids.ObjectID]outcome // what each object must come to
	mayFail   map[ids.ObjectID]bool    // cancelled or lost for good: an error is right too
	steps     int
	deps      []simDep
	runs      map[ids.TaskID]int // attempts that started
	crash     float64            // chance of a rebuild a step
	validated bool
}

type simRecord struct {
	cookie uint64
	b      []byte
	freed  bool
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
		runs: make(map[ids.TaskID]int), validated: true,
	}
	w.store = &simStore{w: w, sealed: make(map[ids.ObjectID]*simObject), granted: make(map[simAttempt]simGrant)}
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
	for _, e := range w.c.Step(w.now, ev) {
		if e.Kind != Log && e.Kind != LogFree {
			w.note("    %d client %d %s", e.Kind, e.Client, show(e.Wire, e.Msg))
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
		if m, ok := e.Wire.(*wire.Exec); ok && w.clients[e.Client] != nil {
			if l := w.sched.leases[m.Lease]; l == nil || l.worker.id != e.Client {
				w.t.Fatalf("tasks are pushed to %d over lease %v, which it does not have", e.Client, m.Lease)
			}
		}
		if cl := w.clients[e.Client]; cl != nil {
			cl.in = append(cl.in, e.Wire)
		}
	case ToStore:
		w.store.handle(e.Msg)
	case ToSched:
		w.sched.handle(e.Msg)
	case ToRegistry:
		w.registry(e.Msg)
	case Log:
		ck := w.append(slices.Clone(e.Record))
		if _, _, err := Parse(e.Record); err != nil {
			w.t.Fatalf("the core logs what cannot be read: %v", err)
		}
		if e.Cookie != nil {
			*e.Cookie = ck
		}
	case LogFree:
		for _, ck := range *e.Cookies {
			if *ck != 0 {
				r := &w.log[w.cookies[*ck]]
				if r.freed {
					w.t.Fatalf("record %d is freed twice", *ck)
				}
				r.freed = true
			}
		}
	case Fetch:
		r := w.log[w.cookies[uint64(e.N)]]
		if r.freed {
			w.t.Fatalf("record %d is read after it was freed", e.N)
		}
		w.post("log", Fetched{Token: e.Token, Record: r.b})
	case After:
		w.timer = w.now + e.N
	case JobEnded:
		w.ended = true
	}
}

func (w *simWorld) registry(m any) {
	switch m := m.(type) {
	case ClaimName:
		key := m.Opts.Namespace + "/" + m.Opts.ActorName
		if has, ok := w.names[key]; ok && has != m.Actor {
			w.post("registry", FromRegistry{NameClaimed{Actor: m.Actor, Existing: has}})
			return
		}
		w.names[key] = m.Actor
		w.post("registry", FromRegistry{NameClaimed{Actor: m.Actor}})
	case ReleaseName:
		maps.DeleteFunc(w.names, func(_ string, a ids.ActorID) bool { return a == m.Actor })
	}
}

// rebuild throws the core away and makes a new one from the log. Freed records are left out
// or not, as the log likes.
func (w *simWorld) rebuild() {
	w.t.Helper()
	keepFreed := w.rng.IntN(2) == 0
	c, err := Rebuild(w.cfg, func(yield func(uint64, []byte) bool) {
		for _, i := range w.rng.Perm(len(w.log)) {
			r := w.log[i]
			if (keepFreed || !r.freed) && !yield(r.cookie, r.b) {
				return
			}
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range w.log {
		w.log[i].freed = w.log[i].freed && !keepFreed // the new core frees what it finds, again
	}
	held, _ := w.c.Held()
	w.c, w.timer = c, 0
	w.epoch++
	delete(w.queues, "log") // the old core's reads are answered to nobody
	ev := Restored{Epoch: w.epoch}
	for _, id := range slices.Sorted(maps.Keys(w.clients)) {
		ev.Clients = append(ev.Clients, ClientJoined{id, w.clients[id].role})
	}
	for _, evs := range w.queues { // clients that are gone and not yet told of were there too
		for _, e := range evs {
			if g, ok := e.(ClientGone); ok && w.clients[g.Client] == nil {
				ev.Clients = append(ev.Clients, ClientJoined{g.Client, wire.RoleWorker})
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

// compact moves a live record of the log, as the upkeep of the log does.
func (w *simWorld) compact() {
	if len(w.log) == 0 {
		return
	}
	r := &w.log[w.rng.IntN(len(w.log))]
	if r.freed {
		return
	}
	at := w.c.Relocate(r.cookie, r.b)
	if at == nil && w.epoch > 0 {
		r.freed = true // it was freed before, and the log did not remember
		return
	}
	if at == nil {
		w.t.Fatalf("record %d is live and nobody knows it: %s", r.cookie, r)
	}
	if *at != r.cookie {
		w.t.Fatalf("record %d is moved for %d", r.cookie, *at)
	}
	r.freed = true
	*at = w.append(r.b)
}

func (r *simRecord) String() string {
	rec, seq, err := Parse(r.b)
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
		w.compact()
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
		if n > 100_000 {
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
	if n := len(c.tasks) + len(c.puts) + len(c.strays) + len(c.actors) + len(c.kids) + len(c.fetches); n > 0 || c.lineageBytes != 0 {
		for _, t := range c.tasks {
			w.t.Logf("left: task %v %s %v live %d flags %b", t.id(), t.name(), t.state, t.live, t.flags)
			t.eachReturn(func(o *objRec) {
				w.t.Logf("  %v %v handle %v tasks %d objs %d lineage %d", o.id, o.state, o.holder, o.tasks, o.objs, o.lineage)
			})
		}
		for _, o := range c.strays {
			w.t.Logf("left: stray %v tasks %d objs %d lineage %d", o.id, o.tasks, o.objs, o.lineage)
		}
		w.t.Fatalf("left: %d tasks, %d puts, %d strays, %d actors, %d parents, %d reads, %d bytes of lineage",
			len(c.tasks), len(c.puts), len(c.strays), len(c.actors), len(c.kids), len(c.fetches), c.lineageBytes)
	}
	if c.budget.inline != 0 || c.budget.specs != 0 {
		w.t.Fatalf("left: %d bytes inline, %d of specs", c.budget.inline, c.budget.specs)
	}
	w.store.check()
	for _, r := range w.log {
		if !r.freed {
			rec, _, _ := Parse(r.b)
			switch rec.(type) {
			case *ForgetRecord, *OptionsRecord:
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

// simStore is the object store: who sealed what, and requests answered at once or, where
// the bytes were lost, with Lost.
type simStore struct {
	w       *simWorld
	sealed  map[ids.ObjectID]*simObject
	granted map[simAttempt]simGrant // written and not sealed
	seals   int
}

type simObject struct {
	attempt uint32
	val     uint64
	meta    []byte
	lost    bool
}

type simAttempt struct {
	id      ids.ObjectID
	attempt uint32
}

func (s *simStore) handle(m any) {
	w := s.w
	switch m := m.(type) {
	case objectstore.SealObject:
		key := simAttempt{m.ID, m.Attempt}
		val, ok := s.granted[key]
		if !ok {
			return // its writer died: found lost when it is asked for
		}
		delete(s.granted, key)
		s.sealed[m.ID] = &simObject{attempt: m.Attempt, val: val.val, meta: m.Meta}
		s.seals++
	case objectstore.DropAttempt:
		delete(s.granted, simAttempt{m.ID, m.Attempt})
		if o := s.sealed[m.ID]; o != nil && o.attempt == m.Attempt {
			delete(s.sealed, m.ID)
		}
	case objectstore.PinForGet:
		o := s.sealed[m.ID]
		if o == nil || o.lost {
			delete(s.sealed, m.ID)
			w.post("store", FromStore{objectstore.Lost{ID: m.ID, Client: m.Client, Err: errs.New(errs.CodeObjectLost, "its spill file is gone")}})
			return
		}
		if cl := w.clients[m.Client]; cl != nil {
			cl.in = append(cl.in, &wire.Resolved{ID: m.ID, Fetch: true, Extent: wire.Extent{Off: o.val}, Result: wire.Result{Kind: wire.ResultStored, Value: wire.Value{Meta: o.meta, Refs: m.Refs}}})
		}
	case objectstore.PinArgs:
		out := objectstore.ArgsPinned{Task: m.Task, Attempt: m.Attempt}
		for _, id := range m.IDs {
			o := s.sealed[id]
			if o == nil || o.lost {
				delete(s.sealed, id)
				w.post("store", FromStore{objectstore.Lost{ID: id, Task: m.Task, Attempt: m.Attempt}})
				return
			}
			out.Values = append(out.Values, objectstore.PinnedValue{ID: id, Extent: wire.Extent{Off: o.val}})
		}
		if w.rng.IntN(4) == 0 {
			w.post("store", FromStore{objectstore.ArgsWait{Task: m.Task, Attempt: m.Attempt}})
		}
		w.post("store", FromStore{out})
	case objectstore.Pack:
		for _, v := range m.Values {
			if w.rng.IntN(4) == 0 {
				continue // no room
			}
			s.sealed[v.ID] = &simObject{val: valueOf(v.Value.Data), meta: v.Value.Meta}
			w.post("store", FromStore{objectstore.Packed{ID: v.ID, Size: uint64(len(v.Value.Data))}})
		}
	case objectstore.Free:
		for _, id := range m.IDs {
			delete(s.sealed, id)
		}
	case objectstore.DropJob:
		clear(s.sealed)
	}
}

// loseOne makes a stored object unreadable.
func (s *simStore) loseOne() {
	var can []ids.ObjectID
	for id, o := range s.sealed {
		if !o.lost {
			can = append(can, id)
		}
	}
	if len(can) == 0 {
		return
	}
	slices.SortFunc(can, cmpObject)
	id := can[s.w.rng.IntN(len(can))]
	s.sealed[id].lost = true
}

func (s *simStore) check() {
	for id := range s.sealed {
		s.w.t.Fatalf("object %v is still in the store", id)
	}
	for a := range s.granted {
		s.w.t.Fatalf("attempt %d at %v is still in the store", a.attempt, a.id)
	}
}

func cmpObject(a, b ids.ObjectID) int {
	if c := slices.Compare(a.Task[:], b.Task[:]); c != 0 {
		return c
	}
	return int(int64(a.Index) - int64(b.Index))
}

// A value is 8 bytes and filler.
func valueOf(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func bytesOf(v uint64, size int) []byte {
	return append(binary.LittleEndian.AppendUint64(make([]byte, 0, 8+size), v), make([]byte, size)...)
}

func mix(parts ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		h = (h ^ p) * 0xd6e8feb86659fd93
		h ^= h >> 29
	}
	return h | 1
}

// simSched grants leases of a few slots, fairly, on worker processes of two lanes.
type simSched struct {
	w       *simWorld
	slots   int
	wants   []sched.Want
	leases  map[ids.LeaseID]*simLease
	next    ids.LeaseID
	granted map[sched.Class]int
}

type simLease struct {
	id      ids.LeaseID
	key     sched.ClassKey
	worker  *simClient
	up      bool
	blocked bool
	asked   bool // Reclaim is out
}

func newSimSched(w *simWorld, slots int) *simSched {
	return &simSched{w: w, slots: slots, leases: make(map[ids.LeaseID]*simLease), granted: make(map[sched.Class]int)}
}

func (s *simSched) used() int {
	n := 0
	for _, l := range s.leases {
		if !l.up && !l.blocked {
			n++
		}
	}
	return n
}

func (s *simSched) held() int { return len(s.leases) }

func (s *simSched) canGrant() bool {
	return len(s.wants) > 0 && (s.used() < s.slots || s.reclaimable() != nil)
}

func (s *simSched) reclaimable() *simLease {
	for _, id := range slices.Sorted(maps.Keys(s.leases)) {
		l := s.leases[id]
		if !l.asked && !l.up && !l.blocked && l.key != s.wants[0].Key {
			return l
		}
	}
	return nil
}

func (s *simSched) grant() {
	w := s.w
	if s.used() >= s.slots {
		l := s.reclaimable()
		l.asked = true
		w.post("sched", FromSched{sched.Reclaim{Lease: l.id}})
		return
	}
	want := &s.wants[0]
	s.next++
	l := &simLease{id: s.next, key: want.Key, worker: w.workerFor(want)}
	s.leases[l.id] = l
	l.worker.lanes[l.id] = &simLane{lease: l}
	s.granted[want.Key.Class]++
	w.post("sched", FromSched{sched.Granted{Key: want.Key, Lease: l.id, Worker: l.worker.id}})
	first := *want
	s.wants = s.wants[1:]
	if first.Backlog--; first.Backlog > 0 {
		s.wants = append(s.wants, first)
	}
}

func (s *simSched) handle(m any) {
	w := s.w
	switch m := m.(type) {
	case sched.Want:
		s.wants = slices.DeleteFunc(s.wants, func(x sched.Want) bool { return x.Key == m.Key })
		if m.Backlog > 0 {
			s.wants = append(s.wants, m)
		}
	case sched.Return:
		if l := s.leases[m.Lease]; l != nil {
			delete(s.leases, l.id)
			delete(l.worker.lanes, l.id)
		}
	case sched.BlockCPU:
		if l := s.leases[m.Lease]; l != nil {
			l.blocked = true
		}
	case sched.UnblockCPU:
		if l := s.leases[m.Lease]; l != nil && l.blocked {
			l.blocked = false
			w.post("sched", FromSched{sched.Resumed{Lease: l.id}})
		}
	case sched.ActorUp:
		if l := s.leases[m.Lease]; l != nil {
			l.up = true
		}
	case sched.DrainWorker:
		if cl := w.clients[m.Worker]; cl != nil {
			cl.draining = true
		}
	case sched.OwnerRestarted:
		s.wants = nil
		for _, id := range slices.Sorted(maps.Keys(s.leases)) {
			l := s.leases[id]
			w.post("sched", FromSched{sched.Granted{Key: l.key, Lease: l.id, Worker: l.worker.id, Up: l.up, Blocked: l.blocked, Epoch: m.Epoch}})
			l.asked = false
		}
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
			out = append(out, m.Spec.ID.String()[8:14], m.Spec.Opts.Func)
			for _, a := range m.Spec.Args {
				out = append(out, a.Ref.String()[8:14]+a.Ref.String()[32:])
			}
		case *wire.Exec:
			out = append(out, fmt.Sprint("exec ", m.Lease))
			for _, t := range m.Tasks {
				out = append(out, t.Spec.ID.String()[8:14]+"#"+fmt.Sprint(t.Attempt))
			}
		case *wire.Done:
			out = append(out, fmt.Sprint(m.Task.String()[8:14], "#", m.Attempt, " lease ", m.Lease, " ", m.Err))
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
