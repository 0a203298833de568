package pool

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/sched"
	"mobula/wire"
)

// A rebuilt core is told of a worker with an abandoned task: its process, its lease, and that it drains. The worker
// takes no new lease, and is told to exit when the lease has ended.
func TestADrainingWorkerIsDrainedByTheNextCore(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	l := w.need(1, tasks, "f")
	w.up()
	p := w.procs[1]
	next, err := New(Config{CPUs: 2, FirstWorker: 1, NewToken: func() []byte { return []byte("next") }})
	if err != nil {
		t.Fatal(err)
	}
	w.c = next
	w.step(JobStarted{Job: 1, Restored: true})
	w.step(Live{StartProcess: p.StartProcess, Client: p.client, PID: 1})
	w.step(FromSched{sched.AdoptLease{NeedWorker: w.needs[l], Worker: p.client}})
	w.step(Drain{sched.DrainWorker{Worker: p.client, Err: errs.New(errs.CodeCancelled, "x")}})
	if p.drain || p.killed || len(w.reclaim) != 1 || w.reclaim[0] != l {
		t.Fatalf("while a lease runs in it: %+v, reclaimed %v", p, w.reclaim)
	}
	if n := w.need(1, tasks, "f"); w.ready[n] != 0 {
		t.Fatal("it takes one more lease")
	}
	w.release(l)
	if !p.drain {
		t.Fatal("it is not told to exit")
	}
}

func TestRebuild(t *testing.T) {
	old := newWorld(t, Config{})
	old.step(JobStarted{Job: 1})
	held := old.need(1, tasks, "f")
	old.up()
	old.need(1, own, "f")
	w := newWorld(t, Config{FirstWorker: 3})
	w.needs, w.ready, w.procs, w.client, w.lease = old.needs, old.ready, old.procs, old.client, old.lease
	w.step(JobStarted{Job: 1, Restored: true})
	for _, id := range w.ids() {
		p := w.procs[id]
		w.step(Live{StartProcess: p.StartProcess, Client: p.client, PID: int32(id)})
	}
	w.step(Live{StartProcess: StartProcess{Worker: 3, Job: 9}})
	if w.started != 0 {
		t.Fatalf("%d started", w.started)
	}
	w.step(FromSched{sched.AdoptLease{NeedWorker: w.needs[held], Worker: w.ready[held]}})
	lost := ids.LeaseID(70)
	w.ready[lost] = 4711
	w.step(FromSched{sched.AdoptLease{NeedWorker: sched.NeedWorker{Lease: lost, Job: 1}, Worker: 4711}})
	if !errors.Is(w.gone[lost].Err, errs.ErrWorkerCrashed) {
		t.Fatalf("a lease in a worker that is gone: %v", w.gone)
	}
	w.up() // the one that was starting
	if l := w.need(1, own, "f"); w.ready[l] == 0 || w.started != 0 {
		t.Fatalf("the process of before is not used: %d started", w.started)
	}
	w.exit(1, Exit{Status: 1})
	if w.gone[held].Err == nil {
		t.Fatal("the adopted lease was lost with its worker and nobody is told")
	}
	w.need(1, tasks, "f")
	if w.procs[4] == nil {
		t.Fatalf("numbers do not go on after 3: %v", w.ids())
	}
}

// A job of another node was opened again while there was no core. The raylet passes the end of the opening before on no more, so who takes over ends its workers.
func TestWorkersOfAnEarlierOpeningAreEnded(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1, Opening: 2})
	w.need(1, tasks, "f")
	w.up()
	p := w.procs[1]
	next, err := New(Config{CPUs: 2, FirstWorker: 1, NewToken: func() []byte { return []byte("next") }})
	if err != nil {
		t.Fatal(err)
	}
	w.c = next
	w.step(JobStarted{Job: 1, Opening: 3, Restored: true})
	w.step(Live{StartProcess: p.StartProcess, Client: p.client, PID: 1})
	if !p.killed {
		t.Fatal("its worker goes on")
	}
	l := w.need(1, tasks, "f")
	w.up()
	if w.ready[l] == 0 || w.ready[l] == p.client || w.procs[2].Opening != 3 {
		t.Fatalf("the lease is in client %v, of opening %d", w.ready[l], w.procs[2].Opening)
	}
}

// TestProperties drives the core with arbitrary processes. validate and effect hold the rules; in the end
// every lease has its answer and nothing is left.
func TestProperties(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := newWorld(t, Config{CPUs: rapid.IntRange(1, 3).Draw(t, "cpus")})
		w.step(JobStarted{Job: 1})
		w.step(JobStarted{Job: 2, Programs: []Program{{Language: wire.LangPython, Single: true}, {Language: wire.LangGo}}})
		some := func() *proc {
			if len(w.procs) == 0 {
				return nil
			}
			return w.procs[rapid.SampledFrom(w.ids()).Draw(t, "worker")]
		}
		lease := func() ids.LeaseID {
			var all []ids.LeaseID
			for l := ids.LeaseID(1); l <= w.lease; l++ {
				if _, open := w.needs[l]; open && w.failed[l] == nil && w.gone[l].Worker == 0 {
					all = append(all, l)
				}
			}
			if len(all) == 0 {
				return 0
			}
			return rapid.SampledFrom(all).Draw(t, "lease")
		}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			switch a := rapid.IntRange(0, 11).Draw(t, "action"); a {
			case 0, 1:
				slot := rapid.SampledFrom([]sched.Slot{tasks, actors, own}).Draw(t, "slot")
				fn := rapid.SampledFrom([]string{"f", "g", "actor", "py:m.f", "py:m.actor"}).Draw(t, "fn")
				w.need(ids.JobID(rapid.IntRange(1, 2).Draw(t, "job")), slot, fn)
			case 2, 3:
				w.up()
			case 4:
				if l := lease(); l != 0 {
					w.release(l)
				}
			case 5:
				if p := some(); p != nil {
					w.exit(p.Worker, Exit{PID: 1, Status: 1})
				}
			case 6:
				w.reap()
			case 7:
				w.pass(time.Duration(rapid.IntRange(0, 40_000).Draw(t, "ms")) * time.Millisecond)
			case 8:
				if l := lease(); w.ready[l] != 0 {
					w.step(Drain{sched.DrainWorker{Lease: l, Worker: w.ready[l], Err: errs.New(errs.CodeCancelled, "x")}})
				}
			case 9:
				if p := some(); p != nil && p.client != 0 {
					w.step(Kill{sched.KillWorker{Worker: p.client, Err: errs.New(errs.CodeOutOfMemory, "x")}})
				}
			case 10:
				if p := some(); p != nil && p.client != 0 {
					w.step(Disconnected{Client: p.client})
				}
			case 11:
				if p := some(); p != nil && p.client != 0 {
					w.step(Worn{p.client})
				}
			}
		}
		for range 20 {
			w.up()
			w.reap()
		}
		for l := range w.needs {
			if w.ready[l] == 0 && w.failed[l] == nil && w.gone[l].Worker == 0 {
				t.Fatalf("lease %+v was never answered", w.needs[l])
			}
		}
		w.step(JobEnded{Job: 1})
		w.step(JobEnded{Job: 2})
		w.pass(DefaultGrace)
		w.reap()
		if len(w.procs)+len(w.c.workers)+len(w.c.byClient)+len(w.c.byToken)+len(w.c.assignments)+len(w.c.jobs)+w.c.starting+w.c.queue.Len() != 0 {
			t.Fatalf("left behind: %d processes, %+v", len(w.procs), w.c)
		}
	})
}
