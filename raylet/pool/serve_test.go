package pool

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

func TestHostIsStartedAheadAndShared(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	if w.started != 1 || w.procs[1].Slot != tasks {
		t.Fatalf("%d started", w.started)
	}
	var ls []ids.LeaseID
	for range 5 {
		ls = append(ls, w.need(1, tasks, "f"))
	}
	w.up()
	ls = append(ls, w.need(1, tasks, "g"))
	for _, l := range ls {
		if w.ready[l] != w.procs[1].client {
			t.Fatalf("lease %d is in client %d", l, w.ready[l])
		}
	}
	a := w.need(1, actors, "A")
	w.up()
	if w.started != 2 || w.ready[a] == w.ready[ls[0]] || w.ready[a] == 0 {
		t.Fatalf("%d started, the actor is in client %d, tasks in %d", w.started, w.ready[a], w.ready[ls[0]])
	}
	for _, l := range append(ls, a) {
		w.release(l)
	}
	w.pass(time.Hour)
	if len(w.procs) != 2 || w.procs[1].drain || w.procs[1].killed {
		t.Fatal("a host ends before its job")
	}
}

// If a worker has one lease at a time there are no hosts: the next lease of any function gets the process, an
// actor has one of its own, and an isolated function still shares with nobody.
func TestOneLeaseAWorker(t *testing.T) {
	w := newWorld(t, Config{CPUs: 4})
	w.step(JobStarted{Job: 1, Programs: []Program{{Language: wire.LangPython, Single: true}}})
	if w.started != 1 || w.procs[1].Slot != own || w.procs[1].Func != "" || w.procs[1].Actor {
		t.Fatalf("%d started ahead: %+v", w.started, w.procs[1])
	}
	f, g := w.need(1, tasks, "py:m.f"), w.need(1, tasks, "py:m.g")
	a := w.need(1, actors, "py:m.A")
	i := w.need(1, own, "py:m.f")
	w.up()
	if w.started != 4 {
		t.Fatalf("%d started, want 4", w.started)
	}
	seen := make(map[ids.ClientID]bool)
	for _, l := range []ids.LeaseID{f, g, a, i} {
		if c := w.ready[l]; c == 0 || seen[c] {
			t.Fatalf("lease %d is in client %d", l, c)
		}
		seen[w.ready[l]] = true
	}
	free := w.ready[f]
	w.release(f)
	if h := w.need(1, tasks, "py:m.h"); w.ready[h] != free {
		t.Fatalf("the next function has client %d, want %d", w.ready[h], free)
	}
	gone := w.byClient(w.ready[a])
	w.release(a)
	if !gone.drain {
		t.Error("the process of an ended actor does not end")
	}
	if b := w.need(1, actors, "py:m.A"); w.ready[b] != 0 {
		t.Error("an actor is in a process that was used before")
	}
}

// A worker that tasks left with much memory ends when its lease does, and the next lease has another. An actor's stays.
func TestAWornWorkerIsReplaced(t *testing.T) {
	w := newWorld(t, Config{CPUs: 4})
	w.step(JobStarted{Job: 1, Programs: []Program{{Language: wire.LangPython, Single: true}}})
	f, a := w.need(1, tasks, "py:m.f"), w.need(1, actors, "py:m.A")
	w.up()
	worn, kept := w.ready[f], w.ready[a]
	w.step(Worn{worn})
	w.step(Worn{kept})
	if w.byClient(worn).drain || w.byClient(kept).drain {
		t.Fatal("a worker is let go while it has a lease")
	}
	if !slices.Equal(w.reclaim, []ids.LeaseID{f}) {
		t.Fatalf("the scheduler is asked for leases %v, want %v", w.reclaim, f)
	}
	g := w.need(1, tasks, "py:m.f")
	w.up()
	if w.ready[g] == worn || w.ready[g] == 0 {
		t.Fatalf("the next lease has client %d", w.ready[g])
	}
	w.release(f)
	if !w.byClient(worn).drain || w.byClient(kept).drain {
		t.Error("the worn worker stays, or the actor's does not")
	}
	idle := w.ready[g]
	w.release(g)
	w.step(Worn{idle})
	if !w.byClient(idle).drain {
		t.Error("an idle one stays")
	}
}

