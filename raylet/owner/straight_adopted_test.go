package owner

import (
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// adopt has a client tell of a call at a place, which the driver then holds too.
func (s *script) adopt(cl ids.ClientID, a *wire.TaskSpec, c uint64, no uint64, out *wire.CallOutcome) *wire.TaskSpec {
	s.t.Helper()
	s.calls++
	spec := s.callSpec(a, s.calls)
	s.adoptSpec(cl, spec, c, no, out)
	if cl != driver {
		s.from(driver, &wire.AddRef{ID: spec.ID.Return(0)})
	}
	return spec
}

func (s *script) adoptSpec(cl ids.ClientID, spec *wire.TaskSpec, c uint64, no uint64, out *wire.CallOutcome) {
	s.t.Helper()
	s.from(cl, &wire.Adopt{Spec: spec, Order: s.calls, Channel: c, No: no, Outcome: out})
	if m := sent[*wire.Adopted](s, cl); len(m) != 1 || m[0].Task != spec.ID {
		s.t.Fatalf("client %v is answered %+v", cl, m)
	}
}

func gave(b string) *wire.CallOutcome { return &wire.CallOutcome{Results: []wire.Result{inline(b)}} }

func (s *script) report(cl ids.ClientID, spec *wire.TaskSpec, out *wire.CallOutcome) {
	s.t.Helper()
	s.from(cl, &wire.Adopt{Spec: spec, Outcome: out})
}

// logged tells how many records are in the log.
func (s *script) logged() int { return len(s.logs) }

// A call that is elsewhere can be asked for and used, and is answered when its process reports it. The log has nothing of it before.
func TestAnAdoptedCallIsWaitedFor(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	c := s.channel(driver, a)
	before := s.logged()
	call := s.adopt(driver, a, c, 1, nil)
	if n := s.logged(); n != before {
		t.Errorf("the log has %d records of a call that is elsewhere", n-before)
	}
	s.from(worker2, &wire.Get{ID: call.ID.Return(0)})
	user := s.submit(simple, wire.Arg{Ref: call.ID.Return(0)})
	if s.state(user) != task.PendingArgs || len(sent[*wire.Resolved](s, worker2)) != 0 || len(s.pushed(worker)) != 0 {
		t.Fatalf("what uses it is %v", s.state(user))
	}
	s.from(worker2, &wire.Get{ID: call.ID.Return(0)})
	s.report(driver, call, gave("v"))
	if m := sent[*wire.Resolved](s, worker2); len(m) == 0 || string(m[0].Result.Value.Data) != "v" {
		t.Errorf("who waits is told %+v", m)
	}
	if s.state(user) != task.PendingNode {
		t.Errorf("what uses it is %v", s.state(user))
	}
	s.report(driver, call, gave("again"))
	s.wantValue(call.ID.Return(0), "v")
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{call.ID.Return(0)}}, &wire.HangUp{Channel: c})
	s.from(driver, &wire.Cancel{Task: user.ID, Force: true})
	if s.c.tasks.task(call.ID) != nil || s.c.ways.Knows(call.ID) {
		t.Error("nobody can ask for it, and it is kept")
	}
}

// What a call came to may be known when it is told of, and may be an error.
func TestAnAdoptedCallThatHasEnded(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	c := s.channel(driver, a)
	s.wantValue(s.adopt(driver, a, c, 1, gave("v")).ID.Return(0), "v")
	failed := s.adopt(driver, a, c, 2, &wire.CallOutcome{Err: errs.New(errs.CodeTaskFailed, "why")})
	s.wantError(failed.ID.Return(0), errs.CodeTaskFailed)
	if r := s.result(failed.ID.Return(0)); r.Result.Err.Task != failed.ID.String() {
		t.Errorf("the error is of %q", r.Result.Err.Task)
	}
	s.wantError(s.adopt(driver, a, c, 3, &wire.CallOutcome{}).ID.Return(0), errs.CodeReturnMismatch)
	s.wantError(s.adopt(driver, a, c, 4, &wire.CallOutcome{Results: []wire.Result{{Kind: wire.ResultStored, Size: 9}}}).ID.Return(0), errs.CodeObjectLost)
}

