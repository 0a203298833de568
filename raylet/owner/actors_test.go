package owner

import (
	"errors"
	"slices"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

var method = &wire.TaskOptions{Func: "counter.Inc", NumReturns: 1}

// spawn creates an actor and brings it up.
func (s *script) spawn(opts *wire.TaskOptions, w ids.ClientID) (*wire.TaskSpec, ids.LeaseID) {
	s.t.Helper()
	spec := s.create(opts)
	l := s.grant(w)
	s.done(w, l, s.executed(w), inline(""))
	return spec, l
}

func (s *script) create(opts *wire.TaskOptions) *wire.TaskSpec {
	s.t.Helper()
	spec := s.spec(opts)
	spec.Kind, spec.Actor = wire.TaskActorCreate, ids.ActorID(spec.ID)
	s.from(driver, &wire.Submit{Spec: spec})
	return spec
}

func (s *script) callSpec(a *wire.TaskSpec, seq uint64, args ...wire.Arg) *wire.TaskSpec {
	spec := s.spec(method, args...)
	spec.Kind, spec.Actor, spec.Seq = wire.TaskActorCall, ids.ActorID(a.ID), seq
	return spec
}

func (s *script) call(a *wire.TaskSpec, seq uint64, args ...wire.Arg) *wire.TaskSpec {
	s.t.Helper()
	spec := s.callSpec(a, seq, args...)
	s.from(driver, &wire.Submit{Spec: spec})
	return spec
}

// pushed lists the tasks pushed to a client in the last step.
func (s *script) pushed(cl ids.ClientID) (out []ids.TaskID) {
	for _, m := range sent[*wire.Exec](s, cl) {
		for _, x := range m.Tasks {
			out = append(out, x.Spec.ID)
		}
	}
	return out
}

var counter = &wire.TaskOptions{Func: "counter", NumReturns: 1, MaxPendingCalls: -1}

func TestLifeOfAnActor(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.create(counter)
	early := s.call(spec, 1)
	if len(s.pushed(worker)) != 0 {
		t.Fatal("a call is pushed before the actor is up")
	}
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline(""))
	if up := told[sched.ActorUp](s); len(up) != 1 || up[0].Lease != l {
		t.Fatalf("the scheduler is told %+v", up)
	}
	if got := s.pushed(worker); len(got) != 1 || got[0] != early.ID {
		t.Fatalf("pushed %v", got)
	}
	r := s.result(spec.ID.Return(0))
	if id, ok := ids.TaskOf(r.Result.Value.Data); !ok || id != spec.ID {
		t.Errorf("the handle's value is %v", r.Result.Value.Data)
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
	if len(sent[*wire.StopActor](s, worker)) != 0 {
		t.Error("it ends under a call that has not")
	}
	s.done(worker, l, s.attempt(early), inline("1"))
	s.closed(worker, spec)
	if len(told[sched.Return](s)) != 1 {
		t.Error("it lives on without a handle")
	}
	if s.c.actors.byID[ids.ActorID(spec.ID)] != nil {
		t.Error("its record stays")
	}
}

// Calls of one caller keep their order when one waits for its argument; those of another
// caller do not wait for it.
func TestCallsOfACallerKeepTheirOrder(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(counter, worker)
	arg := s.submit(simple)
	first := s.call(a, 1, wire.Arg{Ref: arg.ID.Return(0)})
	second := s.call(a, 2)
	if got := s.pushed(worker); len(got) != 0 {
		t.Fatalf("pushed %v", got)
	}
	other := s.callSpec(a, 1)
	other.Parent = ids.Derive(s.root, 777)
	s.from(driver, &wire.Submit{Spec: other})
	if got := s.pushed(worker); len(got) != 1 || got[0] != other.ID {
		t.Fatalf("the other caller: pushed %v", got)
	}
	la := s.grant(worker2)
	s.done(worker2, la, s.executed(worker2), inline("v"))
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{first.ID, second.ID}) {
		t.Fatalf("pushed %v, want %v and %v", got, first.ID, second.ID)
	}
	_ = l
}

func TestACallThatNeverCameIsNotWaitedForLong(t *testing.T) {
	s := newScript(t, Config{})
	a, _ := s.spawn(counter, worker)
	third := s.call(a, 3)
	if got := s.pushed(worker); len(got) != 0 {
		t.Fatalf("call 3 is pushed first: %v", got)
	}
	s.pass(time.Second)
	if got := s.pushed(worker); len(got) != 1 || got[0] != third.ID {
		t.Errorf("after a second: pushed %v", got)
	}
}

