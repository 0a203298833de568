package sched

import (
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world plays the owners, the pool and the clock around a core.
type world struct {
	t      failer
	c      *Core
	now    int64
	pool   []NeedWorker // not answered yet
	hold   bool         // the pool does not answer by itself
	timers []timer
	leases map[ids.LeaseID]*held
	class  map[ClassKey]*ownClass
	keys   []ClassKey
	log    []OwnerMsg
	worker ids.ClientID
}

type timer struct {
	at int64
	ev Event
}

// held is an owner's view of a lease.
type held struct {
	key       ClassKey
	worker    ids.ClientID
	busy      bool
	blocked   bool
	asked     bool // UnblockCPU sent
	reclaimed bool
	up        bool
}

// ownClass is an owner's view of a class.
type ownClass struct {
	opts  *wire.TaskOptions
	kind  wire.TaskKind
	ready int
	told  int
	ran   int
	bad   int
	err   error // of Infeasible
}

func newWorld(t failer, res ...wire.Resource) *world {
	t.Helper()
	w := &world{t: t, leases: map[ids.LeaseID]*held{}, class: map[ClassKey]*ownClass{}, worker: 100}
	c, out, err := New(Config{Resources: res})
	if err != nil || len(out) != 0 {
		t.Fatalf("New: %v, effects %v", err, out)
	}
	w.c = c
	return w
}

func res(kv ...any) []wire.Resource {
	var out []wire.Resource
	for i := 0; i < len(kv); i += 2 {
		out = append(out, wire.Resource{Name: kv[i].(string), Amount: int64(kv[i+1].(int))})
	}
	return out
}

func key(job, class int) ClassKey { return ClassKey{Job: ids.JobID(job), Class: Class(class)} }

func (w *world) define(k ClassKey, kind wire.TaskKind, res []wire.Resource) ClassKey {
	w.class[k] = &ownClass{opts: &wire.TaskOptions{Func: "f", Resources: res}, kind: kind}
	w.keys = append(w.keys, k)
	return k
}

// task defines a class of plain tasks.
func (w *world) task(job, class int, res ...wire.Resource) ClassKey {
	return w.define(key(job, class), wire.TaskNormal, res)
}

// step runs an event and all that follows from it at once.
func (w *world) step(ev Event) {
	w.t.Helper()
	queue := []Event{ev}
	for len(queue) > 0 {
		ev, queue = queue[0], queue[1:]
		effects := slices.Clone(w.c.Step(w.now, ev))
		if err := w.c.Validate(); err != nil {
			w.t.Fatalf("after %T%+v: %v", ev, ev, err)
		}
		for _, e := range effects {
			queue = append(queue, w.effect(e)...)
		}
	}
}

func (w *world) effect(e Effect) []Event {
	switch e := e.(type) {
	case NeedWorker:
		if w.hold {
			w.pool = append(w.pool, e)
			return nil
		}
		w.worker++
		return []Event{WorkerReady{Lease: e.Lease, Worker: w.worker}}
	case ReleaseWorker:
		w.pool = slices.DeleteFunc(w.pool, func(n NeedWorker) bool { return n.Lease == e.Lease })
	case After:
		w.timers = append(w.timers, timer{w.now + int64(e.D), e.Ev})
	case ToOwner:
		w.log = append(w.log, e.Msg)
		return w.owner(e.Msg)
	}
	return nil
}

func (w *world) owner(m OwnerMsg) []Event {
	switch m := m.(type) {
	case Granted:
		if old := w.leases[m.Lease]; old != nil {
			w.t.Fatalf("lease %d is granted twice", m.Lease)
		}
		w.leases[m.Lease] = &held{key: m.Key, worker: m.Worker}
	case Reclaim:
		l := w.leases[m.Lease]
		if l == nil || l.reclaimed {
			w.t.Fatalf("lease %d: reclaimed twice or never held: %+v", m.Lease, l)
		}
		l.reclaimed = true
	case Revoked:
		l := w.leases[m.Lease]
		if l.busy {
			w.class[l.key].ready++
		}
		delete(w.leases, m.Lease)
		return w.wants(l.key)
	case Resumed:
		l := w.leases[m.Lease]
		if !l.asked {
			w.t.Fatalf("lease %d is resumed and did not ask", m.Lease)
		}
		l.blocked, l.asked = false, false
	case Infeasible:
		cl := w.class[m.Key]
		cl.bad++
		cl.told = 0
		cl.err = m.Err
	case Feasible:
		w.class[m.Key].err = nil
		return w.wants(m.Key)
	}
	return nil
}

// wants tells the scheduler what an owner tells it: changes from and to zero, doublings and halvings of
// what is ready.
func (w *world) wants(k ClassKey) []Event {
	cl := w.class[k]
	n := cl.ready
	if n == cl.told || n != 0 && cl.told != 0 && n < 2*cl.told && 2*n > cl.told {
		return nil
	}
	cl.told = n
	return []Event{Want{Key: k, Opts: cl.opts, Kind: cl.kind, Backlog: n}}
}

func (w *world) tellWants(k ClassKey) {
	w.t.Helper()
	for _, ev := range w.wants(k) {
		w.step(ev)
	}
}

func (w *world) submit(k ClassKey, n int) {
	w.t.Helper()
	w.class[k].ready += n
	for _, ev := range w.wants(k) {
		w.step(ev)
	}
}

// ids lists the leases that a test accepts, oldest first.
func (w *world) ids(ok func(*held) bool) []ids.LeaseID {
	var out []ids.LeaseID
	for id, l := range w.leases {
		if ok(l) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (w *world) of(k ClassKey) []ids.LeaseID {
	return w.ids(func(l *held) bool { return l.key == k })
}

// run starts a ready task on a lease that is idle, or gives a lease back that was asked for.
func (w *world) run(id ids.LeaseID) {
	l := w.leases[id]
	cl := w.class[l.key]
	switch {
	case l.reclaimed && !l.busy && !l.up:
		w.giveBack(id)
	case !l.busy && !l.up && cl.ready > 0:
		cl.ready--
		l.busy = true
		w.tellWants(l.key)
	}
}

func (w *world) finish(id ids.LeaseID) {
	l := w.leases[id]
	if !l.busy || l.blocked {
		w.t.Fatalf("lease %d runs no task: %+v", id, l)
	}
	l.busy = false
	w.class[l.key].ran++
	if l.reclaimed {
		w.giveBack(id)
	}
}

func (w *world) giveBack(id ids.LeaseID) {
	l := w.leases[id]
	delete(w.leases, id)
	w.step(Return{Lease: id})
	for _, ev := range w.wants(l.key) {
		w.step(ev)
	}
}

func (w *world) block(id ids.LeaseID) {
	w.leases[id].blocked = true
	w.step(BlockCPU{Lease: id})
}

func (w *world) unblock(id ids.LeaseID) {
	w.leases[id].asked = true
	w.step(UnblockCPU{Lease: id})
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
		w.step(t.ev)
	}
	w.now = end
}

// deliver answers the oldest question to the pool.
func (w *world) deliver() {
	n := w.pool[0]
	w.pool = w.pool[1:]
	w.worker++
	w.step(WorkerReady{Lease: n.Lease, Worker: w.worker})
}
