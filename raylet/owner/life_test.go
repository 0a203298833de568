package owner

import (
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

func TestLifeOfATask(t *testing.T) {
	s := newScript(t, Config{Transitions: true})
	spec := s.submit(simple)
	if w := told[sched.Want](s); len(w) != 1 || w[0].Backlog != 1 {
		t.Fatalf("the scheduler is told %+v", w)
	}
	s.from(driver, &wire.Get{ID: spec.ID.Return(0), Fetch: true})
	l := s.grant(worker)
	x := s.executed(worker)
	if x.Attempt != 1 || x.Spec != spec {
		t.Fatalf("pushed %+v", x)
	}
	s.done(worker, l, x, inline("v"))
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || string(r[0].Result.Value.Data) != "v" {
		t.Fatalf("the get is answered with %+v", r)
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
	if s.c.tasks.n != 0 {
		t.Error("the record stays")
	}
	s.pass(500 * time.Millisecond)
	if r := told[sched.Return](s); len(r) != 1 || r[0].Lease != l {
		t.Errorf("after 500 ms idle: %+v", r)
	}
	var states []task.State
	for _, ch := range s.seen {
		states = append(states, ch.State)
	}
	want := []task.State{task.PendingArgs, task.PendingNode, task.Submitted, task.Running, task.Running, task.Finished}
	if len(states) != len(want) {
		t.Fatalf("transitions %v, want %v", states, want)
	}
	for i := range want {
		if states[i] != want[i] {
			t.Fatalf("transitions %v, want %v", states, want)
		}
	}
}

// A lease that idles is returned at once when tasks of another class wait, and late when none do.
func TestAnIdleLeaseGoesToWhoWaits(t *testing.T) {
	s := newScript(t, Config{})
	s.submit(simple)
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("v"))
	s.pass(100 * time.Millisecond)
	if r := told[sched.Return](s); len(r) > 0 {
		t.Fatalf("returned when nobody waits: %+v", r)
	}
	other := *simple
	other.Func = "other"
	s.submit(&other)
	if r := told[sched.Return](s); len(r) != 1 || r[0].Lease != l {
		t.Errorf("when another class begins to wait: %+v", r)
	}
}

// Tasks that come one at a time go to the lease that has just had one, and the others are returned.
func TestASingleTaskGoesWhereTheLastOneEnded(t *testing.T) {
	s := newScript(t, Config{})
	s.submit(simple)
	l1 := s.grant(worker)
	x1 := s.executed(worker)
	s.submit(simple)
	l2 := s.grant(worker2)
	x2 := s.executed(worker2)
	s.done(worker2, l2, x2, inline("v"))
	s.done(worker, l1, x1, inline("v"))
	for range 3 {
		s.pass(200 * time.Millisecond)
		if r := told[sched.Return](s); len(r) > 0 && r[0].Lease != l2 {
			t.Fatalf("the lease in use is returned: %+v", r)
		}
		s.submit(simple)
		s.done(worker, l1, s.executed(worker), inline("v"))
	}
	if len(s.c.leases.byID) != 1 {
		t.Errorf("%d leases are held for tasks that come one at a time", len(s.c.leases.byID))
	}
}

// The log has what a step allows before the step allows it.
func TestTheLogComesFirst(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.spec(simple)
	s.from(driver, &wire.Submit{Spec: spec}, &wire.Get{ID: spec.ID.Return(0)})
	l := s.grant(worker)
	x := s.executed(worker)
	s.done(worker, l, x, inline("v"))
	logged := false
	for _, e := range s.out {
		switch {
		case e.Kind == Log:
			logged = true
		case e.Kind == ToClient && !logged:
			t.Errorf("%T precedes the record of the result", e.Wire)
		}
	}
	if !logged {
		t.Error("the result is not logged")
	}
}

func TestAnArgumentsErrorIsPassedOnOnce(t *testing.T) {
	s := newScript(t, Config{})
	a := s.submit(simple)
	b := s.submit(simple, wire.Arg{Ref: a.ID.Return(0)})
	c := s.submit(simple, wire.Arg{Ref: b.ID.Return(0)})
	if s.state(b) != task.PendingArgs {
		t.Fatalf("the dependent is %v", s.state(b))
	}
	l := s.grant(worker)
	s.failed(worker, l, s.executed(worker), &errs.Error{Code: errs.CodeTaskFailed, Name: "simple", Msg: "boom"})
	rb, rc := s.result(b.ID.Return(0)).Result.Err, s.result(c.ID.Return(0)).Result.Err
	if rb.Code != errs.CodeTaskFailed || len(rb.Cause) != 1 || rb.Cause[0].Msg != "boom" {
		t.Errorf("the dependent fails with %+v", rb)
	}
	if rc != rb {
		t.Errorf("the next one wraps it again: %v", rc)
	}
}

func TestApplicationErrorsAreRetriedWhereAsked(t *testing.T) {
	s := newScript(t, Config{})
	opts := &wire.TaskOptions{Func: "flaky", NumReturns: 1, MaxRetries: 2, RetryExceptions: true}
	for _, o := range []*wire.TaskOptions{opts, simple} {
		spec := s.submit(o)
		l := s.grant(worker)
		attempts := 0
		for len(sent[*wire.Exec](s, worker)) > 0 {
			attempts++
			s.failed(worker, l, s.executed(worker), errs.New(errs.CodeTaskFailed, "no"))
		}
		want := 1
		if o == opts {
			want = 3
		}
		if attempts != want {
			t.Errorf("%s ran %d times, want %d", o.Func, attempts, want)
		}
		s.wantError(spec.ID.Return(0), errs.CodeTaskFailed)
	}
	spec := s.submit(&wire.TaskOptions{Func: "picky", NumReturns: 1, MaxRetries: 2, RetryExceptions: true, RetryOnly: "these"})
	l := s.grant(worker)
	s.failed(worker, l, s.executed(worker), errs.New(errs.CodeTaskFailed, "one of these"))
	x := s.executed(worker)
	s.from(worker, &wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Err: errs.New(errs.CodeTaskFailed, "another"), Final: true})
	if left := sent[*wire.Exec](s, worker); len(left) > 0 {
		t.Errorf("a final error is retried: %v", left)
	}
	s.wantError(spec.ID.Return(0), errs.CodeTaskFailed)
}

