package owner

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// boom is what a worker reports of a call that panicked, and unbroken what it reports of the instance's other calls.
func boom() *errs.Error {
	return &errs.Error{Code: errs.CodeTaskFailed, Name: "counter.Inc", Msg: "counter.Inc: boom", Stack: "at boom", Cause: []*errs.Error{{Code: errs.CodePanic, Msg: "boom"}}}
}

func gone() *errs.Error {
	return &errs.Error{Code: errs.CodeActorUnavailable, Msg: "its instance has ended", Cause: []*errs.Error{{Code: errs.CodePanic}}}
}

// panics has a worker say that a call has panicked, in the order that workers say it.
func (s *script) panics(w ids.ClientID, a *wire.TaskSpec, l ids.LeaseID, culprit wire.ExecTask, beside, unbegun []wire.ExecTask) {
	s.t.Helper()
	msgs := []wire.Msg{&wire.Done{Task: culprit.Spec.ID, Attempt: culprit.Attempt, Lease: l, Err: boom(), Broke: true, Times: wire.Times{Started: 1, Ended: 2}}}
	for _, x := range beside {
		msgs = append(msgs, &wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: l, Err: gone(), StillRuns: true, Times: wire.Times{Started: 1, Ended: 2}})
	}
	for _, x := range unbegun {
		msgs = append(msgs, &wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: l, Err: gone(), Times: wire.Times{Ended: 2}})
	}
	s.from(w, append(msgs, &wire.ActorStopped{Actor: ids.ActorID(a.ID), Lease: l, Err: boom()})...)
}

// attempts are the tasks as they were pushed last.
func (s *script) attempts(specs ...*wire.TaskSpec) (out []wire.ExecTask) {
	for _, spec := range specs {
		out = append(out, s.attempt(spec))
	}
	return out
}

// A panic costs a restart, as the death of the actor's process would, and its process lives on. Of the calls those fail that had begun; the
// others wait for the next instance, in order, and so does what is called meanwhile.
func TestAPanicRestartsItsActor(t *testing.T) {
	s := newScript(t, Config{ActorWindow: 4})
	a, l := s.spawn(mortal(2), worker)
	culprit, beside, waits, onItsWay, queued := s.call(a, 1), s.call(a, 2), s.call(a, 3), s.call(a, 4), s.call(a, 5)
	s.watch(a)
	s.panics(worker, a, l, s.attempt(culprit), s.attempts(beside), s.attempts(waits))
	s.charges(a, actor.Restarting, 1, 0)
	if ret := told[sched.Return](s); len(ret) != 1 || ret[0].Lease != l {
		t.Errorf("the scheduler is told %+v", ret)
	}
	if n := s.news(); len(n) != 1 || n[0].State != wire.ActorRestarting || !strings.Contains(n[0].Err.Error(), "boom") {
		t.Errorf("who watches it is told %+v", n)
	}
	if s.c.stats.WorkersLost != 0 {
		t.Error("its worker counts as lost")
	}
	if r := s.result(culprit.ID.Return(0)); !errors.Is(r.Result.Err, errs.ErrPanic) || r.Result.Err.Stack == "" || errors.Is(r.Result.Err, errs.ErrActorUnavailable) {
		t.Errorf("the call that panicked gives %+v", r.Result)
	}
	if r := s.result(beside.ID.Return(0)); r.Result.Err == nil || r.Result.Err.Code != errs.CodeActorUnavailable || errors.Is(r.Result.Err, errs.ErrPanic) {
		t.Errorf("the call beside it gives %+v", r.Result)
	}
	late := s.call(a, 6)
	s.up(a, worker)
	want := []ids.TaskID{waits.ID, onItsWay.ID, queued.ID, late.ID}
	if got := s.pushed(worker); !slices.Equal(got, want) {
		t.Errorf("pushed to the next instance: %v, want %v", got, want)
	}
	s.from(worker, &wire.Done{Task: onItsWay.ID, Attempt: 1, Lease: l, Err: errs.New(errs.CodeActorUnavailable, "it is not here any more")}) // as it met nobody
	if s.state(onItsWay) != task.Submitted {
		t.Errorf("a late refusal leaves it %v", s.state(onItsWay))
	}
}

