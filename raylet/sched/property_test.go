package sched

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// TestProperties drives a core with arbitrary owners and an arbitrary pool; actors live until no task is under way. After each step validate
// proves that no resource is overdrawn and no lease lost; in the end everything wanted has run and
// everything taken is back.
func TestProperties(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		node := res(CPU, 1000*rapid.IntRange(1, 4).Draw(t, "cpus"), GPU, 1000, "r", 3000)
		w := newWorld(t, node...)
		for i := range rapid.IntRange(1, 6).Draw(t, "classes") {
			asks := []wire.Resource{{Name: CPU, Amount: int64(500 * rapid.IntRange(0, int(node[0].Amount)/500).Draw(t, "cpu"))}}
			if rapid.Bool().Draw(t, "custom") {
				asks = append(asks, wire.Resource{Name: "r", Amount: int64(1000 * rapid.IntRange(1, 3).Draw(t, "r"))})
			}
			w.task(1+i%2, i, asks...)
		}
		actor := w.define(key(1, 100), wire.TaskActorCreate, res(CPU, 500*rapid.IntRange(1, 2).Draw(t, "actor's cpu")))
		w.hold = rapid.Bool().Draw(t, "slow pool")
		pick := func(ids []ids.LeaseID, do func(ids.LeaseID)) func(*rapid.T) {
			return func(t *rapid.T) {
				if len(ids) > 0 {
					do(rapid.SampledFrom(ids).Draw(t, "lease"))
				}
			}
		}
		busy := func(l *held) bool { return l.busy && !l.blocked }
		for range rapid.IntRange(0, 120).Draw(t, "steps") {
			switch rapid.IntRange(0, 10).Draw(t, "action") {
			case 0:
				w.submit(rapid.SampledFrom(w.keys).Draw(t, "class"), rapid.IntRange(1, 8).Draw(t, "n"))
			case 1, 2:
				pick(w.ids(func(l *held) bool { return !l.busy }), w.run)(t)
			case 3:
				pick(w.ids(busy), w.finish)(t)
			case 4:
				pick(w.ids(busy), w.block)(t)
			case 5:
				pick(w.ids(func(l *held) bool { return l.blocked && !l.asked }), w.unblock)(t)
			case 6:
				pick(w.ids(func(*held) bool { return true }), func(id ids.LeaseID) {
					l := w.leases[id]
					w.step(WorkerGone{Worker: l.worker, Leases: []ids.LeaseID{id}, Err: errs.New(errs.CodeWorkerCrashed, "gone")})
				})(t)
			case 7:
				w.pass(time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * time.Millisecond)
			case 8:
				if len(w.pool) > 0 {
					w.deliver()
				}
			case 9:
				if w.submit(actor, 1); len(w.of(actor)) > 0 {
					w.run(w.of(actor)[len(w.of(actor))-1])
				}
			case 10:
				pick(w.ids(func(l *held) bool { return l.key == actor && l.busy && !l.blocked }), func(id ids.LeaseID) {
					w.leases[id].up, w.leases[id].busy = true, false
					w.step(ActorUp{Lease: id})
				})(t)
			}
			running := int64(0)
			for id, l := range w.leases {
				if !l.blocked && !l.up {
					running += w.c.leases[id].class.need.of(resCPU)
				}
			}
			if running > node[0].Amount {
				t.Fatalf("tasks of %d thousandths of a CPU run on %d", running, node[0].Amount)
			}
		}
		w.drain(t)
	})
}