// The end of an attempt that is told again, when the next one runs on the same lease, ends nothing: else each later end would be taken for one of the attempt
// behind it, whose result nobody takes.
func TestTheEndOfAnAttemptIsToldAgain(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "flaky", NumReturns: 1, MaxRetries: -1, RetryExceptions: true})
	l := s.grant(worker)
	first := s.executed(worker)
	boom := errs.New(errs.CodeTaskFailed, "it fails")
	s.failed(worker, l, first, boom)
	second := s.executed(worker)
	if second.Attempt != first.Attempt+1 {
		t.Fatalf("attempt %d follows %d", second.Attempt, first.Attempt)
	}
	for _, again := range []func(){func() { s.failed(worker, l, first, boom) }, func() { s.done(worker, l, first, inline("late")) }} {
		if again(); len(s.pushed(worker)) > 0 || s.state(spec) != task.Running {
			t.Errorf("the task is %v, pushed is %v", s.state(spec), s.pushed(worker))
		}
	}
	s.done(worker, l, second, inline("right"))
	if got := s.result(spec.ID.Return(0)).Result.Value.Data; string(got) != "right" {
		t.Errorf("the result is %q", got)
	}
}

// Where they have a bound of their own, a task's errors and its workers' deaths are counted apart, also across a crash of the core.
func TestErrorsOfItsOwnAreCountedApart(t *testing.T) {
	no := errs.New(errs.CodeTaskFailed, "no")
	for _, crash := range []bool{false, true} {
		for _, last := range []errs.Code{errs.CodeTaskFailed, errs.CodeWorkerCrashed} {
			s := newScript(t, Config{})
			spec := s.submit(&wire.TaskOptions{Func: "flaky", NumReturns: 1, MaxRetries: 2, RetryExceptions: true, ExceptionRetries: 1})
			id := worker
			die := func(l ids.LeaseID) {
				s.kill(id, errs.CodeWorkerCrashed, 0, l)
				id += 10
				s.step(ClientJoined{Client: id, Role: wire.RoleWorker})
				s.pass(time.Second) // its back-off
			}
			die(s.grant(id))
			l := s.grant(id)
			s.failed(id, l, s.executed(id), no)
			s.executed(id)
			die(l)
			if x := s.c.tasks.task(spec.ID); x.tries != 2 || x.x.errors != 1 {
				t.Fatalf("%d deaths and %d errors are charged", x.tries, x.x.errors)
			}
			if crash {
				s.rebuild(7)
				h := holds(7)
				h.Handles = []ids.ObjectID{spec.ID.Return(0)}
				s.from(driver, h)
				s.from(worker, holds(7))
				s.from(worker2, holds(7))
				id = worker
			}
			if l = s.grant(id); last == errs.CodeTaskFailed {
				s.failed(id, l, s.executed(id), no)
			} else {
				die(l)
			}
			s.wantError(spec.ID.Return(0), last)
		}
	}
}