// A result that is too large for a message is sealed by the actor's process while the call is elsewhere.
func TestALargeResultOfAnAdoptedCall(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	call := s.adopt(driver, a, s.channel(driver, a), 1, nil)
	id := call.ID.Return(0)
	s.from(worker, &wire.Seal{ID: id, Attempt: 1, Size: 1 << 20})
	if m := told[objectstore.SealObject](s); len(m) != 1 || m[0].ID != id {
		t.Fatalf("the store is told %+v", m)
	}
	s.report(driver, call, &wire.CallOutcome{Results: []wire.Result{{Kind: wire.ResultStored, Size: 1 << 20}}})
	if len(told[objectstore.DropAttempt](s)) != 0 || s.state(call) != task.Finished {
		t.Errorf("it is %v, and the store is to drop %v", s.state(call), told[objectstore.DropAttempt](s))
	}
	h := holds(7)
	h.Handles = []ids.ObjectID{id, a.ID.Return(0)}
	s.rebuildStraight(7, map[ids.ClientID][]wire.Msg{driver: {h}, worker: {&wire.Holdings{Component: wire.ComponentOwner, Epoch: 7, Actors: []ids.ActorID{ids.ActorID(a.ID)}}}})
	if st := s.state(call); st != task.Finished || s.c.object(id).res.Size != 1<<20 {
		t.Errorf("a core made again has it as %v", st)
	}
}

// An actor is not ended while a call of it is elsewhere, by its last handle or by a stop.
func TestAnActorOutlivesItsAdoptedCalls(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	call := s.adopt(driver, a, s.channel(driver, a), 1, nil)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{a.ID.Return(0)}})
	if st := s.c.actors.byID[ids.ActorID(a.ID)].state; st != actor.Alive {
		t.Fatalf("without a handle it is %v", st)
	}
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Stop: true})
	if m := sent[*wire.StopActor](s, worker); len(m) != 0 {
		t.Fatalf("it is closed under the call: %+v", m)
	}
	s.report(driver, call, gave("v"))
	s.closed(worker, a)
	s.wantValue(call.ID.Return(0), "v")
}

// The calls of a process that has ended are asked for where they are. What never came the owner makes, behind what did, in order.
func TestTheOwnerTakesOverTheCallsOfADeadProcess(t *testing.T) {
	s := straightScript(t)
	a, l := s.spawn(counter, worker)
	c := s.channel(worker2, a)
	ran, lost := s.adopt(worker2, a, c, 1, nil), s.adopt(worker2, a, c, 2, nil)
	unsent := s.adopt(worker2, a, 0, 0, nil)
	s.step(ClientGone{Client: worker2})
	var asked []uint64
	for _, m := range sent[*wire.Where](s, worker) {
		if asked = append(asked, m.Numbers...); m.Channel != c || m.Instance != l {
			t.Errorf("asked of channel %d", m.Channel)
		}
	}
	if len(asked) != 3 || asked[0] != 1 || asked[1] != 2 || len(s.pushed(worker)) != 0 {
		t.Fatalf("its host is asked for %v", asked)
	}
	s.from(worker, &wire.Told{Channel: c, No: 1, Outcome: gave("ran")})
	s.wantValue(ran.ID.Return(0), "ran")
	s.from(worker, &wire.Told{Channel: c, No: 2, NeverCame: true}, &wire.Told{Channel: c, No: asked[2], NeverCame: true})
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{lost.ID, unsent.ID}) {
		t.Fatalf("the owner makes %v, want %v", got, []ids.TaskID{lost.ID, unsent.ID})
	}
	if m := sent[*wire.Dropped](s, worker); len(m) != 1 || m[0].Channel != c {
		t.Errorf("of the channel its host is told %+v", m)
	}
	s.done(worker, l, s.attempt(lost), inline("made"))
	s.done(worker, l, s.attempt(unsent), inline("made too"))
	s.wantValue(lost.ID.Return(0), "made")
	s.wantValue(unsent.ID.Return(0), "made too")
}

