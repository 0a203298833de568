package owner

import (
	"fmt"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// together brings several actors up in one process.
func (s *script) together(n int, opts func(i int) *wire.TaskOptions, w ids.ClientID) (as []*wire.TaskSpec, ls []ids.LeaseID) {
	s.t.Helper()
	for i := range n {
		o := opts(i)
		a := s.create(o)
		if o.ActorName != "" {
			s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(a.ID)}})
		}
		l := s.grant(w)
		s.done(w, l, s.executed(w), inline(""))
		as, ls = append(as, a), append(ls, l)
	}
	return as, ls
}

func plainly(int) *wire.TaskOptions {
	return &wire.TaskOptions{Func: "actor", NumReturns: 1, MaxTaskRetries: 1, MaxPendingCalls: -1}
}

// charges fails unless an actor's restarts and resets, and its state, are these.
func (s *script) charges(a *wire.TaskSpec, st actor.State, restarts, resets int) {
	s.t.Helper()
	v := s.c.actors.byID[ids.ActorID(a.ID)].view()
	if v.State != st || v.Restarts != restarts || v.Resets != resets {
		s.t.Errorf("actor %d is %v after %d restarts and %d resets, want %v after %d and %d", a.ID, v.State, v.Restarts, v.Resets, st, restarts, resets)
	}
}

// up lets the worker make an actor whose creation waits; its class is to be in a process of its own or not.
func (s *script) up(a *wire.TaskSpec, w ids.ClientID) ids.LeaseID {
	s.t.Helper()
	t := s.c.tasks.task(a.ID)
	s.lease++
	k := t.class
	if t.flags&taskIsolated != 0 {
		k = t.x.isolatedClass
	}
	s.step(granted(k, s.lease, w))
	s.done(w, s.lease, s.executed(w), inline(""))
	return s.lease
}

// The actor that ran a call when its process died is charged; its neighbours restart, though they have no
// restarts, and it comes back apart from them.
func TestOnlyTheCulpritOfASharedProcessIsCharged(t *testing.T) {
	s := newScript(t, Config{})
	as, ls := s.together(3, func(i int) *wire.TaskOptions {
		o := plainly(i)
		if i == 2 {
			o.MaxRestarts = 1
		}
		return o
	}, worker)
	bad := as[2]
	call := s.call(bad, 1)
	s.kill(worker, errs.CodeWorkerCrashed, 0, ls...)
	s.charges(as[0], actor.Restarting, 0, 1)
	s.charges(as[1], actor.Restarting, 0, 1)
	s.charges(bad, actor.Restarting, 1, 0)
	for i, a := range as {
		if solo := s.c.tasks.task(a.ID).flags&taskIsolated != 0; solo != (i == 2) {
			t.Errorf("actor %d restarts in a process of its own: %v", i, solo)
		}
	}
	s.up(as[0], worker2)
	s.up(as[1], worker2)
	s.step(ClientJoined{Client: 50, Role: wire.RoleWorker})
	l := s.up(bad, 50)
	s.kill(50, errs.CodeWorkerCrashed, 0, l)
	s.charges(bad, actor.Dead, 1, 0)
	s.wantError(call.ID.Return(0), errs.CodeActorDied)
	s.charges(as[0], actor.Alive, 0, 1)

	s.rebuild(7) // the counts outlive the core
	s.charges(as[0], actor.Alive, 0, 1)
}

// Of several that ran calls none is charged; they restart apart, and the one whose process dies again is found.
func TestSuspectedActorsRestartApart(t *testing.T) {
	s := newScript(t, Config{})
	as, ls := s.together(3, plainly, worker)
	s.call(as[0], 1)
	call := s.call(as[1], 1)
	s.kill(worker, errs.CodeWorkerCrashed, 0, ls...)
	for i, a := range as {
		s.charges(a, actor.Restarting, 0, 1)
		if solo := s.c.tasks.task(a.ID).flags&taskIsolated != 0; solo != (i < 2) {
			t.Errorf("actor %d restarts apart: %v", i, solo)
		}
	}
	s.step(ClientJoined{Client: 50, Role: wire.RoleWorker})
	s.up(as[0], worker2)
	l := s.up(as[1], 50)
	s.kill(50, errs.CodeWorkerCrashed, 0, l)
	s.charges(as[1], actor.Dead, 0, 1)
	s.wantError(call.ID.Return(0), errs.CodeActorDied)
	if s.c.tasks.task(as[0].ID).flags&taskIsolated != 0 {
		t.Error("who was suspected with the culprit still is")
	}
}

