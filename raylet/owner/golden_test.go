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

// script drives a core event by event and keeps what it asked for.
type script struct {
	t      *testing.T
	c      *Core
	now    int64
	out    []Effect
	logs   map[uint64][]byte
	cookie uint64
	root   ids.TaskID
	calls  uint64
	lease  ids.LeaseID
	seen   []Transition
}

const (
	driver  ids.ClientID = 1
	worker  ids.ClientID = 2
	worker2 ids.ClientID = 3
)

func newScript(t *testing.T, cfg Config) *script {
	cfg.Job = 1
	s := &script{t: t, c: New(cfg), now: 1e18, root: ids.RootTask(1, 1), logs: make(map[uint64][]byte)}
	s.step(ClientJoined{driver, wire.RoleDriver})
	s.step(ClientJoined{worker, wire.RoleWorker})
	s.step(ClientJoined{worker2, wire.RoleWorker})
	return s
}

// step gives the core one event; out has its effects from then on.
func (s *script) step(ev Event) {
	s.t.Helper()
	s.now += 1000
	s.out = nil
	for _, e := range s.c.Step(s.now, ev) {
		if e.Kind == Log {
			s.cookie++
			s.logs[s.cookie] = append([]byte(nil), e.Record...)
			if e.Cookie != nil {
				*e.Cookie = s.cookie
			}
		}
		if e.Kind == Transitions {
			s.seen = append(s.seen, *e.Changes...)
		}
		s.out = append(s.out, e)
	}
	if err := s.c.Validate(); err != nil {
		s.t.Fatalf("after %T: %v", ev, err)
	}
}

func (s *script) from(cl ids.ClientID, msgs ...wire.Msg) {
	s.t.Helper()
	s.step(FromClient{cl, msgs})
}

// pass lets time pass and steps the timer.
func (s *script) pass(d time.Duration) {
	s.t.Helper()
	s.now += int64(d)
	s.step(Timer{})
}

func (s *script) spec(opts *wire.TaskOptions, args ...wire.Arg) *wire.TaskSpec {
	s.calls++
	return &wire.TaskSpec{ID: ids.Derive(s.root, s.calls), Parent: s.root, Opts: opts, Args: args}
}

func (s *script) submit(opts *wire.TaskOptions, args ...wire.Arg) *wire.TaskSpec {
	s.t.Helper()
	spec := s.spec(opts, args...)
	s.from(driver, &wire.Submit{Spec: spec})
	return spec
}

// grant gives a lease for the class that the core wanted last.
func (s *script) grant(w ids.ClientID) ids.LeaseID {
	s.t.Helper()
	var key sched.ClassKey
	for _, k := range s.c.classes.byID {
		if k.ready.n > 0 {
			key = sched.ClassKey{Job: 1, Class: k.id}
		}
	}
	if key == (sched.ClassKey{}) {
		s.t.Fatal("no class waits for a lease")
	}
	s.lease++
	s.step(FromSched{sched.Granted{Key: key, Lease: s.lease, Worker: w}})
	return s.lease
}

// sent gives the messages of one type that the last step sent to a client.
func sent[M wire.Msg](s *script, cl ids.ClientID) []M {
	var out []M
	for _, e := range s.out {
		if m, ok := e.Wire.(M); ok && e.Kind == ToClient && e.Client == cl {
			out = append(out, m)
		}
	}
	return out
}

// told gives the messages of one type to store, scheduler or registry of the last step.
func told[M any](s *script) []M {
	var out []M
	for _, e := range s.out {
		if m, ok := e.Msg.(M); ok {
			out = append(out, m)
		}
	}
	return out
}

// executed gives the one task pushed to a client in the last step.
func (s *script) executed(cl ids.ClientID) wire.ExecTask {
	s.t.Helper()
	ms := sent[*wire.Exec](s, cl)
	if len(ms) != 1 || len(ms[0].Tasks) != 1 {
		s.t.Fatalf("pushed to %d: %d messages", cl, len(ms))
	}
	return ms[0].Tasks[0]
}

func (s *script) done(cl ids.ClientID, l ids.LeaseID, t wire.ExecTask, res ...wire.Result) {
	s.t.Helper()
	s.from(cl, &wire.Done{Task: t.Spec.ID, Attempt: t.Attempt, Lease: l, Results: res, Times: wire.Times{Started: s.now, Ended: s.now + 5e6}})
}