// When the process of the actor has ended as well, a call may have begun: it is made again if it has a retry.
func TestCallsOfWhichNobodyKnows(t *testing.T) {
	for _, retries := range []int32{0, 1} {
		s := straightScript(t)
		a, l := s.spawn(&wire.TaskOptions{Func: "retried", NumReturns: 1, MaxRestarts: 1, MaxTaskRetries: retries, MaxPendingCalls: -1}, worker)
		c := s.channel(worker2, a)
		sent, unsent := s.adopt(worker2, a, c, 1, nil), s.adopt(worker2, a, 0, 0, nil)
		s.step(ClientGone{Client: worker2})
		s.kill(worker, errs.CodeWorkerCrashed, 0, l)
		if retries == 0 {
			s.wantError(sent.ID.Return(0), errs.CodeActorUnavailable)
			s.wantError(unsent.ID.Return(0), errs.CodeActorUnavailable) // the actor restarts, and keeps none
			continue
		}
		s.step(ClientJoined{Client: 5, Role: wire.RoleWorker, Straight: true})
		l = s.grant(5)
		s.done(5, l, s.executed(5), inline(""))
		if got := s.pushed(5); !slices.Equal(got, []ids.TaskID{sent.ID, unsent.ID}) {
			t.Fatalf("the next instance is sent %v", got)
		}
		if x := s.c.tasks.task(sent.ID); x.tries != 1 {
			t.Errorf("%d retries of it are used", x.tries)
		}
	}
}

// A call of which its host has said how far it came is decided when the instance has ended.
func TestACallThatItsHostSaysHadBegun(t *testing.T) {
	s := straightScript(t)
	a, l := s.spawn(mortal(1), worker)
	c := s.channel(worker2, a)
	begun := s.adopt(worker2, a, c, 1, nil)
	s.step(ClientGone{Client: worker2})
	s.from(worker, &wire.Told{Channel: c, No: 1, Said: wire.SaidBegun})
	if s.state(begun) != task.PendingArgs {
		t.Fatalf("before the end it is %v", s.state(begun))
	}
	s.from(worker, &wire.ActorStopped{Actor: ids.ActorID(a.ID), Lease: l, Err: errs.New(errs.CodePanic, "oh")})
	s.wantError(begun.ID.Return(0), errs.CodeActorUnavailable)
}

// A call that was adopted before it could be sent, and goes by the owner then, is made once; with its number among those that go so.
func TestAnAdoptedCallIsSubmitted(t *testing.T) {
	s := straightScript(t)
	a, l := s.spawn(counter, worker)
	call := s.callSpec(a, 1)
	s.adoptSpec(driver, call, 0, 0, nil)
	s.from(driver, &wire.Submit{Spec: call})
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{call.ID}) {
		t.Fatalf("pushed %v", got)
	}
	s.from(driver, &wire.Submit{Spec: call})
	if got := s.pushed(worker); len(got) != 0 {
		t.Fatalf("pushed again: %v", got)
	}
	next := s.call(a, 2)
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{next.ID}) {
		t.Errorf("the call behind it: pushed %v", got)
	}
	s.report(driver, call, gave("not so"))
	s.done(worker, l, s.attempt(call), inline("v"))
	s.wantValue(call.ID.Return(0), "v")
}

// Only a cancel with force ends a call that is elsewhere. Another one counts when the owner is to make it.
func TestAnAdoptedCallIsCancelled(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	c := s.channel(worker2, a)
	calls := []*wire.TaskSpec{s.adopt(worker2, a, c, 1, nil), s.adopt(worker2, a, c, 2, nil), s.adopt(worker2, a, c, 3, nil)}
	for i, call := range calls {
		s.from(driver, &wire.Cancel{Task: call.ID, Force: i == 0})
	}
	s.wantError(calls[0].ID.Return(0), errs.CodeCancelled)
	s.report(worker2, calls[0], gave("late"))
	s.wantError(calls[0].ID.Return(0), errs.CodeCancelled)
	s.report(worker2, calls[1], gave("v"))
	s.wantValue(calls[1].ID.Return(0), "v")
	s.step(ClientGone{Client: worker2})
	s.from(worker, &wire.Told{Channel: c, No: 3, NeverCame: true})
	s.wantError(calls[2].ID.Return(0), errs.CodeCancelled)
}

