package owner

import (
	"maps"
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/record"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// answered rebuilds the core, and both workers and the driver say that they have nothing but what is given.
func (s *script) answered(epoch uint64, has map[ids.ClientID]*wire.Holdings) {
	s.t.Helper()
	s.rebuild(epoch)
	for _, cl := range []ids.ClientID{driver, worker, worker2} {
		h := has[cl]
		if h == nil {
			h = holds(epoch)
		}
		s.from(cl, h)
	}
}

// A rebuilt core asks again where another job's actor is: what it had been told is lost.
func TestRebuiltCoreSeeksAnotherJobsActorAgain(t *testing.T) {
	far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
	id := ids.ActorID(far.ID)
	for _, retries := range []int32{0, 1} {
		s := newScript(t, Config{})
		first := s.call(far, 1)
		at := ActorAt{Actor: id, State: actor.Alive, Worker: worker, Lease: 900, Opts: &wire.TaskOptions{MaxTaskRetries: retries}}
		s.step(FromDirectory{at})
		h := holds(7)
		h.Handles = []ids.ObjectID{first.ID.Return(0)}
		s.answered(7, map[ids.ClientID]*wire.Holdings{driver: h})
		if l := told[LocateActor](s); len(l) != 1 || l[0].Actor != id || l[0].Done {
			t.Fatalf("the directory is asked %+v", l)
		}
		at.Worker, at.Lease = worker2, 901
		s.step(ClientGone{Client: worker})
		s.step(ClientJoined{Client: 8, Role: wire.RoleWorker, Guest: true})
		at.Worker = 8
		s.step(FromDirectory{at})
		if retries == 0 { // it may have run: it does not run twice
			s.wantError(first.ID.Return(0), errs.CodeActorUnavailable)
		} else if got := s.pushed(8); len(got) != 1 || got[0] != first.ID {
			t.Fatalf("where it is now: pushed %v", got)
		}
	}
}

// Another job's worker says to an owner that was restarted which of its calls it has; what else it has is none of this job's.
func TestRebuiltCoreAdoptsItsCallsOnAnotherJobsWorker(t *testing.T) {
	s := newScript(t, Config{})
	far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
	id := ids.ActorID(far.ID)
	first := s.call(far, 1)
	at := ActorAt{Actor: id, State: actor.Alive, Worker: worker, Lease: 900, Opts: &wire.TaskOptions{}}
	s.step(FromDirectory{at})
	x := s.executed(worker)
	c := s.rebuilt()
	s.c = c
	s.step(Restored{Epoch: 7, Clients: []ClientJoined{{Client: driver, Role: wire.RoleDriver}, {Client: worker, Role: wire.RoleWorker, Guest: true}}})
	h := holds(7)
	h.Handles = []ids.ObjectID{first.ID.Return(0)}
	s.from(driver, h)
	g := holds(7)
	g.Tasks = []wire.Attempt{{Task: first.ID, Attempt: x.Attempt, Lease: 900}}
	g.Actors = []ids.ActorID{id, ids.ActorID(ids.Derive(ids.RootTask(9, 9), 2))}
	g.Handles = []ids.ObjectID{ids.RootTask(9, 9).Put(1)}
	s.from(worker, g)
	if m := sent[*wire.StopActor](s, worker); len(m) != 0 {
		t.Errorf("another job's actors are ended: %+v", m)
	}
	if len(s.c.placeholders) != 0 {
		t.Error("it counts another job's objects")
	}
	s.step(FromDirectory{at})
	if m := sent[*wire.Exec](s, worker); len(m) != 0 {
		t.Errorf("the call is made once more: %+v", m)
	}
	s.done(worker, 900, x, inline("1"))
	if s.state(first) != task.Finished {
		t.Errorf("the call is %v", s.state(first))
	}
}

// rebuilt is a core made of the log.
func (s *script) rebuilt() *Core {
	s.t.Helper()
	c, err := Rebuild(Config{Job: 1}, func(yield func(uint64, []byte) bool) {
		for ck, b := range s.logs {
			if !yield(ck, b) {
				return
			}
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// A lease that the core before was asked to return comes back, and its task is in a get: the CPU has to be asked for again.
func TestLeaseIsStillBlockedThatIsAskedBackDuringARestart(t *testing.T) {
	s := newScript(t, Config{})
	x := s.spec(simple)
	s.from(driver, &wire.Submit{Spec: x})
	l := s.grant(worker)
	at := s.executed(worker)
	s.from(worker, &wire.Blocked{Task: x.ID, Lease: l})
	s.rebuild(7)
	h := holds(7)
	h.Tasks = []wire.Attempt{{Task: x.ID, Attempt: at.Attempt, Lease: l}}
	s.step(FromSched{sched.Reclaim{Lease: l}})
	s.step(FromSched{sched.Granted{Key: sched.ClassKey{Job: 1, Class: s.c.classOf(0, simple).id}, Lease: l, Worker: worker, Blocked: true, Epoch: 7}})
	s.from(driver, holds(7))
	s.from(worker2, holds(7))
	s.from(worker, h)
	s.from(worker, &wire.Unblocked{Task: x.ID, Lease: l})
	if got := told[sched.UnblockCPU](s); len(got) != 1 || got[0].Lease != l {
		t.Errorf("the scheduler is asked %+v", got)
	}
	if got := sent[*wire.Resume](s, worker); len(got) != 0 {
		t.Errorf("the task goes on at once: %+v", got)
	}
}

// The log may end between the two records of an actor that is up. Its worker is gone with the machine, and it is made again.
func TestActorIsMadeAgainWhereTheLogLacksItsCreationsEnd(t *testing.T) {
	s := newScript(t, Config{})
	a := s.create(&wire.TaskOptions{Func: "counter", NumReturns: 1, MaxRestarts: 1})
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline(""))
	last := slices.Max(slices.Collect(maps.Keys(s.logs)))
	if r, _, err := record.Parse(s.logs[last]); err != nil {
		t.Fatal(err)
	} else if _, ok := r.(*record.Done); !ok {
		t.Fatalf("the last record is %T", r)
	}
	delete(s.logs, last)

	h := holds(1)
	h.Handles = []ids.ObjectID{a.ID.Return(0)}
	s.answered(1, map[ids.ClientID]*wire.Holdings{driver: h})
	s.done(worker2, s.grant(worker2), s.executed(worker2), inline(""))
	if s.state(a) != task.Finished {
		t.Errorf("the creation is %v", s.state(a))
	}
}

// A node that is stopped in order leaves its detached actors to be made again, at nobody's cost; what is not detached ends.
func TestDetachedActorsComeBackAfterAStop(t *testing.T) {
	s := newScript(t, Config{})
	a := s.create(&wire.TaskOptions{Func: "detached", NumReturns: 1, ActorName: "d", Detached: true}) // no restarts
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(a.ID)}})
	s.done(worker2, s.grant(worker2), s.executed(worker2), inline(""))
	plain, _ := s.spawn(counter, worker)
	own := s.submit(simple)
	s.step(Stopping{})
	if p := s.c.actors.byID[ids.ActorID(plain.ID)]; p != nil && !p.ended() && p.state != actor.Stopping || s.state(own) != task.Cancelled {
		t.Errorf("what is not detached goes on: %+v, %v", p, s.state(own))
	}
	s.step(ClientGone{Client: worker2, Err: errs.New(errs.CodeWorkerCrashed, "its node stops")})
	s.step(ClientGone{Client: driver})
	if len(s.out) != 0 {
		t.Errorf("a stopped core does %+v", s.out)
	}
	s.c = s.rebuilt()
	s.step(Restored{Epoch: 8})
	rec := s.c.actors.byID[ids.ActorID(a.ID)]
	if rec == nil || rec.state != actor.Restarting || rec.restarts != 0 || !rec.claimed || s.state(a) != task.PendingNode {
		t.Fatalf("the detached actor is %+v, its creation %v", rec, s.state(a))
	}
}

// The directory asks about a name from before a restart: a dead actor's is given back, whether its death is in the log or forgotten.
func TestNamesOfDeadActorsAreGivenBackAfterARestart(t *testing.T) {
	s := newScript(t, Config{})
	opts := &wire.TaskOptions{Func: "named", NumReturns: 1, ActorName: "d", Detached: true}
	alive, dead := s.create(opts), s.create(opts)
	for _, a := range []*wire.TaskSpec{alive, dead} {
		s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(a.ID)}})
		s.done(worker, s.grant(worker), s.executed(worker), inline(""))
	}
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(dead.ID)})
	h := holds(7)
	h.Handles = []ids.ObjectID{dead.ID.Return(0)}
	h2 := holds(7)
	h2.Actors = []ids.ActorID{ids.ActorID(alive.ID)}
	s.answered(7, map[ids.ClientID]*wire.Holdings{driver: h, worker: h2})
	if r := told[ReleaseName](s); len(r) != 1 || r[0].Actor != ids.ActorID(dead.ID) || r[0].Opts.ActorName != "d" {
		t.Fatalf("given back after the restart: %+v", r)
	}
	for id, want := range map[ids.ActorID]int{ids.ActorID(alive.ID): 0, ids.ActorID(dead.ID): 1, ids.ActorID(ids.Derive(s.root, 99)): 1} {
		s.step(FromDirectory{NameHeld{Actor: id, Opts: opts}})
		if r := told[ReleaseName](s); len(r) != want {
			t.Errorf("asked about %v: %+v", id, r)
		}
	}
}

// An actor is killed, and its creation has ended meanwhile, which a core that is rebuilt hears only then: its worker is told to end it.
func TestAnActorKilledAsItCameUpIsEndedByARebuiltCore(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.create(counter)
	l := s.grant(worker)
	x := s.executed(worker)
	s.rebuild(2)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(spec.ID)}, holds(2))
	s.from(worker2, holds(2))
	h := holds(2)
	h.Actors = []ids.ActorID{ids.ActorID(spec.ID)}
	s.from(worker, &wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{inline("")}, Times: wire.Times{Started: 1, Ended: 2}}, h)
	if m := sent[*wire.StopActor](s, worker); len(m) != 1 || m[0].Actor != ids.ActorID(spec.ID) {
		t.Errorf("the worker that has it is told %+v", m)
	}
}