func (s *script) failed(cl ids.ClientID, l ids.LeaseID, t wire.ExecTask, err *errs.Error) {
	s.t.Helper()
	s.from(cl, &wire.Done{Task: t.Spec.ID, Attempt: t.Attempt, Lease: l, Err: err})
}

// kill ends a worker: connection first, then its leases.
func (s *script) kill(cl ids.ClientID, code errs.Code, peak uint64, leases ...ids.LeaseID) {
	s.t.Helper()
	s.step(ClientGone{Client: cl})
	for _, l := range leases {
		s.step(FromSched{sched.Revoked{Lease: l, Worker: cl, Err: errs.New(code, "killed"), Peak: peak}})
	}
}

// result gets an object and gives what is answered at once.
func (s *script) result(id ids.ObjectID) *wire.Resolved {
	s.t.Helper()
	s.from(driver, &wire.Get{ID: id, Fetch: true})
	ms := sent[*wire.Resolved](s, driver)
	if len(ms) != 1 {
		s.t.Fatalf("%d answers to a get of %v, which is %v", len(ms), id, s.c.object(id))
	}
	return ms[0]
}

func (s *script) wantError(id ids.ObjectID, code errs.Code) {
	s.t.Helper()
	if r := s.result(id); r.Result.Kind != wire.ResultError || r.Result.Err.Code != code {
		s.t.Fatalf("object %v: got %+v, want an error of code %d", id, r.Result, code)
	}
}

func (s *script) state(spec *wire.TaskSpec) task.State {
	if t := s.c.tasks[spec.ID]; t != nil {
		return t.state
	}
	return task.None
}

func inline(b string) wire.Result {
	return wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte(b)}, Size: uint64(len(b))}
}

var simple = &wire.TaskOptions{Func: "simple", NumReturns: 1, MaxRetries: 3}

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
	if len(s.c.tasks) != 0 {
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
}

// One task ran in the process that died: it is charged, and after its retries it fails.
func TestTheCulpritIsChargedUntilItsRetriesAreGone(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	id := worker
	for attempt := uint32(1); attempt <= 4; attempt++ {
		l := s.grant(id)
		if x := s.executed(id); x.Attempt != attempt {
			t.Fatalf("attempt %d, want %d", x.Attempt, attempt)
		}
		s.kill(id, errs.CodeWorkerCrashed, 0, l)
		id += 10
		s.step(ClientJoined{id, wire.RoleWorker})
	}
	s.wantError(spec.ID.Return(0), errs.CodeWorkerCrashed)
}

// Several tasks ran: none is charged, each runs again alone; the one that does it again is the
// culprit, and the others are cleared.
func TestSuspectsRunAloneUntilTheCulpritIsFound(t *testing.T) {
	s := newScript(t, Config{})
	opts := &wire.TaskOptions{Func: "suspect", NumReturns: 1, MaxRetries: 1}
	bad, good := s.submit(opts), s.submit(opts)
	l1 := s.grant(worker)
	l2 := s.grant(worker)
	queued := s.submit(opts)
	s.kill(worker, errs.CodeWorkerCrashed, 0, l1, l2)
	if n := s.c.stats.Retried; n != 0 {
		t.Fatalf("%d attempts are charged", n)
	}
	if s.c.tasks[queued.ID].flags&taskSolo != 0 {
		t.Error("a task that had not begun is suspected")
	}
	var solo sched.ClassKey
	for _, k := range s.c.classes.byID {
		if k.solo {
			solo = sched.ClassKey{Job: 1, Class: k.id}
			if k.ready.n != 2 || !k.opts.Isolate {
				t.Fatalf("%d tasks wait isolated", k.ready.n)
			}
		}
	}
	s.step(FromSched{sched.Granted{Key: solo, Lease: 50, Worker: worker2}})
	first := s.executed(worker2)
	s.kill(worker2, errs.CodeWorkerCrashed, 0, 50)
	if s.c.stats.Retried != 1 {
		t.Errorf("%d attempts are charged, want that of the culprit", s.c.stats.Retried)
	}
	other := bad.ID
	if first.Spec.ID == bad.ID {
		other = good.ID
	}
	if s.c.tasks[other].flags&taskSolo != 0 {
		t.Error("the other suspect is not cleared")
	}
}