func TestPendingCallsLimit(t *testing.T) {
	s := newScript(t, Config{})
	a := s.create(&wire.TaskOptions{Func: "small", NumReturns: 1, MaxPendingCalls: 2})
	s.call(a, 1)
	s.call(a, 2)
	s.wantError(s.call(a, 3).ID.Return(0), errs.CodePendingCallsLimit)
}

// As many calls are pushed as an actor may run at once, however small the window: the last may be what the others wait for.
func TestTheWindowIsNoSmallerThanAnActorsConcurrency(t *testing.T) {
	s := newScript(t, Config{ActorWindow: 2})
	opts := *counter
	opts.MaxConcurrency, opts.Groups = 3, []wire.ConcurrencyGroup{{Name: "io", Max: 2}}
	for want, o := range map[int]*wire.TaskOptions{5: &opts, 2: counter} {
		a, _ := s.spawn(o, worker)
		pushed := 0
		for seq := range uint64(8) {
			s.call(a, seq+1)
			pushed += len(s.pushed(worker))
		}
		if pushed != want {
			t.Errorf("%d calls are pushed, want %d", pushed, want)
		}
	}
}

// The first calls of an actor are shown as running, as many as it runs at once, by every way to look at them.
func TestCallsThatRunAreShownAsRunning(t *testing.T) {
	s := newScript(t, Config{})
	opts := *counter
	opts.MaxConcurrency, opts.Groups = 2, []wire.ConcurrencyGroup{{Name: "io", Max: 1}}
	a, l := s.spawn(&opts, worker)
	var calls []ids.TaskID
	xs := make(map[ids.TaskID]wire.ExecTask)
	for i, group := range []string{"", "io", "", "io", ""} {
		x := s.callSpec(a, uint64(i)+1)
		o := *x.Opts
		o.Group = group
		x.Opts = &o
		s.from(driver, &wire.Submit{Spec: x})
		calls, xs[x.ID] = append(calls, x.ID), s.executed(worker)
	}
	running := func(want ...ids.TaskID) {
		t.Helper()
		var listed, explained []ids.TaskID
		scan := s.c.ScanTasks(100)
		defer scan.Stop()
		scan.NextTasks(func(_ *ids.TaskID, _ int64, st task.State) bool { return st == task.Running }, func(v TaskView) {
			if v.State == task.Running {
				listed = append(listed, v.ID)
			}
		})
		for _, id := range calls {
			if w, ok := s.c.WhyTask(id); ok && w.State == task.Running {
				explained = append(explained, id)
			}
		}
		counted := map[task.State]int{}
		s.c.States(func(st task.State, n int) { counted[st] = n })
		slices.SortFunc(listed, func(a, b ids.TaskID) int { return slices.Index(calls, a) - slices.Index(calls, b) })
		if !slices.Equal(listed, want) || !slices.Equal(explained, want) || counted[task.Running] != len(want) {
			t.Errorf("listed as running are %v, explained %v, counted %v; want %v", listed, explained, counted, want)
		}
	}
	running(calls[0], calls[1], calls[2])
	s.done(worker, l, xs[calls[2]], inline("v"))
	running(calls[0], calls[1], calls[4])
	s.done(worker, l, xs[calls[1]], inline("v"))
	running(calls[0], calls[3], calls[4])
	for _, i := range []int{0, 3, 4} {
		s.done(worker, l, xs[calls[i]], inline("v"))
	}
	running()
}

func TestActorWithoutRestartsDies(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(counter, worker)
	running := s.call(a, 1)
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	s.wantError(running.ID.Return(0), errs.CodeActorDied)
	s.wantError(s.call(a, 2).ID.Return(0), errs.CodeActorDied)
}