// drain lets everything end by the rules alone and checks that it does.
func (w *world) drain(t *rapid.T) {
	left := func() (n int) {
		for _, cl := range w.class {
			n += cl.ready
		}
		return n + len(w.leases) + len(w.pool)
	}
	for round := 0; left() > 0; round++ {
		if round > 2000 {
			for _, k := range w.keys {
				t.Log(w.c.Explain(k).Text, w.class[k].ready)
			}
			for id, l := range w.leases {
				t.Logf("lease %d: %+v", id, *l)
			}
			t.Fatalf("no end: %d tasks and leases left", left())
		}
		w.pass(5 * time.Millisecond)
		for len(w.pool) > 0 {
			w.deliver()
		}
		for _, id := range w.ids(func(*held) bool { return true }) {
			l := w.leases[id]
			switch {
			case l == nil: // ended by what came before
			case l.blocked && !l.asked:
				w.unblock(id)
			case l.blocked:
			case l.up: // its handle is held by the tasks
				if w.idle() {
					w.giveBack(id)
				}
			case l.busy:
				w.finish(id)
			case l.reclaimed || w.class[l.key].ready == 0:
				w.giveBack(id)
			default:
				w.run(id)
			}
		}
	}
	for i, f := range w.c.res.free {
		if f != w.c.res.total[i] {
			t.Fatalf("%s: %d free of %d after the end", w.c.res.names[i], f, w.c.res.total[i])
		}
	}
	if len(w.c.leases) != 0 || w.c.jobs.Len() != 0 || len(w.c.byJob) != 0 {
		t.Fatalf("%d leases, %d jobs are left in the tables", len(w.c.leases), len(w.c.byJob))
	}
}

// idle tells whether no task is under way: what is left waits for what actors have.
func (w *world) idle() bool {
	return len(w.ids(func(l *held) bool { return l.busy })) == 0
}

// TestRebuildFromOwners discards the core at an arbitrary moment; what the owners hold makes
// the same tables again.
func TestRebuildFromOwners(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := newWorld(t, res(CPU, 3000, "r", 2000)...)
		keys := []ClassKey{w.task(1, 1), w.task(1, 2, res("r", 1000)...), w.task(2, 1, res(CPU, 2000)...)}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.submit(rapid.SampledFrom(keys).Draw(t, "class"), 3)
			for _, id := range w.ids(func(*held) bool { return true }) {
				l := w.leases[id]
				switch a := rapid.IntRange(0, 4).Draw(t, "action"); {
				case l == nil:
				case !l.busy:
					w.run(id)
				case a == 0 && !l.blocked:
					w.block(id)
				case a == 1 && l.blocked && !l.asked:
					w.unblock(id)
				case a == 2 && !l.blocked:
					w.finish(id)
				}
			}
		}
		w.restart(t)
		w.drain(t)
	})
}

// restart replaces the core by one that knows only what the owners say.
func (w *world) restart(t *rapid.T) {
	old := w.c
	c, out, err := New(Config{Resources: res(CPU, 3000, "r", 2000), FirstLease: old.nextID + 1000, Jobs: []ids.JobID{1, 2}, Epoch: 9})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, e := range out {
		if m, ok := e.(ToOwner); ok && m.Msg == (Resync{Epoch: 9}) {
			asked++
		}
	}
	if asked != 2 {
		t.Fatalf("%d owners are asked: %v", asked, out)
	}
	w.c, w.timers, w.pool = c, nil, nil
	for _, job := range []ids.JobID{1, 2} {
		if n := len(c.leases); job == 1 && n != 0 {
			t.Fatalf("%d leases before anyone answered", n)
		}
		h := Holdings{Job: job, Epoch: 9}
		for id, l := range w.leases {
			if l.key.Job == job {
				cl := w.class[l.key]
				row := Held{Lease: id, Key: l.key, Opts: cl.opts, Kind: cl.kind, Worker: l.worker, Blocked: l.blocked}
				if l.asked {
					row.Ask = Ask{Epoch: 8, Nth: 1}
				}
				l.reclaimed = false // the new core does not know what the old one asked back
				h.Held = append(h.Held, row)
			}
		}
		for k, cl := range w.class {
			if k.Job == job {
				cl.told = 0
				for _, ev := range w.wants(k) {
					h.Wants = append(h.Wants, ev.(Want))
				}
			}
		}
		held := len(w.leases)
		w.step(Holdings{Job: job, Epoch: 8, Held: []Held{{Lease: 1 << 40, Key: key(int(job), 1)}}}) // of an older restart
		w.step(h)
		if job == 1 && len(w.leases) != held {
			t.Fatal("granted before every owner has answered")
		}
	}
}
