package pool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
)

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

func TestJobEndEndsItsWorkers(t *testing.T) {
	w := newWorld(t, Config{})
	w.step(JobStarted{Job: 1})
	w.step(JobStarted{Job: 2})
	l := w.need(1, own, "f")
	w.need(1, own, "busy")
	w.up()
	w.release(l)
	for range 5 {
		w.need(1, own, "g")
	}
	w.step(JobEnded{Job: 1})
	for _, p := range w.procs {
		up := p.Job == 1 && w.c.workers[p.Worker].client != 0 // one that is there ends by itself
		if p.drain != up || p.terminated != (p.Job == 1 && !up) {
			t.Errorf("worker %d of job %d: told to end %v, made to %v", p.Worker, p.Job, p.drain, p.terminated)
		}
	}
	w.pass(LeaveAlone)
	for _, p := range w.procs {
		if p.terminated != (p.Job == 1) || p.killed {
			t.Errorf("worker %d of job %d, after %v: made to end %v, killed %v", p.Worker, p.Job, LeaveAlone, p.terminated, p.killed)
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