// A restarting actor answers that it is unavailable, unless its calls may be tried again:
// then they are, in order.
func TestActorRestarts(t *testing.T) {
	for _, retries := range []int32{0, 1} {
		s := newScript(t, Config{})
		a, l := s.spawn(&wire.TaskOptions{Func: "phoenix", NumReturns: 1, MaxRestarts: 1, MaxTaskRetries: retries}, worker)
		first, second := s.call(a, 1), s.call(a, 2)
		s.kill(worker, errs.CodeWorkerCrashed, 0, l)
		third := s.call(a, 3)
		l = s.grant(worker2)
		if x := s.executed(worker2); x.Spec != a || x.Attempt != 2 {
			t.Fatalf("it is created again by %+v", x)
		}
		s.done(worker2, l, s.attempt(a), inline(""))
		got := s.pushed(worker2)
		if retries == 0 {
			if len(got) != 0 {
				t.Errorf("calls that may not be tried again are: %v", got)
			}
			for _, c := range []*wire.TaskSpec{first, second, third} {
				s.wantError(c.ID.Return(0), errs.CodeActorUnavailable)
			}
			if again := s.call(a, 4); !slices.Equal(s.pushed(worker2), []ids.TaskID{again.ID}) {
				t.Error("a call after the restart is not pushed")
			}
			continue
		}
		if !slices.Equal(got, []ids.TaskID{first.ID, second.ID, third.ID}) {
			t.Fatalf("pushed %v", got)
		}
		s.kill(worker2, errs.CodeWorkerCrashed, 0, l)
		s.wantError(first.ID.Return(0), errs.CodeActorDied) // no restart is left
	}
}

// An actor that ran nothing did not bring its process down: its restart is not charged.
func TestIdleActorIsNotCharged(t *testing.T) {
	s := newScript(t, Config{})
	opts := &wire.TaskOptions{Func: "pair", NumReturns: 1, MaxRestarts: 1, MaxTaskRetries: 1}
	idle, l1 := s.spawn(opts, worker)
	busy, l2 := s.spawn(opts, worker)
	s.call(busy, 1)
	s.kill(worker, errs.CodeWorkerCrashed, 0, l1, l2)
	if n := s.c.actors.byID[ids.ActorID(idle.ID)].restarts; n != 0 {
		t.Errorf("the idle one is charged %d", n)
	}
	if n := s.c.actors.byID[ids.ActorID(busy.ID)].restarts; n != 1 {
		t.Errorf("the busy one is charged %d", n)
	}
}

func TestKillActor(t *testing.T) {
	s := newScript(t, Config{})
	a, _ := s.spawn(&wire.TaskOptions{Func: "mortal", NumReturns: 1, MaxRestarts: 3}, worker)
	running := s.call(a, 1)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Restart: true})
	if len(sent[*wire.StopActor](s, worker)) != 1 || len(told[sched.Return](s)) != 1 {
		t.Fatal("the instance is not ended")
	}
	s.wantError(running.ID.Return(0), errs.CodeActorUnavailable)
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline(""))
	pending := s.call(a, 2)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID)})
	s.wantError(pending.ID.Return(0), errs.CodeActorDied)
	s.done(worker, l, s.attempt(pending), inline("late")) // is nobody's any more
}

func TestConstructorFails(t *testing.T) {
	s := newScript(t, Config{})
	a := s.create(counter)
	call := s.call(a, 1)
	l := s.grant(worker)
	s.failed(worker, l, s.executed(worker), errs.New(errs.CodeTaskFailed, "no licence"))
	s.wantError(a.ID.Return(0), errs.CodeTaskFailed)
	r := s.result(call.ID.Return(0)).Result.Err
	if r.Code != errs.CodeActorDied || len(r.Cause) != 1 || r.Cause[0].Msg != "no licence" {
		t.Errorf("its call fails with %+v", r)
	}
}

func named(get bool) *wire.TaskOptions {
	return &wire.TaskOptions{Func: "named", NumReturns: 1, ActorName: "hits", Namespace: "prod", GetIfExists: get}
}

func TestNamesAreClaimedBeforeTheCreationRuns(t *testing.T) {
	s := newScript(t, Config{})
	a := s.create(named(false))
	if c := told[ClaimName](s); len(c) != 1 || c[0].Actor != ids.ActorID(a.ID) || len(told[sched.Want](s)) != 0 {
		t.Fatalf("the directory is asked %+v", c)
	}
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(a.ID)}})
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline(""))
	if p := told[PublishActor](s); len(p) != 1 || p[0].At.State != actor.Alive || p[0].At.Worker != worker || p[0].At.Lease != l {
		t.Errorf("the directory is told %+v", p)
	}
	b := s.create(named(false))
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(b.ID), Existing: ids.ActorID(a.ID)}})
	s.wantError(b.ID.Return(0), errs.CodeNameTaken)

	c := s.create(named(true))
	early := s.call(c, 1)
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(c.ID), Existing: ids.ActorID(a.ID)}})
	if got := s.pushed(worker); len(got) != 1 || got[0] != early.ID {
		t.Errorf("a call to the one that was there: %v", got)
	}
	r := s.result(c.ID.Return(0))
	if id, ok := ids.TaskOf(r.Result.Value.Data); !ok || id != a.ID {
		t.Errorf("the handle's value is %v", r.Result.Value.Data)
	}
	s.done(worker, l, s.attempt(early), inline(""))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{a.ID.Return(0)}})
	if len(sent[*wire.StopActor](s, worker)) != 0 {
		t.Error("it ends though another handle names it")
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{c.ID.Return(0)}})
	if len(told[ReleaseName](s)) != 0 {
		t.Error("its name is free before it is closed")
	}
	s.closed(worker, a)
	if r := told[ReleaseName](s); len(r) != 1 {
		t.Errorf("at the end its name: %+v", r)
	}
}