// A task killed for memory is not charged; it waits longer each time, runs alone, and asks
// for the peak that was seen when it ran alone. Only the node's size ends that.
func TestOutOfMemoryRunsAgainLaterAloneAndLarger(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	id := worker
	wait := time.Second
	for range 8 {
		l := s.grant(id)
		s.kill(id, errs.CodeOutOfMemory, 500<<20, l)
		if s.state(spec) != task.Backoff {
			t.Fatalf("it is %v", s.state(spec))
		}
		s.pass(wait - 10*time.Microsecond)
		if s.state(spec) != task.Backoff {
			t.Fatalf("it runs again before %v", wait)
		}
		s.pass(10 * time.Microsecond)
		if s.state(spec) != task.PendingNode {
			t.Fatalf("after %v it is %v", wait, s.state(spec))
		}
		wait = min(2*wait, time.Minute)
		id += 10
		s.step(ClientJoined{id, wire.RoleWorker})
	}
	var k *classRec
	for _, x := range s.c.classes.byID {
		if x.ready.n > 0 {
			k = x
		}
	}
	if !k.opts.Isolate || len(k.opts.Resources) != 2 || k.opts.Resources[1].Amount != 512<<20 {
		t.Errorf("it asks for %+v", k.opts)
	}
	if s.c.stats.Retried != 0 {
		t.Error("it is charged")
	}
	s.step(FromSched{sched.Infeasible{Key: sched.ClassKey{Job: 1, Class: k.id}, Err: errs.New(errs.CodeUnschedulable, "memory: 512 MiB asked, 256 held")}})
	s.wantError(spec.ID.Return(0), errs.CodeOutOfMemory)
}