// A call that panicked, or ran beside one that did, is made again where MaxTaskRetries says so; those go before what had not begun.
func TestMaxTaskRetriesMakesCallsAgainAfterAPanic(t *testing.T) {
	s := newScript(t, Config{})
	opts := mortal(-1)
	opts.MaxTaskRetries = 1
	a, l := s.spawn(opts, worker)
	culprit, beside, waits := s.call(a, 1), s.call(a, 2), s.call(a, 3)
	s.panics(worker, a, l, s.attempt(culprit), s.attempts(beside), s.attempts(waits))
	l = s.up(a, worker)
	if got, want := s.pushed(worker), []ids.TaskID{culprit.ID, beside.ID, waits.ID}; !slices.Equal(got, want) {
		t.Fatalf("pushed to the next instance: %v, want %v", got, want)
	}
	if n := s.c.stats.Retried; n != 2 {
		t.Errorf("%d retries are charged, want those of the calls that had begun", n)
	}
	s.panics(worker, a, l, s.attempt(culprit), s.attempts(beside), s.attempts(waits))
	s.wantError(culprit.ID.Return(0), errs.CodeTaskFailed)
	s.wantError(beside.ID.Return(0), errs.CodeActorUnavailable)
	s.pass(s.c.cfg.RestartReset)
	s.up(a, worker)
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{waits.ID}) {
		t.Errorf("pushed after the second panic: %v", got)
	}
}

// Without a restart left, or where it is created to stop, a panic is the actor's end, and all its calls say why.
func TestAPanicMayBeTheEnd(t *testing.T) {
	stops, retries := mortal(5), mortal(0)
	stops.OnPanic, retries.MaxTaskRetries = wire.PanicStops, 5
	for name, opts := range map[string]*wire.TaskOptions{"no restart left": mortal(0), "no restart left, and retries": retries, "it stops": stops} {
		s := newScript(t, Config{})
		a, l := s.spawn(opts, worker)
		culprit, beside, waits := s.call(a, 1), s.call(a, 2), s.call(a, 3)
		s.panics(worker, a, l, s.attempt(culprit), s.attempts(beside), s.attempts(waits))
		s.charges(a, actor.Dead, 0, 0)
		if r := s.result(culprit.ID.Return(0)); !errors.Is(r.Result.Err, errs.ErrPanic) || errors.Is(r.Result.Err, errs.ErrActorDied) {
			t.Errorf("%s: the call that panicked gives %+v", name, r.Result)
		}
		for _, spec := range []*wire.TaskSpec{beside, waits, s.call(a, 4)} {
			r := s.result(spec.ID.Return(0))
			if e := r.Result.Err; e == nil || e.Code != errs.CodeActorDied || !errors.Is(e, errs.ErrPanic) || errors.Is(e, errs.ErrActorUnavailable) || !strings.Contains(e.Error(), "boom") {
				t.Errorf("%s: another call gives %+v", name, r.Result)
			}
		}
	}
}

// A constructor that fails is final, also that of a restart: what has waited for the next instance fails with its error.
func TestAPanicThatTheNextConstructorDoesNotSurvive(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(mortal(5), worker)
	culprit, waits := s.call(a, 1), s.call(a, 2)
	s.panics(worker, a, l, s.attempt(culprit), nil, s.attempts(waits))
	l = s.grant(worker)
	s.failed(worker, l, s.executed(worker), boom())
	s.charges(a, actor.Dead, 1, 0)
	if r := s.result(waits.ID.Return(0)); r.Result.Err == nil || r.Result.Err.Code != errs.CodeActorDied || !errors.Is(r.Result.Err, errs.ErrPanic) {
		t.Errorf("a call that waited gives %+v", r.Result)
	}
}

// The panic of an actor that escalates it ends the actor, whatever its restarts, and is a failure of its parent; other failures are not.
func TestAPanicMayEscalate(t *testing.T) {
	s := newScript(t, Config{})
	p, _ := s.spawn(mortal(1), worker)
	child := func() (*wire.TaskSpec, ids.LeaseID) {
		spec := s.spec(&wire.TaskOptions{Func: "child", NumReturns: 1, MaxPendingCalls: -1, MaxRestarts: 3, OnPanic: wire.PanicEscalates})
		spec.Kind, spec.Actor, spec.Parent = wire.TaskActorCreate, ids.ActorID(spec.ID), p.ID
		s.from(driver, &wire.Submit{Spec: spec})
		l := s.grant(worker2)
		s.done(worker2, l, s.executed(worker2), inline(""))
		return spec, l
	}
	c, l := child()
	hp, hc, hd := holds(2), holds(2), holds(2)
	hp.Actors, hc.Actors = []ids.ActorID{ids.ActorID(p.ID)}, []ids.ActorID{ids.ActorID(c.ID)}
	hd.Handles = []ids.ObjectID{p.ID.Return(0), c.ID.Return(0)}
	s.answered(2, map[ids.ClientID]*wire.Holdings{worker: hp, worker2: hc, driver: hd}) // the log has the parent
	call := s.call(c, 1)
	s.panics(worker2, c, l, s.attempt(call), nil, nil)
	s.charges(c, actor.Dead, 0, 0)
	s.charges(p, actor.Restarting, 1, 0)
	if e := s.c.actors.byID[ids.ActorID(p.ID)].cause; !errors.Is(e, errs.ErrPanic) || errors.Is(e, errs.ErrActorDied) {
		t.Errorf("the parent restarts because of %v", e)
	}
	waits := s.call(p, 1)
	s.up(p, worker)
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{waits.ID}) {
		t.Errorf("a call of the parent meanwhile: pushed %v", got)
	}
	c, l = child()
	for range 4 { // the death of its process is no panic
		s.kill(worker2, errs.CodeWorkerCrashed, 0, l)
		s.step(ClientJoined{Client: worker2, Role: wire.RoleWorker})
		s.pass(s.c.cfg.RestartReset)
		if s.c.actors.byID[ids.ActorID(c.ID)].state == actor.Restarting {
			l = s.up(c, worker2)
		}
	}
	s.charges(c, actor.Dead, 3, 0)
	s.charges(p, actor.Alive, 1, 0)
}