// A lease is for a worker of its function's language: a host or the driver's own slots for one that shares processes, a
// process of its own for one that does not. Only the driver's language is started ahead.
func TestProgramsByLanguage(t *testing.T) {
	python := Program{Language: wire.LangPython, Single: true}
	t.Run("driver of Go, embedded", func(t *testing.T) {
		w := newWorld(t, Config{})
		w.step(JobStarted{Job: 1, Tasks: 5, Actors: 6, Programs: []Program{{Language: wire.LangGo}, python}})
		if l := w.need(1, tasks, "f"); w.ready[l] != 5 || w.started != 0 {
			t.Fatalf("a function of Go has client %d, %d processes were started", w.ready[l], w.started)
		}
		f, i := w.need(1, tasks, "py:m.f"), w.need(1, own, "py:m.f")
		a := w.need(1, actors, "py:m.A")
		w.up()
		if w.started != 3 {
			t.Fatalf("%d processes for three leases of Python", w.started)
		}
		for _, l := range []ids.LeaseID{f, i, a} {
			if p := w.byClient(w.ready[l]); p == nil || p.Language != wire.LangPython || p.Slot != own {
				t.Fatalf("lease %d is in %+v", l, p)
			}
		}
	})
	t.Run("driver of Python", func(t *testing.T) {
		w := newWorld(t, Config{})
		w.step(JobStarted{Job: 1, Programs: []Program{python, {Language: wire.LangGo}}})
		if w.started != 1 || w.procs[1].Language != wire.LangPython {
			t.Fatalf("started ahead: %d, %+v", w.started, w.procs[1])
		}
		f, g, p := w.need(1, tasks, "f"), w.need(1, tasks, "g"), w.need(1, tasks, "py:m.f:0a")
		w.up()
		if w.started != 2 || w.ready[f] != w.ready[g] || w.ready[p] == w.ready[f] {
			t.Fatalf("%d processes; leases are in %v", w.started, w.ready)
		}
		if host := w.byClient(w.ready[f]); host.Language != wire.LangGo || host.Slot != tasks {
			t.Fatalf("the host of Go's functions is %+v", host)
		}
	})
	t.Run("none of the language", func(t *testing.T) {
		w := newWorld(t, Config{})
		w.step(JobStarted{Job: 1})
		w.step(JobStarted{Job: 2, Programs: []Program{python}})
		for l, want := range map[ids.LeaseID]string{w.need(1, tasks, "py:m.f"): "WithPython", w.need(2, actors, "app/counter"): "go_program"} {
			if err := w.failed[l]; !errors.Is(err, errs.ErrUnknownFunction) || !strings.Contains(err.Error(), want) {
				t.Errorf("lease %d: %v", l, err)
			}
		}
	})
	t.Run("after a restart", func(t *testing.T) {
		w := newWorld(t, Config{})
		w.step(JobStarted{Job: 1, Programs: []Program{python, {Language: wire.LangGo}}, Restored: true})
		w.procs[3] = &proc{StartProcess: StartProcess{Worker: 3, Token: []byte("t"), Job: 1, Language: wire.LangGo, Slot: tasks}, client: 77}
		w.step(Live{StartProcess: w.procs[3].StartProcess, Client: 77, PID: 3})
		if l := w.need(1, tasks, "f"); w.ready[l] != 77 || w.started != 0 {
			t.Fatalf("the host of before is not used: client %d, %d started", w.ready[l], w.started)
		}
	})
}

// S18: the pool returns to its size after a burst, and a steady load starts nothing.
func TestIdleIsolatedWorkersGoAndSteadyLoadDoesNotChurn(t *testing.T) {
	w := newWorld(t, Config{CPUs: 2})
	w.step(JobStarted{Job: 1, Restored: true})
	var ls []ids.LeaseID
	for range 8 {
		ls = append(ls, w.need(1, own, "f"))
		w.up()
	}
	for _, l := range ls {
		w.release(l)
	}
	w.pass(900 * time.Millisecond)
	if n := w.c.Counters().Idle; n != 0 {
		t.Fatalf("%d retired before a second has passed", n)
	}
	w.pass(200 * time.Millisecond)
	w.reap()
	if len(w.procs) != 2 || w.c.Counters().Idle != 6 {
		t.Fatalf("%d workers are left, want the soft limit of 2", len(w.procs))
	}
	before := w.started
	for range 100 {
		a, b := w.need(1, own, "f"), w.need(1, own, "f")
		w.pass(300 * time.Millisecond)
		w.release(a)
		w.release(b)
		w.pass(5 * time.Second)
	}
	if w.started != before {
		t.Fatalf("%d more were started for a load that two can carry", w.started-before)
	}
}