func TestInfeasible(t *testing.T) {
	s := newScript(t, Config{})
	a := s.submit(simple)
	k := s.c.classOf(wire.TaskNormal, simple)
	s.step(FromSched{sched.Infeasible{Key: sched.ClassKey{Job: 1, Class: k.id}, Err: errs.New(errs.CodeUnschedulable, "no GPU")}})
	s.wantError(a.ID.Return(0), errs.CodeUnschedulable)
	b := s.submit(simple)
	s.wantError(b.ID.Return(0), errs.CodeUnschedulable)

	s.step(FromSched{sched.Feasible{Key: sched.ClassKey{Job: 1, Class: k.id}}})
	d := s.submit(simple)
	if w := told[sched.Want](s); len(w) != 1 || w[0].Backlog != 1 {
		t.Fatalf("when the node can run it, it wants %+v", w)
	}
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("x"))
	if r := s.result(d.ID.Return(0)); string(r.Result.Value.Data) != "x" {
		t.Errorf("it gives %+v", r.Result)
	}
}

// That no worker could be started fails what waited; the next task tries again.
func TestNoWorkerCouldBeStarted(t *testing.T) {
	s := newScript(t, Config{})
	a := s.submit(simple)
	k := s.c.classOf(wire.TaskNormal, simple)
	s.step(FromSched{sched.Infeasible{Key: sched.ClassKey{Job: 1, Class: k.id}, Err: errs.New(errs.CodeRuntimeSetup, "exec: no such file")}})
	s.wantError(a.ID.Return(0), errs.CodeRuntimeSetup)
	b := s.submit(simple)
	if w := told[sched.Want](s); len(w) != 1 || w[0].Backlog != 1 {
		t.Fatalf("the next task's want is %+v", w)
	}
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("x"))
	if r := s.result(b.ID.Return(0)); string(r.Result.Value.Data) != "x" {
		t.Errorf("it gives %+v", r.Result)
	}
}