// What a worker says of an instance that was ended before changes nothing: a kill is charged once.
func TestAPanicOfAnInstanceThatWasEndedChangesNothing(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(mortal(5), worker)
	call := s.attempt(s.call(a, 1))
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Restart: true})
	s.panics(worker, a, l, call, nil, nil)
	s.charges(a, actor.Restarting, 1, 0)
	l2 := s.up(a, worker2)
	s.panics(worker, a, l, call, nil, nil)
	s.from(worker, &wire.ActorStopped{Actor: ids.ActorID(a.ID), Lease: l2, Err: boom()})
	s.charges(a, actor.Alive, 1, 0)
}

// The calls before a stop still run, in the next instance if one of them panics. A panic in the last one, or in one of another job while the
// actor is closed, is its end.
func TestAPanicWhileAnActorStops(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(mortal(5), worker)
	first, last := s.call(a, 1), s.call(a, 2)
	s.watch(a)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Stop: true})
	s.panics(worker, a, l, s.attempt(first), nil, s.attempts(last))
	s.charges(a, actor.Restarting, 1, 0)
	l = s.up(a, worker)
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{last.ID}) {
		t.Fatalf("pushed to the next instance: %v", got)
	}
	s.panics(worker, a, l, s.attempt(last), nil, nil)
	s.charges(a, actor.Dead, 2, 0)

	b, l := s.spawn(mortal(5), worker)
	s.watch(b)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(b.ID), Stop: true})
	s.charges(b, actor.Stopping, 0, 0)
	s.from(worker, &wire.ActorStopped{Actor: ids.ActorID(b.ID), Lease: l, Err: boom()})
	if n := s.news(); len(n) != 1 || n[0].State != wire.ActorDead || !errors.Is(n[0].Err, errs.ErrPanic) || errors.Is(n[0].Err, errs.ErrActorUnavailable) {
		t.Errorf("who watches it is told %+v", n)
	}
}

// A core that is rebuilt before it was told of a panic comes to the same end.
func TestAPanicThatARebuiltCoreHearsOf(t *testing.T) {
	for name, policy := range map[string]wire.OnPanic{"restarts": wire.PanicRestarts, "stops": wire.PanicStops} {
		s := newScript(t, Config{})
		opts := mortal(3)
		opts.OnPanic = policy
		a, l := s.spawn(opts, worker)
		culprit, waits := s.call(a, 1), s.call(a, 2)
		x, y := s.attempt(culprit), s.attempt(waits)
		s.rebuild(2)
		s.panics(worker, a, l, x, nil, []wire.ExecTask{y}) // the worker had sent it, and has nothing any more
		h := holds(2)
		h.Handles = []ids.ObjectID{a.ID.Return(0), culprit.ID.Return(0), waits.ID.Return(0)}
		s.from(worker, holds(2))
		s.from(worker2, holds(2))
		s.from(driver, h)
		if r := s.result(culprit.ID.Return(0)); !errors.Is(r.Result.Err, errs.ErrPanic) {
			t.Errorf("%s: the call that panicked gives %+v", name, r.Result)
		}
		if policy == wire.PanicStops {
			s.charges(a, actor.Dead, 0, 0)
			s.wantError(waits.ID.Return(0), errs.CodeActorDied)
			continue
		}
		s.charges(a, actor.Restarting, 1, 0)
		s.up(a, worker2)
		if got := s.pushed(worker2); !slices.Equal(got, []ids.TaskID{waits.ID}) {
			t.Errorf("pushed to the next instance: %v", got)
		}
	}
}

