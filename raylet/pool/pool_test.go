package pool

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

const (
	tasks  = sched.SlotTask
	actors = sched.SlotActor
	own    = sched.SlotOwn
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

func TestStartsAreBounded(t *testing.T) {
	w := newWorld(t, Config{CPUs: 2})
	w.step(JobStarted{Job: 1, Restored: true})
	for range 7 {
		w.need(1, own, "f")
	}
	for n := 2; n < 7; n++ {
		if w.started != n {
			t.Fatalf("%d started, want %d", w.started, n)
		}
		for _, id := range w.ids() {
			if p := w.procs[id]; p.client == 0 {
				w.register(p)
				break
			}
		}
	}
	w.up()
	if w.started != 7 || len(w.ready) != 7 {
		t.Fatalf("%d started for 7 leases, %d ready", w.started, len(w.ready))
	}
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

func TestStartTimeoutNamesTheLastWords(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	l := w.need(1, tasks, "f")
	w.pass(DefaultStartTimeout - 1)
	if w.procs[1].killed {
		t.Fatal("killed too soon")
	}
	w.pass(1)
	if !w.procs[1].killed || w.failed[l] != nil {
		t.Fatal("killed late, or failed before its stderr was read")
	}
	w.register(w.procs[1]) // at the last moment
	if w.refused != 1 {
		t.Fatal("a worker that is being killed was admitted")
	}
	w.exit(1, Exit{PID: 9, Signal: "killed", Tail: "cannot load libfoo\n"})
	err := w.failed[l]
	if !errors.Is(err, errs.ErrRuntimeSetup) || !strings.Contains(err.Error(), "did not register within 30s") || !strings.Contains(err.Error(), "cannot load libfoo") {
		t.Fatalf("got %v", err)
	}
	if w.need(1, tasks, "f"); w.started != 2 {
		t.Fatal("the next lease does not try again")
	}
}

func TestUnkillableProcessDoesNotHangItsLeases(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	l := w.need(1, tasks, "f")
	w.pass(DefaultStartTimeout + DefaultGrace)
	if w.failed[l] == nil {
		t.Fatal("waits for ever")
	}
}

func TestCrashAtStartIsTriedThreeTimes(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	l := w.need(1, tasks, "f")
	for i := 1; i <= MaxStartFailures; i++ {
		if w.failed[l] != nil || w.started != i {
			t.Fatalf("attempt %d: %d started, %v", i, w.started, w.failed[l])
		}
		w.exit(ids.WorkerID(i), Exit{PID: 5, Status: 2, Tail: "flag provided but not defined"})
	}
	if err := w.failed[l]; !errors.Is(err, errs.ErrRuntimeSetup) || !strings.Contains(err.Error(), "exited with status 2; the end of its stderr: flag provided") {
		t.Fatalf("got %v", err)
	}
	if w.started != MaxStartFailures {
		t.Fatalf("%d started though nobody waits", w.started)
	}
}

// A killed start does not count against the program: it is tried more often, but not for ever.
func TestKillAtStartIsTriedAgain(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	l := w.need(1, tasks, "f")
	for i := 1; i <= MaxStartKills; i++ {
		if w.failed[l] != nil || w.started != i {
			t.Fatalf("attempt %d: %d started, %v", i, w.started, w.failed[l])
		}
		w.exit(ids.WorkerID(i), Exit{PID: 5, Signal: "killed"})
	}
	if err := w.failed[l]; !errors.Is(err, errs.ErrRuntimeSetup) || !strings.Contains(err.Error(), "20 starts failed in a row") {
		t.Fatalf("got %v", err)
	}
}

func TestWhatCannotBeStartedFailsAtOnce(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	l := w.need(1, tasks, "f")
	delete(w.procs, 1)
	w.step(StartFailed{Worker: 1, Err: errors.New("exec format error")})
	if err := w.failed[l]; !errors.Is(err, errs.ErrRuntimeSetup) || !strings.Contains(err.Error(), "exec format error") || w.started != 1 {
		t.Fatalf("got %v after %d starts", err, w.started)
	}
}

func TestCrashEndsTheLeasesAndSaysHow(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	a, b := w.need(1, tasks, "f"), w.need(1, tasks, "f")
	w.up()
	w.exit(1, Exit{PID: 31, Signal: "segmentation fault", Tail: "panic: boom"})
	for _, l := range []ids.LeaseID{a, b} {
		err := w.gone[l].Err
		if !errors.Is(err, errs.ErrWorkerCrashed) || !strings.Contains(err.Error(), "segmentation fault") || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), "task host of job 1") {
			t.Fatalf("got %v", err)
		}
	}
	if w.started != 1 {
		t.Fatal("started again though nobody waits")
	}
	c := w.need(1, tasks, "f")
	w.up()
	if w.ready[c] == 0 {
		t.Fatal("no new host")
	}
}