func TestInfeasible(t *testing.T) {
	s := newScript(t, Config{})
	a := s.submit(simple)
	k := s.c.classOf(wire.TaskNormal, simple)
	s.step(FromSched{sched.Infeasible{Key: sched.ClassKey{Job: 1, Class: k.id}, Err: errs.New(errs.CodeUnschedulable, "no GPU")}})
	s.wantError(a.ID.Return(0), errs.CodeUnschedulable)
	b := s.submit(simple)
	s.wantError(b.ID.Return(0), errs.CodeUnschedulable)
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
	if s.c.leases[l] != nil {
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
	s.step(FromSched{sched.Resumed{Lease: l}})
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

func stored() wire.Result { return wire.Result{Kind: wire.ResultStored, Size: 8} }

// makeStored runs a task whose one return lies in the store.
func (s *script) makeStored(opts *wire.TaskOptions, args ...wire.Arg) *wire.TaskSpec {
	s.t.Helper()
	spec := s.submit(opts, args...)
	l := s.grant(worker)
	if len(args) > 0 {
		s.pinned(spec)
	}
	x := s.executed(worker)
	s.from(worker, &wire.Seal{ID: spec.ID.Return(0), Attempt: x.Attempt, Size: 8},
		&wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{stored()}, Times: wire.Times{Started: 1, Ended: 9e6}})
	s.step(FromSched{sched.Reclaim{Lease: l}})
	return spec
}

// pinned answers the PinArgs of the last step.
func (s *script) pinned(spec *wire.TaskSpec) objectstore.PinArgs {
	s.t.Helper()
	p := told[objectstore.PinArgs](s)
	if len(p) != 1 || p[0].Task != spec.ID {
		s.t.Fatalf("the store is asked %+v", p)
	}
	a := objectstore.ArgsPinned{Task: p[0].Task, Attempt: p[0].Attempt}
	for i, id := range p[0].IDs {
		a.Values = append(a.Values, objectstore.PinnedValue{ID: id, Extent: wire.Extent{Off: uint64(64 * (i + 1)), Size: 8}})
	}
	s.step(FromStore{a})
	return p[0]
}

func TestStoredArgumentsArePinnedForTheWorker(t *testing.T) {
	s := newScript(t, Config{})
	a := s.makeStored(simple)
	ref := wire.Arg{Ref: a.ID.Return(0)}
	b := s.submit(simple, ref, ref)
	l := s.grant(worker)
	if s.state(b) != task.PendingFetch {
		t.Fatalf("it is %v", s.state(b))
	}
	p := told[objectstore.PinArgs](s)
	s.step(FromStore{objectstore.ArgsWait{Task: b.ID, Attempt: 1}})
	if s.state(b) != task.PendingStore {
		t.Errorf("while the store waits it is %v", s.state(b))
	}
	s.step(FromStore{objectstore.ArgsPinned{Task: b.ID, Attempt: 1, Values: []objectstore.PinnedValue{{ID: a.ID.Return(0), Extent: wire.Extent{Off: 64, Size: 8}}}}})
	x := s.executed(worker)
	if len(p[0].IDs) != 1 || p[0].Worker != worker || len(x.Args) != 2 || x.Args[1].Index != 1 || x.Args[1].Extent.Off != 64 || x.Args[1].Result.Kind != wire.ResultStored {
		t.Fatalf("pinned %+v, pushed %+v", p, x.Args)
	}
	s.done(worker, l, x, inline("v"))
	if u := told[objectstore.UnpinArgs](s); len(u) != 1 || u[0].Attempt != 1 {
		t.Errorf("the pins stay: %+v", u)
	}
}

// A lost result is made again, with what it needs, under the same names.
func TestLostResultIsMadeAgainWithItsArguments(t *testing.T) {
	s := newScript(t, Config{})
	a := s.makeStored(simple)
	b := s.makeStored(simple, wire.Arg{Ref: a.ID.Return(0)})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{a.ID.Return(0)}})
	if f := told[objectstore.Free](s); len(f) != 1 {
		t.Fatalf("nothing holds the argument's value, and it stays: %+v", f)
	}
	s.from(driver, &wire.Get{ID: b.ID.Return(0), Fetch: true})
	if p := told[objectstore.PinForGet](s); len(p) != 1 {
		t.Fatalf("the store is asked %+v", p)
	}
	s.step(FromStore{objectstore.Lost{ID: b.ID.Return(0), Client: driver}})
	if s.state(a) != task.PendingNode || s.state(b) != task.PendingArgs {
		t.Fatalf("the argument's task is %v, the result's %v", s.state(a), s.state(b))
	}
	l := s.grant(worker)
	x := s.executed(worker)
	if x.Spec.ID != a.ID || x.Attempt != 2 {
		t.Fatalf("runs %+v", x)
	}
	s.from(worker, &wire.Seal{ID: a.ID.Return(0), Attempt: 2, Size: 8}, &wire.Done{Task: a.ID, Attempt: 2, Lease: l, Results: []wire.Result{stored()}})
	s.pinned(b)
	x = s.executed(worker)
	s.from(worker, &wire.Seal{ID: b.ID.Return(0), Attempt: 2, Size: 8}, &wire.Done{Task: b.ID, Attempt: 2, Lease: l, Results: []wire.Result{stored()}})
	if p := told[objectstore.PinForGet](s); len(p) != 1 || p[0].Client != driver {
		t.Errorf("the get that found it lost is not taken up: %+v", p)
	}
	if s.c.stats.Reconstructed != 2 {
		t.Errorf("%d tasks were run for it", s.c.stats.Reconstructed)
	}
}

func TestWhatCannotBeMadeAgainSaysWhy(t *testing.T) {
	s := newScript(t, Config{})
	put := s.root.Put(1)
	s.from(driver, &wire.Seal{ID: put, Size: 8})
	s.step(FromStore{objectstore.Lost{ID: put, Client: driver, Err: errs.New(errs.CodeObjectLost, "checksum")}})
	s.wantError(put, errs.CodeObjectLost)

	once := s.makeStored(&wire.TaskOptions{Func: "once", NumReturns: 1})
	s.step(FromStore{objectstore.Lost{ID: once.ID.Return(0)}})
	s.wantError(once.ID.Return(0), errs.CodeReconstructionFailed)

	small := newScript(t, Config{MaxLineageBytes: 1})
	a := small.makeStored(simple)
	small.step(FromStore{objectstore.Lost{ID: a.ID.Return(0)}})
	small.wantError(a.ID.Return(0), errs.CodeReconstructionFailed)
	if small.c.stats.LineageEvicted != 1 {
		t.Error("its lineage is kept beyond the limit")
	}
}