// A job that ends takes its adopted calls with it.
func TestAdoptedCallsEndWithTheJob(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	c := s.channel(driver, a)
	s.adopt(driver, a, c, 1, nil)
	s.adopt(driver, a, 0, 0, nil)
	s.step(ClientGone{Client: driver})
	s.from(worker, &wire.ActorStopped{Actor: ids.ActorID(a.ID)})
	if !s.ended() {
		t.Error("the job does not end")
	}
	if n := s.c.tasks.elsewhere; n != 0 {
		t.Errorf("%d tasks are elsewhere", n)
	}
}

// A core made again has the calls that had ended, and makes none of those that had not: their process tells of them anew.
func TestAdoptedCallsOutliveTheCore(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	c := s.channel(driver, a)
	ended, failed := s.adopt(driver, a, c, 1, gave("v")), s.adopt(driver, a, c, 2, &wire.CallOutcome{Err: errs.New(errs.CodeTaskFailed, "why")})
	open, told := s.adopt(driver, a, c, 3, nil), s.adopt(driver, a, c, 4, nil)
	h := holds(7)
	h.Handles = []ids.ObjectID{a.ID.Return(0), ended.ID.Return(0), failed.ID.Return(0), told.ID.Return(0)}
	s.rebuildStraight(7, map[ids.ClientID][]wire.Msg{
		driver: {&wire.Adopt{Spec: told, Channel: c, No: 4, Order: 4}, &wire.Adopt{Spec: ended, Channel: c, No: 1, Order: 1, Outcome: gave("other")}, h},
		worker: {&wire.Holdings{Component: wire.ComponentOwner, Epoch: 7, Actors: []ids.ActorID{ids.ActorID(a.ID)}}},
	})
	if len(s.pushed(worker)) != 0 || s.state(open) != task.None {
		t.Errorf("pushed %v; what nobody tells of is %v", s.pushed(worker), s.state(open))
	}
	s.wantValue(ended.ID.Return(0), "v")
	s.wantError(failed.ID.Return(0), errs.CodeTaskFailed)
	s.report(driver, told, gave("later"))
	s.wantValue(told.ID.Return(0), "later")
}

// A rebuilt core looks at nothing that may need an adopted call before all clients have told of theirs: neither at a task of the log, nor at what another client waits for.
func TestWhatNeedsAnAdoptedCallOutlivesTheCore(t *testing.T) {
	s := straightScript(t)
	a, l := s.spawn(counter, worker)
	c := s.channel(driver, a)
	call := s.adopt(driver, a, c, 1, nil)
	user := s.submit(simple, wire.Arg{Ref: call.ID.Return(0)})
	s.from(worker2, &wire.AddRef{ID: call.ID.Return(0)}, &wire.Get{ID: call.ID.Return(0)})
	late := s.spec(simple, wire.Arg{Ref: call.ID.Return(0)})
	s.rebuildStraight(7, map[ids.ClientID][]wire.Msg{
		driver: {
			&wire.Submit{Spec: late}, // the core before has not taken it
			&wire.Linked{Actor: ids.ActorID(a.ID), Instance: l, Channel: c}, &wire.Adopt{Spec: call, Order: 1, Channel: c, No: 1},
			&wire.Holdings{Component: wire.ComponentOwner, Epoch: 7, Handles: []ids.ObjectID{a.ID.Return(0), user.ID.Return(0), late.ID.Return(0)}},
		},
		worker:  {&wire.Holdings{Component: wire.ComponentOwner, Epoch: 7, Actors: []ids.ActorID{ids.ActorID(a.ID)}}},
		worker2: {&wire.Holdings{Component: wire.ComponentOwner, Epoch: 7, Handles: []ids.ObjectID{call.ID.Return(0)}, Gets: []wire.Get{{ID: call.ID.Return(0)}}}},
	})
	if got := sent[*wire.Resolved](s, worker2); s.state(user) != task.PendingArgs || s.state(late) != task.PendingArgs || len(got) != 0 {
		t.Fatalf("the tasks are %v and %v, and who waits is told %+v", s.state(user), s.state(late), got)
	}
	s.report(driver, call, gave("x"))
	if got := sent[*wire.Resolved](s, worker2); s.state(user) == task.PendingArgs || s.state(late) == task.PendingArgs || len(got) != 1 || got[0].Result.Kind != wire.ResultInline {
		t.Errorf("the tasks are %v and %v, and who waits is told %+v", s.state(user), s.state(late), got)
	}
}

