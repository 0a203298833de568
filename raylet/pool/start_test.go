package pool

import (
	"errors"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
)

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
	if len(w.refused) != 1 {
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

// A worker of another build than its driver is not used, and no other one is tried: the waiting leases fail with
// the reason.
func TestAWorkerOfAnotherBuildFailsItsLeases(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	a, b := w.need(1, tasks, "f"), w.need(1, tasks, "g")
	why := errs.New(errs.CodeRegistryMismatch, "function g")
	w.step(Registered{Client: 50, Token: w.procs[1].Token, PID: 5, Err: why})
	if w.failed[a] != why || w.failed[b] != why || len(w.refused) != 1 || w.refused[0] != why || !w.procs[1].killed {
		t.Fatalf("failed %v, refused %v", w.failed, w.refused)
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

func TestStrangersAreRefused(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	for _, token := range []string{"", "x", "token-2"} {
		w.step(Registered{Client: 50, Token: []byte(token)})
	}
	w.up()
	w.step(Registered{Client: 51, Token: w.procs[1].Token}) // the token of one that is there already
	if len(w.refused) != 4 {
		t.Fatalf("%d of 4 were refused", len(w.refused))
	}
	for _, err := range w.refused {
		if !errors.Is(err, errs.ErrPermission) {
			t.Errorf("refused with %v", err)
		}
	}
}

// A worker that registers when its end is under way hears that the node is gone from it, on which it ends without a word: a program that has ended
// its session would else print that its worker is a stranger. Whoever comes with the token of a worker that is there remains one.
func TestAWorkerThatEndsBeforeItRegistersIsNoStranger(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world)
	}{
		{"stop", func(w *world) { w.step(Stop{}) }},
		{"its job has ended", func(w *world) { w.step(JobEnded{Job: 1}) }},
		{"its start took too long", func(w *world) { w.pass(DefaultStartTimeout) }},
		{"it cannot be used", func(w *world) {
			w.step(Registered{Client: 50, Token: w.procs[1].Token, PID: 5, Err: errs.New(errs.CodeRegistryMismatch, "function g")})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, Config{})
			w.step(JobStarted{Job: 1})
			c.end(w)
			w.refused = nil
			w.register(w.procs[1])
			if len(w.refused) != 1 || !errors.Is(w.refused[0], errs.ErrDisconnected) {
				t.Errorf("refused with %v", w.refused)
			}
			w.reap()
			w.step(Registered{Client: 52, Token: []byte("token-1")})
			if len(w.refused) != 2 || !errors.Is(w.refused[1], errs.ErrPermission) {
				t.Errorf("the token of a process that is gone: %v", w.refused)
			}
		})
	}
	t.Run("it had registered", func(t *testing.T) {
		w := newWorld(t, Config{})
		w.step(JobStarted{Job: 1})
		w.up()
		w.step(Kill{sched.KillWorker{Worker: w.procs[1].client, Err: errs.New(errs.CodeOutOfMemory, "too much")}})
		w.step(Registered{Client: 51, Token: w.procs[1].Token})
		if len(w.refused) != 1 || !errors.Is(w.refused[0], errs.ErrPermission) {
			t.Errorf("refused with %v", w.refused)
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