func TestKillGivesItsReasonAndPeak(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	l := w.need(1, tasks, "f")
	w.up()
	why := errs.New(errs.CodeOutOfMemory, "too much")
	w.step(Kill{sched.KillWorker{Worker: w.ready[l], Err: why, Peak: 99}})
	if !w.procs[1].killed || len(w.gone) != 0 {
		t.Fatal("not killed, or its lease ended while it still runs")
	}
	w.reap()
	if g := w.gone[l]; g.Err != why || g.Peak != 99 {
		t.Fatalf("%+v", g)
	}
}

func TestLostConnectionEndsTheProcess(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	l := w.need(1, tasks, "f")
	w.up()
	w.step(Disconnected{Client: w.ready[l]})
	if !w.procs[1].killed {
		t.Fatal("a worker that cannot be spoken to is left running")
	}
	w.reap()
	if !errors.Is(w.gone[l].Err, errs.ErrWorkerCrashed) {
		t.Fatalf("%v", w.gone)
	}
}

// A process that exits closes its connection first; the error still says how it ended.
func TestLastWordsFollowALostConnection(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	l := w.need(1, tasks, "f")
	w.up()
	w.step(Disconnected{Client: w.ready[l]})
	w.exit(1, Exit{PID: 5, Status: 7, Tail: "no licence"})
	if err := w.gone[l].Err; !errors.Is(err, errs.ErrWorkerCrashed) || !strings.Contains(err.Error(), "exited with status 7; the end of its stderr: no licence") {
		t.Fatalf("%v", err)
	}
}

// A worker of another build than its driver is not used, and no other one is tried: the waiting leases fail with
// the reason.
func TestAWorkerOfAnotherBuildFailsItsLeases(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	a, b := w.need(1, tasks, "f"), w.need(1, tasks, "g")
	why := errs.New(errs.CodeRegistryMismatch, "function g")
	w.step(Registered{Client: 50, Token: w.procs[1].Token, PID: 5, Err: why})
	if w.failed[a] != why || w.failed[b] != why || w.refused != 1 || !w.procs[1].killed {
		t.Fatalf("failed %v, %d refused", w.failed, w.refused)
	}
	w.reap()
	if w.started != 1 {
		t.Fatalf("%d were started", w.started)
	}
	w.need(1, tasks, "f")
	if w.started != 2 {
		t.Fatal("the next lease does not try again")
	}
}

// A forced cancel in a shared worker: others finish, new leases go elsewhere, then it is ended.
func TestDrain(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	bad, good := w.need(1, tasks, "f"), w.need(1, tasks, "f")
	w.up()
	c := w.ready[bad]
	why := errs.New(errs.CodeCancelled, "by force")
	w.step(Drain{sched.DrainWorker{Lease: bad, Worker: c, Err: why}})
	if len(w.reclaim) != 1 || w.reclaim[0] != good {
		t.Fatalf("reclaimed %v", w.reclaim)
	}
	fresh := w.need(1, tasks, "f")
	w.up()
	if w.ready[fresh] == c || w.ready[fresh] == 0 {
		t.Fatalf("the new lease is in client %d, %d is draining", w.ready[fresh], c)
	}
	w.pass(time.Hour)
	if w.procs[1].drain || w.procs[1].killed {
		t.Fatal("ended before the other task has")
	}
	w.release(good)
	if !w.procs[1].drain {
		t.Fatal("not told to exit")
	}
	w.pass(DefaultGrace)
	if !w.procs[1].killed {
		t.Fatal("the abandoned task keeps the process")
	}
	w.reap()
	if w.gone[bad].Err != why || len(w.gone) != 1 {
		t.Fatalf("%+v", w.gone)
	}
}

func TestDrainOfAnIsolatedWorkerKillsAtOnce(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1, Restored: true})
	l := w.need(1, own, "f")
	w.up()
	w.step(Drain{sched.DrainWorker{Lease: l, Worker: w.ready[l], Err: errs.New(errs.CodeCancelled, "x")}})
	if !w.procs[1].killed {
		t.Fatal("still runs")
	}
}