// A call that waits in a get did not bring the process down that the call it waits for did.
func TestAnActorThatWaitsIsNoSuspect(t *testing.T) {
	s := newScript(t, Config{})
	as, ls := s.together(2, plainly, worker)
	waits := s.call(as[0], 1)
	s.from(worker, &wire.Blocked{Task: waits.ID, Lease: ls[0]})
	s.call(as[1], 1)
	s.kill(worker, errs.CodeWorkerCrashed, 0, ls...)
	s.charges(as[0], actor.Restarting, 0, 1)
	s.charges(as[1], actor.Dead, 0, 0)
}

// However many ran calls, they restart in a few processes.
func TestManySuspectsShareAFewProcesses(t *testing.T) {
	s := newScript(t, Config{})
	as, ls := s.together(100, plainly, worker)
	for _, a := range as {
		s.call(a, 1)
	}
	s.kill(worker, errs.CodeWorkerCrashed, 0, ls...)
	in := make(map[string]int)
	for _, a := range as {
		s.charges(a, actor.Restarting, 0, 1)
		in[s.c.tasks.task(a.ID).x.isolatedClass.opts.Process]++
	}
	if len(in) != maxApart || in[""] != 0 {
		t.Errorf("they restart in %v", in)
	}
}

// A named actor may have had a call of another job: that is told, before the process' end is settled or after it.
func TestAnotherJobsCallsCountToo(t *testing.T) {
	name := func(i int) *wire.TaskOptions {
		o := plainly(i)
		o.ActorName = fmt.Sprint("a", i)
		return o
	}
	for _, early := range []bool{true, false} {
		s := newScript(t, Config{})
		as, ls := s.together(3, name, worker)
		told := func(i int) { s.step(FromDirectory{CallsLost{Actor: ids.ActorID(as[i].ID), Lease: ls[i]}}) }
		if early {
			told(0)
		}
		s.kill(worker, errs.CodeWorkerCrashed, 0, ls...)
		if !early {
			s.charges(as[0], actor.Restarting, 0, 1)
			told(0)
			told(0) // another job's word of the same
		}
		s.pass(time.Second)
		s.charges(as[0], actor.Dead, 0, 0)
		s.charges(as[1], actor.Restarting, 0, 1)
	}
	s := newScript(t, Config{})
	as, ls := s.together(3, name, worker)
	s.kill(worker, errs.CodeWorkerCrashed, 0, ls...)
	for i := range 2 {
		s.step(FromDirectory{CallsLost{Actor: ids.ActorID(as[i].ID), Lease: ls[i]}})
	}
	s.pass(time.Second)
	for i, a := range as {
		s.charges(a, actor.Restarting, 0, 1)
		if solo := s.c.tasks.task(a.ID).flags&taskIsolated != 0; solo != (i < 2) {
			t.Errorf("actor %d is a suspect: %v", i, solo)
		}
	}
}

// A constructor that ends its process is run again ever less often; one that lives a while begins anew.
func TestRestartsBackOff(t *testing.T) {
	s := newScript(t, Config{})
	a := s.create(&wire.TaskOptions{Func: "exits", NumReturns: 1, MaxRestarts: -1})
	id, runs, begin := worker, 0, s.now
	try := func() ids.LeaseID {
		id++
		s.step(ClientJoined{Client: id, Role: wire.RoleWorker})
		runs++
		return s.grant(id)
	}
	for s.now-begin < int64(time.Minute) {
		if s.state(a) == task.Backoff {
			s.pass(10 * time.Millisecond)
			continue
		}
		s.kill(id, errs.CodeWorkerCrashed, 0, try())
	}
	if runs < 8 || runs > 16 {
		t.Errorf("in a minute it is run %d times", runs)
	}
	if v := s.c.actors.byID[ids.ActorID(a.ID)].view(); v.Due <= s.now || v.Restarts != runs || v.Cause == nil {
		t.Errorf("it is shown as %+v", v)
	}
	s.pass(time.Minute)
	l := try()
	s.done(id, l, s.attempt(a), inline(""))
	s.pass(time.Minute)
	s.kill(id, errs.CodeWorkerCrashed, 0, l)
	if st := s.state(a); st != task.PendingNode {
		t.Errorf("after a minute of life it is %v", st)
	}
}

func granted(k *classRec, l ids.LeaseID, w ids.ClientID) Event {
	return FromSched{sched.Granted{Key: sched.ClassKey{Job: 1, Class: k.id}, Lease: l, Worker: w}}
}