func TestCancel(t *testing.T) {
	t.Run("queued never starts", func(t *testing.T) {
		s := newScript(t, Config{})
		a := s.submit(simple)
		s.from(driver, &wire.Cancel{Task: a.ID})
		if w := told[sched.Want](s); len(w) != 1 || w[0].Backlog != 0 {
			t.Errorf("the want is %+v", w)
		}
		s.wantError(a.ID.Return(0), errs.CodeCancelled)
	})
	t.Run("running is told and may still end well", func(t *testing.T) {
		s := newScript(t, Config{})
		a := s.submit(simple)
		l := s.grant(worker)
		x := s.executed(worker)
		s.from(driver, &wire.Cancel{Task: a.ID})
		if m := sent[*wire.CancelTask](s, worker); len(m) != 1 || m[0].Abandon {
			t.Fatalf("the worker is told %+v", m)
		}
		s.done(worker, l, x, inline("v"))
		if r := s.result(a.ID.Return(0)); r.Result.Kind != wire.ResultInline {
			t.Errorf("the value that came is not given: %+v", r.Result)
		}
	})
	t.Run("a cancelled task is not retried", func(t *testing.T) {
		s := newScript(t, Config{})
		a := s.submit(simple)
		l := s.grant(worker)
		s.from(driver, &wire.Cancel{Task: a.ID})
		s.kill(worker, errs.CodeWorkerCrashed, 0, l)
		s.wantError(a.ID.Return(0), errs.CodeCancelled)
	})
	t.Run("force fails at once and drains the process", func(t *testing.T) {
		s := newScript(t, Config{})
		a := s.submit(simple)
		l := s.grant(worker)
		x := s.executed(worker)
		s.from(driver, &wire.Cancel{Task: a.ID, Force: true})
		if m := sent[*wire.CancelTask](s, worker); len(m) != 1 || !m[0].Abandon {
			t.Fatalf("the worker is told %+v", m)
		}
		if d := told[sched.DrainWorker](s); len(d) != 1 || d[0].Worker != worker {
			t.Fatalf("the pool is asked %+v", d)
		}
		if r := told[sched.Return](s); len(r) != 1 {
			t.Errorf("its lease is not given back: %+v", r)
		}
		s.wantError(a.ID.Return(0), errs.CodeCancelled)
		s.done(worker, l, x, wire.Result{Kind: wire.ResultStored}) // it returned after all
		if d := told[objectstore.DropAttempt](s); len(d) != 1 {
			t.Errorf("what it stored stays: %+v", d)
		}
	})
	t.Run("recursive takes the children along", func(t *testing.T) {
		s := newScript(t, Config{})
		a := s.submit(simple)
		s.grant(worker)
		child := &wire.TaskSpec{ID: ids.Derive(a.ID, 1), Parent: a.ID, Opts: &wire.TaskOptions{Func: "child", NumReturns: 1}}
		s.from(worker, &wire.Submit{Spec: child})
		s.from(driver, &wire.Cancel{Task: a.ID, Recursive: true})
		if s.state(child) != task.Cancelled {
			t.Errorf("the child is %v", s.state(child))
		}
	})
}

func TestDeadline(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.spec(simple)
	spec.Deadline = s.now + int64(time.Second)
	s.from(driver, &wire.Submit{Spec: spec})
	l := s.grant(worker)
	s.pass(time.Second)
	if m := sent[*wire.CancelTask](s, worker); len(m) != 1 || m[0].Abandon {
		t.Fatalf("the worker is told %+v", m)
	}
	s.wantError(spec.ID.Return(0), errs.CodeDeadline)
	s.pass(2 * time.Second) // it ignores its context
	if m := sent[*wire.CancelTask](s, worker); len(m) != 1 || !m[0].Abandon {
		t.Errorf("after its grace the worker is told %+v", m)
	}
	if len(told[sched.DrainWorker](s)) != 1 || len(told[sched.Return](s)) != 1 {
		t.Error("its slot is not given up")
	}
	if s.c.leases.byID[l] != nil {
		t.Error("its lease stays")
	}
	late := s.spec(simple)
	late.Deadline = s.now - 1
	s.from(driver, &wire.Submit{Spec: late})
	s.wantError(late.ID.Return(0), errs.CodeDeadline)
}

// A pipeline is one task deep until the class's run time is known, then about a
// millisecond's worth; several leases share alike.
func TestPipeline(t *testing.T) {
	s := newScript(t, Config{})
	var msgs []wire.Msg
	for range 400 {
		msgs = append(msgs, &wire.Submit{Spec: s.spec(simple)})
	}
	s.from(driver, msgs...)
	l := s.grant(worker)
	x := s.executed(worker) // fails unless it is one
	s.from(worker, &wire.Done{Task: x.Spec.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("v")}, Times: wire.Times{Started: 1, Ended: 1 + 20_000}})
	m := sent[*wire.Exec](s, worker)
	if len(m) != 1 || len(m[0].Tasks) != 50 {
		t.Fatalf("a task of 20 us is followed by %d messages", len(m))
	}
	s.grant(worker2)
	if m := sent[*wire.Exec](s, worker2); len(m) != 1 || len(m[0].Tasks) != 50 {
		t.Errorf("a second lease gets %+v", m)
	}
}