func TestOneAttemptIsAccepted(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	x := s.executed(worker)
	s.from(worker, &wire.Seal{ID: spec.ID.Return(0), Attempt: x.Attempt, Size: 8})
	if len(told[objectstore.SealObject](s)) != 1 {
		t.Fatal("an early seal is not passed on")
	}
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	l = s.grant(worker2)
	s.from(worker2, &wire.Seal{ID: spec.ID.Return(0), Attempt: 2, Size: 8})
	if d := told[objectstore.DropAttempt](s); len(d) != 1 || d[0].Attempt != 2 {
		t.Errorf("the second attempt's extent stays: %+v", d)
	}
	s.done(worker2, l, s.attempt(spec), stored())
	if s.state(spec) != task.Finished {
		t.Errorf("it is %v", s.state(spec))
	}
}

func (s *script) attempt(spec *wire.TaskSpec) wire.ExecTask {
	return wire.ExecTask{Spec: spec, Attempt: s.c.tasks[spec.ID].start}
}

func TestWrongNumberOfResults(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "two", NumReturns: 2})
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("v"))
	s.wantError(spec.ID.Return(1), errs.CodeReturnMismatch)
}

// A value that is packed into the store leaves memory, and comes back from the log if the
// store loses it.
func TestPackedValueIsReadBackFromTheLog(t *testing.T) {
	s := newScript(t, Config{InlineBudget: 1500})
	put := s.root.Put(1)
	data := make([]byte, 2000)
	data[7] = 7
	s.from(driver, &wire.PutValue{ID: put, Value: wire.Value{Data: data}})
	if p := told[objectstore.Pack](s); len(p) != 1 || len(p[0].Values) != 1 {
		t.Fatalf("over the budget: %+v", p)
	}
	s.step(FromStore{objectstore.Packed{ID: put, Size: 2000}})
	if s.c.budget.inline != 0 {
		t.Errorf("%d bytes are still in memory", s.c.budget.inline)
	}
	s.step(FromStore{objectstore.Lost{ID: put, Client: driver}})
	var ask Effect
	for _, e := range s.out {
		if e.Kind == Fetch {
			ask = e
		}
	}
	s.step(Fetched{Token: ask.Token, Record: s.logs[uint64(ask.N)]})
	r := sent[*wire.Resolved](s, driver)
	if len(r) != 1 || r[0].Result.Kind != wire.ResultInline || r[0].Result.Value.Data[7] != 7 {
		t.Errorf("the get is answered with %+v", r)
	}
}

// Specs at the end of a long queue leave memory and come back when their turn comes.
func TestQueuedSpecsArePagedOut(t *testing.T) {
	s := newScript(t, Config{InlineBudget: 1 << 20})
	var msgs []wire.Msg
	want := make(map[ids.TaskID]byte)
	for i := range 1500 {
		spec := s.spec(simple, wire.Arg{Value: wire.Value{Data: append(make([]byte, 999), byte(i))}})
		want[spec.ID] = byte(i)
		msgs = append(msgs, &wire.Submit{Spec: spec})
	}
	s.from(driver, msgs...)
	s.submit(simple) // the log has told the positions only now
	if n := s.c.stats.PagedOut; n < 300 || s.c.budget.specs > 1800<<10 {
		t.Fatalf("%d specs are paged out, %d bytes stay", n, s.c.budget.specs)
	}
	l := s.grant(worker)
	k := s.c.classOf(wire.TaskNormal, simple)
	k.known, k.runNs = true, 1
	ran := 0
	var asked []Effect
	for range 3000 {
		for _, e := range s.out {
			if e.Kind == Fetch {
				asked = append(asked, e)
			}
		}
		var dones []wire.Msg
		for _, m := range sent[*wire.Exec](s, worker) {
			for _, x := range m.Tasks {
				if b, ok := want[x.Spec.ID]; ok && (len(x.Spec.Args) != 1 || x.Spec.Args[0].Value.Data[999] != b || x.Spec.Opts.Func != "simple") {
					t.Fatalf("task %v comes back as %+v", x.Spec.ID, x.Spec)
				}
				ran++
				dones = append(dones, &wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{inline("")}, Times: wire.Times{Started: 1, Ended: 2}})
			}
		}
		switch {
		case len(dones) > 0:
			s.from(worker, dones...)
		case len(asked) > 0:
			e := asked[0]
			asked = asked[1:]
			s.step(Fetched{Token: e.Token, Record: s.logs[uint64(e.N)]})
		}
	}
	if ran != 1501 {
		t.Errorf("%d of 1501 tasks ran", ran)
	}
}
