package owner

import (
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// lostWithCalls makes an actor with a call that its worker has, whose argument is another job's, and one behind it, and loses the core. The one that is
// rebuilt does not know the argument. To it the worker says some things before it says that it has the actor, and what else.
func (s *script) lostWithCalls(has func(l ids.LeaseID, x wire.ExecTask) (before []wire.Msg, tasks []wire.Attempt)) (first wire.ExecTask, second *wire.TaskSpec) {
	s.t.Helper()
	a, l := s.spawn(&wire.TaskOptions{Func: "A", NumReturns: 1, MaxTaskRetries: -1}, worker)
	s.from(driver, &wire.AddRef{ID: farPut})
	s.call(a, 1, wire.Arg{Ref: farPut})
	s.fromFar(farInline("v"))
	first = s.executed(worker)
	second = s.call(a, 2)
	s.rebuild(1)
	d, w := holds(1), holds(1)
	d.Handles = []ids.ObjectID{a.ID.Return(0), farPut}
	before, tasks := has(l, first)
	w.Actors, w.Tasks = []ids.ActorID{ids.ActorID(a.ID)}, tasks
	s.from(driver, d)
	s.from(worker2, holds(1))
	s.from(worker, append(before, w)...)
	return first, second
}

// A call that a worker has had its turn: those behind it do not wait for it, though a rebuilt core does not know its argument.
func TestRebuiltCoreLetsCallsGoOnBehindOneThatIsOnAWorker(t *testing.T) {
	s := newScript(t, Config{})
	_, second := s.lostWithCalls(func(l ids.LeaseID, x wire.ExecTask) ([]wire.Msg, []wire.Attempt) {
		return nil, []wire.Attempt{{Task: x.Spec.ID, Attempt: x.Attempt, Lease: l}}
	})
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{second.ID}) {
		t.Errorf("pushed %v, want %v", got, second.ID)
	}
}

// Of such a call a worker may say, before it says what it has, that it was not run: it is tried again when its argument is there.
func TestRebuiltCoreMakesACallAgainThatAWorkerRefused(t *testing.T) {
	s := newScript(t, Config{})
	first, second := s.lostWithCalls(func(l ids.LeaseID, x wire.ExecTask) ([]wire.Msg, []wire.Attempt) {
		return []wire.Msg{&wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: l, Err: errs.New(errs.CodeActorUnavailable, "it is not here")}}, nil
	})
	if got := s.pushed(worker); len(got) > 0 {
		t.Fatalf("pushed %v before the argument is there", got)
	}
	s.fromFar(farInline("v"))
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{first.Spec.ID, second.ID}) {
		t.Errorf("pushed %v, want %v and %v", got, first.Spec.ID, second.ID)
	}
}

// Calls that had ended are not waited for, whether the log has them or a driver repeats what is forgotten.
func TestRebuiltCoreDoesNotWaitForCallsThatHadEnded(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(&wire.TaskOptions{Func: "A", NumReturns: 1, MaxTaskRetries: -1, MaxConcurrency: 4}, worker)
	first := s.call(a, 1)
	x := s.executed(worker)
	kept, forgotten := s.call(a, 2), s.call(a, 3)
	for _, spec := range []*wire.TaskSpec{kept, forgotten} {
		s.from(worker, &wire.Done{Task: spec.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("")}})
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{forgotten.ID.Return(0)}})
	never := s.callSpec(a, 4)
	s.rebuild(1)
	has, w := holds(0), holds(1)
	has.Handles = []ids.ObjectID{a.ID.Return(0), first.ID.Return(0), kept.ID.Return(0), never.ID.Return(0)}
	w.Actors, w.Tasks = []ids.ActorID{ids.ActorID(a.ID)}, []wire.Attempt{{Task: first.ID, Attempt: x.Attempt, Lease: l}}
	s.from(worker, w)
	s.from(worker2, holds(1))
	again := *has
	again.Epoch = 1
	s.from(driver, has, &wire.Submit{Spec: forgotten}, &wire.Submit{Spec: never}, &again)
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{never.ID}) {
		t.Errorf("pushed %v, want %v", got, never.ID)
	}
}

// The log has two calls and not the one between them, which was forgotten: that one is not waited for, whether or not somebody repeats it.
func TestRebuiltCoreDoesNotWaitForACallBetweenTwo(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(&wire.TaskOptions{Func: "A", NumReturns: 1, MaxTaskRetries: -1, MaxConcurrency: 4}, worker)
	first := s.call(a, 1)
	x := s.executed(worker)
	forgotten := s.call(a, 2)
	s.from(worker, &wire.Done{Task: forgotten.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("")}})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{forgotten.ID.Return(0)}})
	last := s.call(a, 3)
	s.rebuild(1)
	has, w := holds(1), holds(1)
	has.Handles = []ids.ObjectID{a.ID.Return(0), first.ID.Return(0), last.ID.Return(0)}
	w.Actors, w.Tasks = []ids.ActorID{ids.ActorID(a.ID)}, []wire.Attempt{{Task: first.ID, Attempt: x.Attempt, Lease: l}}
	s.from(worker2, holds(1))
	s.from(driver, has)
	s.from(worker, w)
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{last.ID}) {
		t.Errorf("pushed %v, want %v", got, last.ID)
	}
}