func TestReclaimReturnsALeaseThatHasRunDown(t *testing.T) {
	s := newScript(t, Config{})
	s.submit(simple)
	l := s.grant(worker)
	x := s.executed(worker)
	s.submit(simple)
	s.step(FromSched{sched.Reclaim{Lease: l}})
	if len(told[sched.Return](s)) != 0 {
		t.Fatal("it is returned with a task on it")
	}
	s.done(worker, l, x, inline("v"))
	if r := told[sched.Return](s); len(r) != 1 || len(sent[*wire.Exec](s, worker)) != 0 {
		t.Errorf("it is not returned: %+v", r)
	}
}

// A task in a get gives its CPU back, and the tasks behind it go elsewhere, in order.
func TestBlockedTaskGivesBackCPUAndQueue(t *testing.T) {
	s := newScript(t, Config{})
	k := s.c.classOf(wire.TaskNormal, simple)
	k.known, k.runNs = true, 1000
	var specs []*wire.TaskSpec
	var msgs []wire.Msg
	for range 3 {
		spec := s.spec(simple)
		specs, msgs = append(specs, spec), append(msgs, &wire.Submit{Spec: spec})
	}
	s.from(driver, msgs...)
	l := s.grant(worker)
	s.from(worker, &wire.Blocked{Task: specs[0].ID, Lease: l, Returned: []ids.TaskID{specs[1].ID, specs[2].ID}})
	if b := told[sched.BlockCPU](s); len(b) != 1 {
		t.Fatalf("the CPU: %+v", b)
	}
	if s.state(specs[0]) != task.RunningInGet || s.state(specs[1]) != task.PendingNode {
		t.Fatalf("states %v %v", s.state(specs[0]), s.state(specs[1]))
	}
	l2 := s.grant(worker2)
	m := sent[*wire.Exec](s, worker2)
	if len(m) != 1 || len(m[0].Tasks) != 2 || m[0].Tasks[0].Spec != specs[1] || m[0].Tasks[0].Attempt != 1 {
		t.Fatalf("the returned tasks: %+v", m)
	}
	s.from(worker, &wire.Unblocked{Task: specs[0].ID, Lease: l})
	if u := told[sched.UnblockCPU](s); len(u) != 1 || len(sent[*wire.Resume](s, worker)) != 0 {
		t.Fatalf("it goes on without its CPU: %+v", u)
	}
	s.resumed(l)
	if m := sent[*wire.Resume](s, worker); len(m) != 1 || s.state(specs[0]) != task.Running {
		t.Errorf("it does not go on: %+v", m)
	}
	_ = l2
}

// A long task gives back what waits behind it without being blocked itself.
func TestQueueGivenBackBehindALongTask(t *testing.T) {
	s := newScript(t, Config{})
	k := s.c.classOf(wire.TaskNormal, simple)
	k.known, k.runNs = true, 1000
	a, b := s.spec(simple), s.spec(simple)
	s.from(driver, &wire.Submit{Spec: a}, &wire.Submit{Spec: b})
	l := s.grant(worker)
	s.from(worker, &wire.Blocked{Lease: l, Returned: []ids.TaskID{b.ID}})
	if len(told[sched.BlockCPU](s)) != 0 || s.state(a) != task.Running {
		t.Errorf("the long task is taken for blocked")
	}
	if m := sent[*wire.Exec](s, worker); len(m) != 0 {
		t.Errorf("what it gave back is pushed there again: %+v", m[0].Tasks)
	}
	s.grant(worker2)
	if x := s.executed(worker2); x.Spec != b {
		t.Errorf("pushed %+v", x)
	}
}