// An actor of another job is located, called where it is, and followed when it moves.
func TestActorOfAnotherJob(t *testing.T) {
	s := newScript(t, Config{})
	far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
	id := ids.ActorID(far.ID)
	first := s.call(far, 1)
	if l := told[LocateActor](s); len(l) != 1 || l[0].Actor != id {
		t.Fatalf("the directory is asked %+v", l)
	}
	at := ActorAt{Actor: id, State: actor.Alive, Worker: worker, Lease: 900, Opts: &wire.TaskOptions{MaxTaskRetries: 1}}
	s.step(FromDirectory{at})
	m := sent[*wire.Exec](s, worker)
	if len(m) != 1 || m[0].Lease != 900 || m[0].Tasks[0].Spec != first {
		t.Fatalf("pushed %+v", m)
	}
	s.step(ClientGone{Client: worker})
	at.Worker, at.Lease = worker2, 901
	s.step(FromDirectory{at})
	if got := s.pushed(worker2); len(got) != 1 || got[0] != first.ID {
		t.Fatalf("where it is now: pushed %v", got)
	}
	s.done(worker2, 901, s.attempt(first), inline("1"))
	second := s.call(far, 2)
	s.step(FromDirectory{ActorAt{Actor: id, State: actor.Dead}})
	s.wantError(second.ID.Return(0), errs.CodeActorDied)
	if len(told[sched.Return](s)) != 0 {
		t.Error("another job's lease is returned")
	}
}

// Another job's actor is ended by its own owner, whether it was ever called from here or not;
// one of this job that is not known is nobody's.
func TestActorOfAnotherJobIsKilledByItsOwner(t *testing.T) {
	s := newScript(t, Config{})
	far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
	id := ids.ActorID(far.ID)
	asks := func(restart bool) {
		t.Helper()
		s.from(driver, &wire.KillActor{Actor: id, Restart: restart})
		if k := told[KillActor](s); len(k) != 1 || k[0] != (KillActor{Actor: id, Restart: restart}) {
			t.Fatalf("the directory is asked %+v", k)
		}
	}
	asks(false) // found by its name, never called
	call := s.call(far, 1)
	asks(true)
	s.step(FromDirectory{ActorAt{Actor: id, State: actor.Dead}})
	s.wantError(call.ID.Return(0), errs.CodeActorDied)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(ids.Derive(s.root, 77))})
	if k := told[KillActor](s); len(k) != 0 {
		t.Errorf("the directory is asked %+v", k)
	}

	own := newScript(t, Config{})
	spec, _ := own.spawn(counter, worker)
	own.step(FromDirectory{KillRequested{Actor: ids.ActorID(spec.ID)}})
	if len(sent[*wire.StopActor](own, worker)) != 1 {
		t.Error("the owner does not do what another job asked")
	}
}

// Another job asks for an actor that the directory does not know: the one that is dead, was never
// there, or cannot be found is said to be; one that comes is not.
func TestWhoAsksForAnActorThatWillNotComeIsTold(t *testing.T) {
	s := newScript(t, Config{})
	asked := func(id ids.ActorID) []PublishActor {
		s.step(FromDirectory{LocateActor{Actor: id}})
		return told[PublishActor](s)
	}
	none := ids.ActorID(ids.Derive(s.root, 77))
	if at := asked(none); len(at) != 1 || at[0].At.Actor != none || at[0].At.State != actor.Dead {
		t.Errorf("one that was never there: %+v", at)
	}
	plain, _ := s.spawn(counter, worker)
	if at := asked(ids.ActorID(plain.ID)); len(at) != 1 || at[0].At.State != actor.Dead || !errors.Is(at[0].At.Err, errs.ErrInvalid) {
		t.Errorf("one without a name: %+v", at)
	}
	named := s.create(&wire.TaskOptions{Func: "named", NumReturns: 1, ActorName: "d", Detached: true})
	id := ids.ActorID(named.ID)
	if at := asked(id); len(at) != 0 {
		t.Errorf("one whose name is being claimed: %+v", at)
	}
	s.step(FromDirectory{NameClaimed{Actor: id}})
	if at := asked(id); len(at) != 0 {
		t.Errorf("one that is being created: %+v", at)
	}
	s.step(FromDirectory{KillRequested{Actor: id}})
	if at := asked(id); len(at) != 1 || at[0].At.State != actor.Dead {
		t.Errorf("one that was killed: %+v", at)
	}
}

