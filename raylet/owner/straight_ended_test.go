package owner

import (
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// recordsToo has the core of a script say what changes.
func (s *script) recordsToo() *script {
	s.c.cfg.Transitions = true
	s.seen = nil
	return s
}

// Calls that have ended without the owner are counted as its own are, and what is told of some is recorded.
func TestEndedCallsAreCounted(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	s.recordsToo()
	was := s.c.Counters()
	spec := func(at int64) *wire.TaskSpec {
		s.calls++
		k := s.callSpec(a, s.calls)
		k.Submitted = at
		return k
	}
	ran := &wire.Run{Worker: worker, Lease: 3, Times: wire.Times{Received: 20, Started: 20, Ended: 30}}
	ok, fell, gone := spec(10), spec(0), spec(12)
	s.from(driver, &wire.EndedCalls{
		Counts: []wire.EndedCount{{Opts: ok.Opts, Finished: 7, Failed: 2, Retried: 1}, {Opts: ok.Opts, Cancelled: 4}},
		Calls: []wire.EndedCall{{Spec: ok, At: 31, Tries: 1, Ran: ran}, {Spec: fell, At: 40, Err: errs.New(errs.CodeActorDied, "it is dead")},
			{Spec: gone, At: 50, Err: errs.New(errs.CodeCancelled, "no")}},
	})
	got := s.c.Counters()
	if got.Submitted-was.Submitted != 16 || got.Finished-was.Finished != 8 || got.Failed-was.Failed != 3 || got.Cancelled-was.Cancelled != 5 || got.Retried-was.Retried != 1 {
		t.Errorf("counted are %+v, before %+v", got, was)
	}
	type row struct {
		task    ids.TaskID
		state   task.State
		count   uint64
		at      int64
		took    time.Duration
		worker  ids.ClientID
		attempt uint32
	}
	want := []row{
		{state: task.Finished, count: 7, at: s.now}, {state: task.Failed, count: 2, at: s.now}, {state: task.Cancelled, count: 4, at: s.now},
		{ok.ID, task.PendingActor, 0, 10, 0, 0, 0}, {ok.ID, task.Submitted, 0, 10, 0, worker, 2}, {ok.ID, task.Running, 0, 20, 0, worker, 2}, {ok.ID, task.Finished, 0, 31, 21, worker, 2},
		{fell.ID, task.PendingActor, 0, 40, 0, 0, 0}, {fell.ID, task.Failed, 0, 40, -1, 0, 0},
		{gone.ID, task.PendingActor, 0, 12, 0, 0, 0}, {gone.ID, task.Cancelled, 0, 50, 38, 0, 0},
	}
	if len(s.seen) != len(want) {
		t.Fatalf("recorded are %+v", s.seen)
	}
	for i, ch := range s.seen {
		if x := (row{ch.Spec.ID, ch.State, ch.Count, ch.At, ch.Took, ch.Worker, ch.Attempt}); x != want[i] {
			t.Errorf("%d: recorded is %+v, want %+v", i, x, want[i])
		}
	}
	if s.seen[5].Times == nil || s.seen[8].Reason == nil || s.seen[10].Reason == nil {
		t.Error("times or reasons are missing")
	}
}

// A call is counted once: by the owner where it was told of it before it ended, else by who tells of it.
func TestAdoptedCallsAreCountedOnce(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	c := s.channel(driver, a)
	s.recordsToo()
	was := s.c.Counters()
	s.adopt(driver, a, c, 1, gave("v"))
	s.adopt(driver, a, c, 2, &wire.CallOutcome{Err: errs.New(errs.CodeTaskFailed, "no")})
	if got := s.c.Counters(); got != was || len(s.seen) != 0 {
		t.Errorf("counted are %+v, before %+v; recorded %+v", got, was, s.seen)
	}
	s.calls++
	early := s.callSpec(a, s.calls)
	early.Submitted = 5
	s.adoptSpec(driver, early, c, 3, nil)
	out := gave("v")
	out.Ran = &wire.Run{Worker: worker, Times: wire.Times{Started: 6, Ended: 7}}
	s.report(driver, early, out)
	s.report(driver, s.adopt(driver, a, c, 4, nil), &wire.CallOutcome{Err: errs.New(errs.CodeTaskFailed, "no")})
	got := s.c.Counters()
	if got.Submitted-was.Submitted != 2 || got.Finished-was.Finished != 1 || got.Failed-was.Failed != 1 {
		t.Errorf("counted are %+v, before %+v", got, was)
	}
	var states []task.State
	for _, ch := range s.seen {
		if ch.Spec.ID == early.ID {
			states = append(states, ch.State)
		}
	}
	if len(states) != 3 || states[0] != task.PendingActor || states[1] != task.Running || states[2] != task.Finished || s.seen[0].At != 5 || s.seen[1].Worker != worker {
		t.Errorf("recorded is %v: %+v", states, s.seen)
	}
}

// Of an actor that others call past the owner it cannot say which of its calls runs, before a rebuild and after.
func TestTheOwnerDoesNotSayWhatRunsWhereCallsGoStraight(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	pushed := s.call(a, 1)
	state := func() (task.State, bool) {
		w, ok := s.c.WhyTask(pushed.ID)
		if !ok {
			t.Fatal("it is not known")
		}
		return w.State, w.Of.Shared
	}
	if st, shared := state(); st != task.Running || shared {
		t.Errorf("before any has, it is %v, shared: %v", st, shared)
	}
	c := s.channel(driver, a)
	if st, shared := state(); st != task.Submitted || !shared {
		t.Errorf("it is %v, shared: %v", st, shared)
	}
	instance := s.c.actors.byID[ids.ActorID(a.ID)].shown.id
	s.c.actors.byID[ids.ActorID(a.ID)].passed = false // as in a rebuilt core
	s.from(driver, &wire.Linked{Actor: ids.ActorID(a.ID), Instance: instance, Channel: c})
	if st, shared := state(); st != task.Submitted || !shared {
		t.Errorf("when it is told of a channel, it is %v, shared: %v", st, shared)
	}
}