func TestIsolatedActorIsUsedOnce(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1, Restored: true})
	a := w.need(1, own, "actor")
	w.up()
	first := w.ready[a]
	w.release(a)
	if !w.procs[1].drain {
		t.Fatal("the process of an actor that ended goes on")
	}
	b := w.need(1, own, "actor")
	w.up()
	if w.ready[b] == first || w.ready[b] == 0 {
		t.Fatalf("a second actor is in client %d, the first was in %d", w.ready[b], first)
	}
	w.pass(DefaultGrace)
	if !w.procs[1].killed {
		t.Fatal("a worker that does not exit when told is not killed")
	}
}

// Actors of one process name share a worker that goes with the last of them; those of none have the job's.
func TestNamedActorHosts(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1, Restored: true})
	need := func(process string) ids.LeaseID {
		w.lease++
		n := sched.NeedWorker{Lease: w.lease, Job: 1, Slot: sched.SlotActor, Func: "actor", Process: process, Actor: true}
		w.needs[n.Lease] = n
		w.step(FromSched{n})
		return n.Lease
	}
	plain, a1, a2, b := need(""), need("a"), need("a"), need("b")
	w.up()
	w.up()
	if w.ready[a1] != w.ready[a2] || w.ready[a1] == w.ready[b] || w.ready[a1] == w.ready[plain] || w.ready[a1] == 0 {
		t.Fatalf("they are in %v", w.ready)
	}
	host := w.byClient(w.ready[a1])
	if host.Process != "a" || w.byClient(w.ready[plain]).Process != "" {
		t.Errorf("the launcher is told %q", host.Process)
	}
	w.release(a1)
	if host.drain {
		t.Fatal("a host goes though an actor is in it")
	}
	w.release(a2)
	again := need("a") // while it goes
	if !host.drain || w.ready[again] == host.client {
		t.Fatal("a named host without actors goes on")
	}
	w.reap()
	w.up()
	if w.ready[again] == 0 {
		t.Error("the next actor of the name has no process")
	}
	w.release(again)
	w.release(b)
	w.release(plain)
	w.reap()
	if n := len(w.c.jobs[1].groups); n != 1 {
		t.Errorf("%d groups are left, want the job's own", n)
	}
}

func TestIsolatedFunctionsDoNotShare(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1, Restored: true})
	f := w.need(1, own, "f")
	w.up()
	c := w.ready[f]
	w.release(f)
	g := w.need(1, own, "g")
	w.up()
	f2 := w.need(1, own, "f")
	if w.ready[g] == c || w.ready[f2] != c || w.started != 2 {
		t.Fatalf("f ran in %d, then g in %d and f in %d", c, w.ready[g], w.ready[f2])
	}
}

func TestSlotsInTheDriver(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1, Tasks: 5, Actors: 6})
	want := map[ids.LeaseID]ids.ClientID{
		w.need(1, tasks, "f"): 5, w.need(1, actors, "A"): 6, w.need(1, own, "actor"): 6,
	}
	for l, c := range want {
		if w.ready[l] != c {
			t.Errorf("lease %d is in client %d, want %d", l, w.ready[l], c)
		}
	}
	w.step(Drain{sched.DrainWorker{Lease: 1, Worker: 5, Err: errs.New(errs.CodeCancelled, "x")}})
	w.step(Kill{sched.KillWorker{Worker: 5}})
	w.step(Disconnected{Client: 5})
	if len(w.gone) != 1 || w.gone[1].Worker != 5 {
		t.Errorf("the abandoned lease is not ended: %v", w.gone)
	}
	if l := w.need(1, tasks, "f"); w.ready[l] != 5 || w.started != 0 {
		t.Errorf("client %d, %d processes", w.ready[l], w.started)
	}
	w.step(JobEnded{Job: 1})
	w.step(JobStarted{Job: 2, Tasks: 7, Actors: 8, Isolate: true})
	if w.need(2, own, "f"); w.started != 1 {
		t.Error("isolation by process was asked for, none is started")
	}
}