func TestTheLastDriversExitEndsTheJob(t *testing.T) {
	s := newScript(t, Config{})
	mortal, _ := s.spawn(counter, worker)
	det := s.create(&wire.TaskOptions{Func: "detached", NumReturns: 1, ActorName: "d", Detached: true})
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(det.ID)}})
	l := s.grant(worker2)
	s.done(worker2, l, s.executed(worker2), inline(""))
	queued := s.submit(simple)
	s.from(driver, &wire.Seal{ID: s.root.Put(1), Size: 8})
	s.step(ClientGone{Client: driver})
	if len(sent[*wire.StopActor](s, worker)) != 1 || len(sent[*wire.StopActor](s, worker2)) != 0 {
		t.Error("the actors: only the detached one lives on")
	}
	if f := told[objectstore.Free](s); len(f) != 1 || f[0].IDs[0] != s.root.Put(1) {
		t.Errorf("its objects: %+v", f)
	}
	if s.c.tasks.task(queued.ID) != nil {
		t.Error("its tasks stay")
	}
	if s.ended() {
		t.Fatal("the job ends under its detached actor")
	}
	s.from(worker, &wire.ActorStopped{Actor: ids.ActorID(mortal.ID)})
	if s.ended() {
		t.Fatal("the job ends under its detached actor")
	}
	s.from(worker2, &wire.KillActor{Actor: ids.ActorID(det.ID)})
	if !s.ended() || len(told[objectstore.DropJob](s)) != 1 || len(told[sched.DropJob](s)) != 1 {
		t.Error("the job does not end with its detached actor")
	}
	put := s.root.Put(1)
	s.step(FromStore{Msg: objectstore.Inventory{Job: 1, Left: []objectstore.Left{{ID: put, Client: driver}}}})
	if len(s.out) != 0 {
		t.Errorf("after DropJob the store is told %+v", s.out)
	}
}

func (s *script) ended() bool {
	return slices.ContainsFunc(s.out, func(e Effect) bool { return e.Kind == JobEnded })
}