// The calls of another job's actor that panicked wait for its owner's word, and are then dealt with as those of its own job are.
func TestAPanicOfAnotherJobsActor(t *testing.T) {
	const guest, place = ids.ClientID(8), ids.LeaseID(900)
	for _, says := range []actor.State{actor.Restarting, actor.Dead} {
		s := newScript(t, Config{ActorWindow: 4})
		s.step(ClientJoined{Client: guest, Role: wire.RoleWorker, Guest: true})
		far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
		id, opts := ids.ActorID(far.ID), &wire.TaskOptions{}
		culprit, beside, waits, onItsWay, queued := s.call(far, 1), s.call(far, 2), s.call(far, 3), s.call(far, 4), s.call(far, 5)
		s.step(FromDirectory{ActorAt{Actor: id, State: actor.Alive, Worker: guest, Lease: place, Opts: opts}})
		s.panics(guest, far, place, s.attempt(culprit), s.attempts(beside), s.attempts(waits)) // and nobody believes it of another job's actor
		x := s.attempt(onItsWay)
		s.from(guest, &wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: place, Err: errs.New(errs.CodeActorUnavailable, "it is not here"), Times: wire.Times{Ended: 2}})
		s.wantError(culprit.ID.Return(0), errs.CodeTaskFailed)
		if s.state(beside).Terminal() || len(s.pushed(guest)) > 0 {
			t.Fatalf("before its owner has spoken, the call beside is %v, and pushed is %v", s.state(beside), s.pushed(guest))
		}
		why := panicked(&actorRec{id: id}, boom())
		s.step(FromDirectory{ActorAt{Actor: id, State: says, Opts: opts, Err: why}})
		if says == actor.Dead {
			for _, spec := range []*wire.TaskSpec{beside, waits, onItsWay, queued} {
				s.wantError(spec.ID.Return(0), errs.CodeActorDied)
			}
			continue
		}
		s.wantError(beside.ID.Return(0), errs.CodeActorUnavailable)
		late := s.call(far, 6)
		s.step(FromDirectory{ActorAt{Actor: id, State: actor.Alive, Worker: worker2, Lease: place + 1, Opts: opts}})
		if got, want := s.pushed(worker2), []ids.TaskID{waits.ID, onItsWay.ID, queued.ID, late.ID}; !slices.Equal(got, want) {
			t.Errorf("where it is now: pushed %v, want %v", got, want)
		}
	}
}

// The word of another job's owner may come before the worker's on a call that was on its way: it waits for that, and for no other news.
func TestAnotherOwnersWordOfAPanicWaitsForTheWorkers(t *testing.T) {
	const guest, place = ids.ClientID(8), ids.LeaseID(900)
	for _, ends := range []string{"the worker refuses", "the worker is gone", "nothing comes"} {
		s := newScript(t, Config{})
		s.step(ClientJoined{Client: guest, Role: wire.RoleWorker, Guest: true})
		far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
		id, opts := ids.ActorID(far.ID), &wire.TaskOptions{}
		call := s.call(far, 1)
		s.step(FromDirectory{ActorAt{Actor: id, State: actor.Alive, Worker: guest, Lease: place, Opts: opts}})
		x := s.attempt(call)
		why := panicked(&actorRec{id: id}, boom())
		s.step(FromDirectory{ActorAt{Actor: id, State: actor.Restarting, Opts: opts, Err: why}})
		s.step(FromDirectory{ActorAt{Actor: id, State: actor.Alive, Worker: worker2, Lease: place + 1, Opts: opts, Err: why}})
		if s.state(call) != task.Submitted {
			t.Fatalf("%s: before, the call is %v", ends, s.state(call))
		}
		switch ends {
		case "the worker refuses":
			s.from(guest, &wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: place, Err: errs.New(errs.CodeActorUnavailable, "it is not here"), Times: wire.Times{Ended: 2}})
			if got := s.pushed(worker2); !slices.Equal(got, []ids.TaskID{call.ID}) {
				t.Errorf("where it is now: pushed %v", got)
			}
			continue
		case "the worker is gone":
			s.step(ClientGone{Client: guest})
			s.pass(s.c.cfg.SettleGrace)
		default:
			s.pass(s.c.cfg.SettleGrace)
		}
		s.wantError(call.ID.Return(0), errs.CodeActorUnavailable) // it may have run
		next := s.call(far, 2)
		if got := s.pushed(worker2); !slices.Equal(got, []ids.TaskID{next.ID}) {
			t.Errorf("%s: the next call: pushed %v", ends, got)
		}
	}
}

// A call that was cancelled is cancelled, whatever its instance does meanwhile.
func TestACancelledCallOfABrokenInstanceStaysCancelled(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(mortal(1), worker)
	culprit, beside := s.call(a, 1), s.call(a, 2)
	s.from(driver, &wire.Cancel{Task: beside.ID})
	s.panics(worker, a, l, s.attempt(culprit), s.attempts(beside), nil)
	s.wantError(beside.ID.Return(0), errs.CodeCancelled)
}