// The lease of the abandoned task was given back before the drain was asked for, and the process went to
// the next lease of its function: that one is not the culprit.
func TestLateDrainSparesTheNextLease(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1, Restored: true})
	old := w.need(1, own, "f")
	w.up()
	c := w.ready[old]
	w.release(old)
	next := w.need(1, own, "f")
	if w.ready[next] != c {
		t.Fatalf("the lease is in client %d", w.ready[next])
	}
	w.step(Drain{sched.DrainWorker{Lease: old, Worker: c, Err: errs.New(errs.CodeCancelled, "x")}})
	if w.procs[1].killed || len(w.reclaim) != 1 {
		t.Fatalf("killed %v, reclaimed %v", w.procs[1].killed, w.reclaim)
	}
	w.exit(1, Exit{PID: 1, Status: 4})
	if err := w.gone[next].Err; !errors.Is(err, errs.ErrWorkerCrashed) {
		t.Fatalf("the crash of a worker that drains is told as %v", err)
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

func TestJobEndEndsItsWorkers(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	w.step(JobStarted{Job: 2})
	w.need(1, own, "f")
	w.up()
	for range 5 {
		w.need(1, own, "g")
	}
	w.step(JobEnded{Job: 1})
	for _, p := range w.procs {
		if p.terminated != (p.Job == 1) {
			t.Errorf("worker %d of job %d: told to end %v", p.Worker, p.Job, p.terminated)
		}
	}
	w.pass(DefaultGrace)
	w.reap()
	if len(w.procs) != 1 || len(w.c.workers) != 1 || len(w.c.assignments) != 0 {
		t.Fatalf("%d processes, %d rows, %d leases are left", len(w.procs), len(w.c.workers), len(w.c.assignments))
	}
	if l := w.need(1, tasks, "f"); !errors.Is(w.failed[l], errs.ErrShutdown) {
		t.Errorf("a lease of a job that ended: %v", w.failed[l])
	}
}

func TestStopEndsAll(t *testing.T) {
	w := newWorld(t, Config{CPUs: 1})
	w.step(JobStarted{Job: 1})
	w.step(JobStarted{Job: 2})
	l := w.need(1, tasks, "f")
	w.step(Stop{})
	if !errors.Is(w.failed[l], errs.ErrShutdown) || !w.procs[1].terminated {
		t.Fatalf("%v", w.failed)
	}
	w.pass(time.Minute)
	w.reap()
	w.step(JobStarted{Job: 3})
	if w.started != 1 || len(w.procs) != 0 {
		t.Fatalf("%d started, %d left", w.started, len(w.procs))
	}
}

func TestStrangersAreRefused(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	for _, token := range []string{"", "x", "token-2"} {
		w.step(Registered{Client: 50, Token: []byte(token)})
	}
	w.up()
	w.step(Registered{Client: 51, Token: w.procs[1].Token}) // the token of one that is there already
	if w.refused != 4 {
		t.Fatalf("%d of 4 were refused", w.refused)
	}
}

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

// TestProperties drives the core with arbitrary processes. validate and effect hold the rules; in the end
// every lease has its answer and nothing is left.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
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

// A home whose numbers are used up gives no worker another home's: the lease that would need one fails, and the workers there are go on.
func TestAHomeWithoutNumbersStartsNoWorker(t *testing.T) {
	last := ids.WorkerID(ids.Home(3).ID(ids.MaxNumber))
	w := newWorld(t, Config{FirstWorker: last - 1})
	w.step(JobStarted{Job: 1})
	if w.started != 1 || w.procs[last] == nil {
		t.Fatalf("%d started: %v", w.started, w.ids())
	}
	alone := w.need(1, own, "f")
	if err := w.failed[alone]; w.started != 1 || !errors.Is(err, errs.ErrRuntimeSetup) || !strings.Contains(err.Error(), "home 3") {
		t.Errorf("%d started, the lease is told %v", w.started, err)
	}
	shared := w.need(1, tasks, "f")
	w.up()
	if w.ready[shared] == 0 {
		t.Errorf("a lease of the worker there is has none: %v", w.failed[shared])
	}
	w.step(JobStarted{Job: 2})
	if other := w.need(2, tasks, "f"); w.failed[other] == nil || len(w.procs) != 1 {
		t.Errorf("another job has %d workers", len(w.procs)-1)
	}
}