// A class with a long backlog does not hold up another: that one's want is told at once, the
// lease asked back is free after what was pushed on it, a millisecond's worth, and the
// other's task runs first on its own.
func TestALongQueueDoesNotHoldUpAnotherClass(t *testing.T) {
	s := newScript(t, Config{})
	var msgs []wire.Msg
	for range 10_000 {
		msgs = append(msgs, &wire.Submit{Spec: s.spec(simple)})
	}
	s.from(driver, msgs...)
	l := s.grant(worker)
	s.from(worker, &wire.Done{Task: s.executed(worker).Spec.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("v")}, Times: wire.Times{Started: 1, Ended: 1 + 100_000}})
	onLane := s.pushed(worker)
	if len(onLane) != 10 {
		t.Fatalf("%d tasks of 0.1 ms are pushed ahead", len(onLane))
	}
	b := s.submit(&wire.TaskOptions{Func: "other", NumReturns: 1})
	w := told[sched.Want](s)
	if len(w) != 1 || w[0].Opts.Func != "other" || w[0].Backlog != 1 {
		t.Fatalf("the scheduler is told %+v", w)
	}
	s.step(FromSched{sched.Reclaim{Lease: l}})
	for i, id := range onLane {
		if len(told[sched.Return](s)) != 0 {
			t.Fatalf("the lease goes back with %d tasks on it", len(onLane)-i)
		}
		s.from(worker, &wire.Done{Task: id, Attempt: 1, Lease: l, Results: []wire.Result{inline("v")}, Times: wire.Times{Started: 1, Ended: 1 + 100_000}})
		if got := s.pushed(worker); len(got) != 0 {
			t.Fatalf("more is pushed on a lease that is asked back: %d", len(got))
		}
	}
	if len(told[sched.Return](s)) != 1 {
		t.Fatal("the lease does not go back")
	}
	s.step(FromSched{sched.Granted{Key: w[0].Key, Lease: 77, Worker: worker}})
	if x := s.executed(worker); x.Spec != b {
		t.Errorf("runs %+v", x)
	}
}

// A get is answered once to whoever asked, however often, whatever became of the handle meanwhile.
func TestGetsAreAnsweredOnceEach(t *testing.T) {
	for name, c := range map[string]struct {
		before func(s *script, id ids.ObjectID)
		want   map[ids.ClientID]int
	}{
		"of its holder":        {func(s *script, id ids.ObjectID) { s.from(driver, &wire.Get{ID: id}) }, map[ids.ClientID]int{driver: 1}},
		"of its holder, twice": {func(s *script, id ids.ObjectID) { s.from(driver, &wire.Get{ID: id}, &wire.Get{ID: id, Fetch: true}) }, map[ids.ClientID]int{driver: 2}},
		"of its holder and one who holds none": {func(s *script, id ids.ObjectID) {
			s.from(driver, &wire.Get{ID: id})
			s.from(worker2, &wire.Get{ID: id})
		}, map[ids.ClientID]int{driver: 1, worker2: 1}},
		"withdrawn": {func(s *script, id ids.ObjectID) {
			s.from(driver, &wire.Get{ID: id}, &wire.Get{ID: id}, &wire.Unget{ID: id})
		}, nil},
		"withdrawn and made again": {func(s *script, id ids.ObjectID) {
			s.from(driver, &wire.Get{ID: id}, &wire.Unget{ID: id}, &wire.Get{ID: id})
		}, map[ids.ClientID]int{driver: 1}},
		"of a holder that released": {func(s *script, id ids.ObjectID) {
			s.from(driver, &wire.Get{ID: id, Fetch: true}, &wire.Release{IDs: []ids.ObjectID{id}})
		}, map[ids.ClientID]int{driver: 1}},
		"of a holder that released to another": {func(s *script, id ids.ObjectID) {
			s.from(worker2, &wire.AddRef{ID: id})
			s.from(driver, &wire.Get{ID: id}, &wire.Release{IDs: []ids.ObjectID{id}})
		}, map[ids.ClientID]int{driver: 1}},
		"of a holder that is gone": {func(s *script, id ids.ObjectID) {
			s.from(worker2, &wire.AddRef{ID: id}, &wire.Get{ID: id})
			s.from(driver, &wire.Get{ID: id})
			s.step(ClientGone{Client: worker2})
		}, map[ids.ClientID]int{driver: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, Config{})
			spec := s.submit(simple)
			l := s.grant(worker)
			run := s.executed(worker)
			c.before(s, spec.ID.Return(0))
			s.done(worker, l, run, inline("x"))
			for _, cl := range []ids.ClientID{driver, worker, worker2} {
				if n := len(sent[*wire.Resolved](s, cl)); n != c.want[cl] {
					t.Errorf("%d answers to client %d, want %d", n, cl, c.want[cl])
				}
			}
		})
	}
}

