package owner

import (
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// runs has a call of an actor begin in a process, of which the owner knows no more than that.
func (s *script) runs(cl ids.ClientID, a *wire.TaskSpec) ids.TaskID {
	s.t.Helper()
	s.calls++
	call := s.callSpec(a, s.calls).ID
	s.from(cl, &wire.Runs{Task: call, Actor: ids.ActorID(a.ID)})
	return call
}

// makes has a call that runs in a process submit a task, which the driver holds too.
func (s *script) makes(cl ids.ClientID, call ids.TaskID) *wire.TaskSpec {
	s.t.Helper()
	spec := s.spec(simple)
	spec.Parent = call
	s.from(cl, &wire.Submit{Spec: spec})
	s.from(driver, &wire.AddRef{ID: spec.ID.Return(0)})
	return spec
}

var recursive = wire.Wish{Recursive: true}

func (s *script) wantState(what string, spec *wire.TaskSpec, want task.State) {
	s.t.Helper()
	if got := s.state(spec); got != want {
		s.t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// What a call has made that the owner does not know is cancelled when its process asks for that, and with it what that has made; until the call has ended.
func TestWhatAStraightCallHasMadeIsCancelled(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	call, other := s.runs(worker, a), s.runs(worker, a)
	child, beside := s.makes(worker, call), s.makes(worker, other)
	grandchild := s.makes(worker2, child.ID)
	s.from(worker, &wire.CancelMade{Task: call, Wish: recursive})
	s.wantState("its child", child, task.Cancelled)
	s.wantState("the child's child", grandchild, task.Cancelled)
	s.wantState("the child of another", beside, task.PendingNode)
	late := s.makes(worker, call)
	s.from(worker2, &wire.Ran{Task: call}) // it does not run there
	s.from(worker, &wire.CancelMade{Task: call, Wish: recursive})
	s.wantState("a later child", late, task.Cancelled)
	last := s.makes(worker, call)
	s.from(worker, &wire.Ran{Task: call}, &wire.CancelMade{Task: call, Wish: recursive})
	s.wantState("the child of one that has ended", last, task.PendingNode)
	s.step(ClientGone{Client: worker})
	if n := len(s.c.tasks.making) + len(s.c.tasks.children); n != 0 {
		t.Errorf("of a process that is gone, %d entries are left", n)
	}
}

// A call that the owner has pushed makes straight ones too: its process is asked to cancel those.
func TestTheProcessOfACallCancelsWhatWentStraight(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	call := s.call(a, 1)
	s.from(driver, &wire.Cancel{Task: call.ID, Force: true})
	if m := sent[*wire.CancelMade](s, worker); len(m) != 0 {
		t.Fatalf("of a cancel of the call alone it is told %+v", m)
	}
	call = s.call(a, 2)
	s.from(driver, &wire.Cancel{Task: call.ID, Recursive: true, Insist: true})
	if m := sent[*wire.CancelMade](s, worker); len(m) != 1 || m[0].Task != call.ID || m[0].Wish != (wire.Wish{Recursive: true, Insist: true}) {
		t.Errorf("it is told %+v", m)
	}
}

// A cancel of a call that is elsewhere goes to the process that has it, and when that is gone to that of the actor. What the call has made is cancelled when the
// actor's process says so.
func TestACancelIsPassedToWhoHasTheCall(t *testing.T) {
	s := straightScript(t)
	a, l := s.spawn(counter, worker)
	c := s.channel(worker2, a)
	call := s.adopt(worker2, a, c, 1, nil)
	s.from(worker, &wire.Runs{Task: call.ID, Actor: ids.ActorID(a.ID)})
	child := s.makes(worker, call.ID)
	s.from(driver, &wire.Cancel{Task: call.ID, Recursive: true})
	if m := sent[*wire.CancelCall](s, worker2); len(m) != 1 || m[0].Task != call.ID || m[0].Actor != ids.ActorID(a.ID) || m[0].Wish != recursive {
		t.Fatalf("who has the call is told %+v", m)
	}
	s.wantState("its child, yet", child, task.PendingNode)
	s.from(worker, &wire.CancelMade{Task: call.ID, Wish: recursive})
	s.wantState("its child", child, task.Cancelled)
	s.step(ClientGone{Client: worker2})
	if m := sent[*wire.Unwanted](s, worker); len(m) != 1 || m[0].Instance != l || m[0].Channel != c || m[0].No != 1 || m[0].Wish != recursive {
		t.Fatalf("when that is gone, the actor's process is told %+v", m)
	}
	s.step(CancelRequested{Task: call.ID, Force: true})
	if m := sent[*wire.Unwanted](s, worker); len(m) != 1 || !m[0].Wish.Force {
		t.Errorf("of the force it is told %+v", m)
	}
	s.wantError(call.ID.Return(0), errs.CodeCancelled)
}

// With force a call that is elsewhere ends at once, but what it has made is known until its process has cancelled that.
func TestAForcedCancelLeavesWhatWasMadeToTheProcess(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	call := s.adopt(driver, a, s.channel(driver, a), 1, nil)
	early := s.makes(worker, call.ID) // which has the owner note that it is the call's
	s.from(worker, &wire.Runs{Task: call.ID, Actor: ids.ActorID(a.ID)})
	child := s.makes(worker, call.ID)
	force := wire.Wish{Force: true, Recursive: true}
	s.from(worker2, &wire.Cancel{Task: call.ID, Force: true, Recursive: true})
	s.wantError(call.ID.Return(0), errs.CodeCancelled)
	s.from(worker, &wire.CancelMade{Task: call.ID, Wish: force}, &wire.Ran{Task: call.ID})
	s.wantState("the first child", early, task.Cancelled)
	s.wantState("the second", child, task.Cancelled)
}

// A core made again knows who has made what when the processes have spoken, also what was in the log before.
func TestACoreMadeAgainKnowsWhoHasMadeWhat(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	call, over := s.runs(worker, a), s.runs(worker, a)
	child, stays, ofDriver := s.makes(worker, call), s.makes(worker, over), s.submit(simple)
	h, w := holds(7), holds(7)
	h.Handles = []ids.ObjectID{a.ID.Return(0), child.ID.Return(0), stays.ID.Return(0), ofDriver.ID.Return(0)}
	w.Actors = []ids.ActorID{ids.ActorID(a.ID)}
	s.rebuildStraight(7, map[ids.ClientID][]wire.Msg{driver: {h}, worker: {&wire.Runs{Task: call, Actor: ids.ActorID(a.ID)}, w}})
	if n := len(s.c.tasks.children); n != 1 {
		t.Errorf("the children of %d are kept", n)
	}
	s.from(worker, &wire.CancelMade{Task: over, Wish: recursive}, &wire.CancelMade{Task: call, Wish: recursive})
	s.wantState("the child of one that has ended", stays, task.PendingNode)
	s.wantState("the child of one that runs", child, task.Cancelled)
}

// The parent of an actor that a straight call creates is the actor whose call that is.
func TestAnActorMadeByAStraightCallEscalates(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := straightScript(t)
		p, _ := s.spawn(mortal(1), worker)
		call := s.runs(worker, p)
		spec := s.spec(&wire.TaskOptions{Func: "child", NumReturns: 1, MaxPendingCalls: -1, Escalate: true})
		spec.Kind, spec.Actor, spec.Parent = wire.TaskActorCreate, ids.ActorID(spec.ID), call
		s.from(driver, &wire.Submit{Spec: spec})
		s.from(worker, &wire.Ran{Task: call})
		cl := worker2
		if again {
			h, w := holds(7), holds(7)
			h.Handles = []ids.ObjectID{p.ID.Return(0), spec.ID.Return(0)}
			w.Actors = []ids.ActorID{ids.ActorID(p.ID)}
			s.rebuildStraight(7, map[ids.ClientID][]wire.Msg{driver: {h}, worker: {w}})
			cl = s.extra(50)
		}
		l := s.grant(cl)
		s.done(cl, l, s.executed(cl), inline(""))
		s.kill(cl, errs.CodeWorkerCrashed, 0, l)
		s.charges(spec, actor.Dead, 0, 0)
		s.charges(p, actor.Restarting, 1, 0)
	}
}