// A reader that asks for items gets them as they come, the producer hears how far it is,
// and a run that differs in length is an error.
func TestStream(t *testing.T) {
	s := newScript(t, Config{})
	opts := &wire.TaskOptions{Func: "rows", NumReturns: wire.Streaming, MaxRetries: 3, Backpressure: 2}
	spec := s.submit(opts)
	s.from(driver, &wire.StreamNext{Task: spec.ID})
	l := s.grant(worker)
	item := func(attempt, i uint32, v string) *wire.StreamItem {
		return &wire.StreamItem{Task: spec.ID, Attempt: attempt, Index: i, Result: inline(v)}
	}
	s.from(worker, item(1, 0, "a"))
	if m := sent[*wire.StreamItem](s, driver); len(m) != 1 || string(m[0].Result.Value.Data) != "a" {
		t.Fatalf("the reader gets %+v", m)
	}
	if a := sent[*wire.StreamAck](s, worker); len(a) != 1 || a[0].Consumed != 1 {
		t.Errorf("the producer hears %+v", a)
	}
	s.from(driver, &wire.AddRef{ID: spec.ID.Return(0)})
	s.from(worker, item(1, 1, "b"))
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	l = s.grant(worker2)
	s.from(worker2, item(2, 0, "other"), item(2, 1, "b"), item(2, 2, "c"))
	s.from(driver, &wire.StreamNext{Task: spec.ID, Index: 1}, &wire.StreamNext{Task: spec.ID, Index: 2}, &wire.StreamNext{Task: spec.ID, Index: 3})
	if m := sent[*wire.StreamItem](s, driver); len(m) != 2 || string(m[1].Result.Value.Data) != "c" {
		t.Fatalf("after the retry the reader gets %+v", m)
	}
	s.from(worker2, &wire.Done{Task: spec.ID, Attempt: 2, Lease: l, Items: 3})
	if m := sent[*wire.StreamItem](s, driver); len(m) != 1 || m[0].Result.Kind != wire.ResultNone {
		t.Fatalf("at the end the reader gets %+v", m)
	}
	if r := s.result(spec.ID.Return(0)); string(r.Result.Value.Data) != "a" {
		t.Errorf("the first item is %q: the retry's is not accepted", r.Result.Value.Data)
	}
	s.from(driver, &wire.AddRef{ID: spec.ID.Return(1)}, &wire.AddRef{ID: spec.ID.Return(2)})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0), spec.ID.Return(1), spec.ID.Return(2)}})
	if s.c.tasks.n != 0 {
		t.Error("the stream's record stays")
	}

	short := s.submit(opts)
	s.from(driver, &wire.StreamNext{Task: short.ID})
	spec = short
	s.from(worker2, item(1, 0, "a"), item(1, 1, "b"))
	s.from(driver, &wire.AddRef{ID: short.ID.Return(0)})
	s.kill(worker2, errs.CodeWorkerCrashed, 0, l)
	s.step(ClientJoined{Client: 40, Role: wire.RoleWorker})
	l = s.grant(40)
	s.from(40, item(2, 0, "a"), &wire.Done{Task: short.ID, Attempt: 2, Lease: l, Items: 1})
	s.from(driver, &wire.StreamNext{Task: short.ID, Index: 2})
	if m := sent[*wire.StreamItem](s, driver); len(m) != 1 || m[0].Result.Err == nil || m[0].Result.Err.Code != errs.CodeReturnMismatch {
		t.Errorf("a shorter retry: %+v", m)
	}
}

func TestAStreamThatNobodyReadsEnds(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "rows", NumReturns: wire.Streaming, Backpressure: 1})
	l := s.grant(worker)
	s.from(worker, &wire.StreamItem{Task: spec.ID, Attempt: 1, Result: inline("a")})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Stream()}})
	if len(sent[*wire.CancelTask](s, worker)) != 1 {
		t.Error("the producer is not told")
	}
	s.failed(worker, l, s.attempt(spec), errs.New(errs.CodeCancelled, "its context ended"))
	if s.c.tasks.n != 0 {
		t.Error("the record stays")
	}
}

// A call whose stored arguments are pinned may wait for the one behind it.
func TestCallsGoOnBehindOneWhoseArgumentsCame(t *testing.T) {
	s := newScript(t, Config{})
	put := s.root.Put(1)
	s.from(driver, &wire.Seal{ID: put, Size: 8})
	a, _ := s.spawn(&wire.TaskOptions{Func: "A", MaxConcurrency: 10}, worker)
	first := s.call(a, 0, wire.Arg{Ref: put})
	asked := s.out
	second := s.call(a, 1)
	if p := s.pushed(worker); len(p) != 0 {
		t.Errorf("%v overtakes the call before it", p)
	}
	s.out = asked
	s.pinned(first)
	if p := s.pushed(worker); !slices.Equal(p, []ids.TaskID{first.ID, second.ID}) {
		t.Errorf("pushed are %v, want %v and %v", p, first.ID, second.ID)
	}
}

// What ended says how long it took since it came, and an actor's restarts are marked, each once.
func TestTransitionsOfAnActor(t *testing.T) {
	s := newScript(t, Config{Transitions: true})
	a, l := s.spawn(&wire.TaskOptions{Func: "counter", NumReturns: 1, MaxRestarts: 2, MaxPendingCalls: -1}, worker)
	c := s.call(a, 1)
	x := s.executed(worker)
	s.pass(3 * time.Second)
	s.done(worker, l, x, inline("1"))
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	var took []time.Duration
	restarts := 0
	for _, ch := range s.seen {
		if ch.Restart {
			if restarts++; ch.Spec != a {
				t.Errorf("a restart of %v", ch.Spec)
			}
		}
		if ch.Spec == c && ch.State.Terminal() {
			took = append(took, ch.Took)
		}
	}
	if len(took) != 1 || took[0] < 3*time.Second || took[0] > 4*time.Second {
		t.Errorf("the call took %v", took)
	}
	if restarts != 1 {
		t.Errorf("%d restarts are marked", restarts)
	}
}