// A cancel that insists leaves a task a while to end by itself, and then takes its process.
func TestACancelThatInsists(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	x := s.executed(worker)
	s.from(driver, &wire.Cancel{Task: spec.ID, Insist: true})
	if m := sent[*wire.CancelTask](s, worker); len(m) != 1 || m[0].Abandon {
		t.Fatalf("the worker is told %+v", m)
	}
	s.pass(time.Second)
	if m := sent[*wire.CancelTask](s, worker); len(m) != 0 {
		t.Fatalf("before its time the worker is told %+v", m)
	}
	s.pass(2 * time.Second)
	if m := sent[*wire.CancelTask](s, worker); len(m) != 1 || !m[0].Abandon {
		t.Fatalf("afterwards the worker is told %+v", m)
	}
	if d := told[sched.DrainWorker](s); len(d) != 1 || d[0].Lease != l {
		t.Errorf("the scheduler is asked to drain %+v", d)
	}
	s.wantError(spec.ID.Return(0), errs.CodeCancelled)

	spec = s.submit(simple)
	l2 := s.grant(worker2)
	y := s.executed(worker2)
	s.from(driver, &wire.Cancel{Task: spec.ID, Insist: true})
	s.failed(worker2, l2, y, errs.New(errs.CodeCancelled, "it was told"))
	s.pass(time.Minute)
	if m := sent[*wire.CancelTask](s, worker2); len(m) != 0 {
		t.Errorf("of one that has ended the worker is told %+v", m)
	}
	s.failed(worker, l, x, errs.New(errs.CodeCancelled, "late"))
}

// A task that was pushed ahead does not end the process of the one before it, which may hold the worker up.
func TestACancelThatInsistsOnWhatHasNotBegun(t *testing.T) {
	s := newScript(t, Config{})
	s.submit(simple)
	l := s.grant(worker)
	x := s.executed(worker)
	a, b := s.submit(simple), s.submit(simple)
	quick := wire.Times{Started: 1, Ended: 1 + 100_000} // so that the next ones are pushed ahead
	s.from(worker, &wire.Done{Task: x.Spec.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("v")}, Times: quick})
	pushed := s.pushed(worker)
	if len(pushed) != 2 || pushed[0] != a.ID || pushed[1] != b.ID {
		t.Fatalf("pushed are %v", pushed)
	}
	s.from(driver, &wire.Cancel{Task: b.ID, Insist: true})
	sent[*wire.CancelTask](s, worker)
	s.pass(10 * time.Second)
	if m := sent[*wire.CancelTask](s, worker); len(m) != 0 {
		t.Fatalf("the worker is told %+v", m)
	}
	if d := told[sched.DrainWorker](s); len(d) != 0 {
		t.Fatalf("the scheduler is asked to drain %+v", d)
	}
	s.from(worker, &wire.Done{Task: a.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("v")}, Times: quick})
	s.pass(2 * time.Second)
	if m := sent[*wire.CancelTask](s, worker); len(m) != 1 || !m[0].Abandon {
		t.Errorf("the worker is told %+v", m)
	}
	s.wantError(b.ID.Return(0), errs.CodeCancelled)
}

// Who asks again and again does not put off the end of a task's grace.
func TestACancelThatInsistsAgain(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	x := s.executed(worker)
	s.from(driver, &wire.Cancel{Task: spec.ID, Insist: true})
	s.pass(1500 * time.Millisecond)
	s.from(driver, &wire.Cancel{Task: spec.ID, Insist: true})
	s.pass(time.Second)
	if m := sent[*wire.CancelTask](s, worker); len(m) != 1 || !m[0].Abandon {
		t.Fatalf("2.5 s after the first cancel the worker is told %+v", m)
	}
	s.wantError(spec.ID.Return(0), errs.CodeCancelled)
	s.failed(worker, l, x, errs.New(errs.CodeCancelled, "late"))
}