// A call whose messages brought two cores down has that for its result, and its process is answered.
func TestADroppedAdoption(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	call := s.callSpec(a, 1)
	h := holds(7)
	h.Handles = []ids.ObjectID{a.ID.Return(0), call.ID.Return(0)}
	s.rebuildStraight(7, map[ids.ClientID][]wire.Msg{driver: {}, worker: {}})
	s.step(Poisoned{Client: driver, Msgs: []wire.Msg{&wire.Adopt{Spec: call}, &wire.AskWay{Actor: ids.ActorID(a.ID)}}, Err: errs.New(errs.CodeComponentFailed, "twice")})
	if len(sent[*wire.Adopted](s, driver)) != 1 || len(sent[*wire.Way](s, driver)) != 1 || len(sent[*wire.Bye](s, driver)) != 0 {
		t.Errorf("its process is told %+v", s.out)
	}
	s.from(driver, h)
	s.from(worker, &wire.Holdings{Component: wire.ComponentOwner, Epoch: 7, Actors: []ids.ActorID{ids.ActorID(a.ID)}})
	s.wantError(call.ID.Return(0), errs.CodeComponentFailed)
}

// A call on a channel of which the core does not know may have begun: it is not made for want of who knows.
func TestACallOnAChannelThatIsNotKnown(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	call := s.adopt(worker2, a, 77, 1, nil)
	s.step(ClientGone{Client: worker2})
	s.wantError(call.ID.Return(0), errs.CodeActorUnavailable)
}

// What is logged of the end of an adopted call is nothing unless all of it is there: a crash between its records has no call run again.
func TestHalfOfAnEndInTheLogIsNothing(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	c := s.channel(driver, a)
	s.adopt(driver, a, c, 1, gave("first")) // the options are in the log from then on
	call := s.adopt(driver, a, c, 2, gave("v"))
	delete(s.logs, s.cookie)
	h, w := holds(7), holds(7)
	h.Handles, w.Actors = []ids.ObjectID{a.ID.Return(0)}, []ids.ActorID{ids.ActorID(a.ID)}
	s.rebuildStraight(7, map[ids.ClientID][]wire.Msg{driver: {h}, worker: {w}})
	if got := s.pushed(worker); len(got) != 0 || s.state(call) != task.None {
		t.Errorf("it is %v, and pushed are %v", s.state(call), got)
	}
}

// Calls of a caller that uses both ways are not held up by those that went straight.
func TestCallsByTheOwnerDoNotWaitForStraightOnes(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	s.adopt(driver, a, s.channel(driver, a), 1, nil)
	first, second := s.call(a, 1), s.call(a, 2)
	if x := s.c.tasks.task(first.ID); x.state != task.Submitted || s.state(second) != task.Submitted {
		t.Errorf("they are %v and %v", s.state(first), s.state(second))
	}
}

// A call for an argument that is not there yet is made by the owner when it is, and those of its caller behind it then.
func TestATakenOverCallWaitsForItsArgument(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	arg := s.submit(simple)
	first := s.callSpec(a, 1, wire.Arg{Ref: arg.ID.Return(0)})
	s.adoptSpec(worker2, first, 0, 0, nil)
	s.from(driver, &wire.AddRef{ID: first.ID.Return(0)})
	second := s.adopt(worker2, a, 0, 0, nil)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{arg.ID.Return(0)}})
	s.step(ClientGone{Client: worker2})
	if got := s.pushed(worker); len(got) != 0 {
		t.Fatalf("pushed %v", got)
	}
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("arg"))
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{first.ID, second.ID}) {
		t.Errorf("pushed %v, want %v", got, []ids.TaskID{first.ID, second.ID})
	}
}
