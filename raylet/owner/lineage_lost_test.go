package owner

import (
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

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
	a := objectstore.ArgsPinned{Task: p[0].Task, Attempt: p[0].Attempt, Ask: p[0].Ask}
	for i, id := range p[0].IDs {
		a.Values = append(a.Values, objectstore.PinnedValue{ID: id, Extent: wire.Extent{Off: uint64(64 * (i + 1)), Size: 8}})
	}
	s.step(FromStore{Msg: a})
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
	s.step(FromStore{Msg: objectstore.ArgsWait{Task: b.ID, Attempt: 1, Ask: p[0].Ask}})
	if s.state(b) != task.PendingStore {
		t.Errorf("while the store waits it is %v", s.state(b))
	}
	s.step(FromStore{Msg: objectstore.ArgsPinned{Task: b.ID, Attempt: 1, Ask: p[0].Ask, Values: []objectstore.PinnedValue{{ID: a.ID.Return(0), Extent: wire.Extent{Off: 64, Size: 8}}}}})
	x := s.executed(worker)
	if len(p[0].IDs) != 1 || p[0].Worker != worker || len(x.Args) != 2 || x.Args[1].Index != 1 || x.Args[1].Extent.Off != 64 || x.Args[1].Result.Kind != wire.ResultStored {
		t.Fatalf("pinned %+v, pushed %+v", p, x.Args)
	}
	s.done(worker, l, x, inline("v"))
	if u := told[objectstore.UnpinArgs](s); len(u) != 1 || u[0].Attempt != 1 {
		t.Errorf("the pins stay: %+v", u)
	}
}

// Pins that fell with a lease that went back may be answered late. Their extents may hold other bytes by then.
func TestAnAnswerToWithdrawnPinsIsNotTaken(t *testing.T) {
	s := newScript(t, Config{})
	a := s.makeStored(simple)
	b := s.submit(simple, wire.Arg{Ref: a.ID.Return(0)})
	answer := func(p objectstore.PinArgs, off uint64) {
		s.step(FromStore{Msg: objectstore.ArgsPinned{Task: p.Task, Attempt: p.Attempt, Ask: p.Ask, Values: []objectstore.PinnedValue{{ID: p.IDs[0], Extent: wire.Extent{Off: off, Size: 8}}}}})
	}
	old := s.grant(worker)
	before := told[objectstore.PinArgs](s)[0]
	s.step(FromSched{sched.Reclaim{Lease: old}})
	if u := told[objectstore.UnpinArgs](s); len(u) != 1 || u[0].Task != b.ID {
		t.Fatalf("with its lease the pins fall: %+v", u)
	}
	s.grant(worker)
	after := told[objectstore.PinArgs](s)[0]
	answer(before, 64)
	if x := sent[*wire.Exec](s, worker); len(x) != 0 || s.state(b) != task.PendingFetch {
		t.Fatalf("the answer to pins that fell is taken: it is %v, pushed %+v", s.state(b), x)
	}
	answer(after, 128)
	if x := s.executed(worker); x.Args[0].Extent.Off != 128 {
		t.Errorf("its argument is %+v", x.Args[0])
	}
}

// A store that was rebuilt is asked for pins again. What it says to the first question then, that an argument is gone for one, is not the answer to the second:
// the pins of that would stay.
func TestAnAnswerFromBeforeTheStoresRestartIsNotTaken(t *testing.T) {
	s := newScript(t, Config{})
	a := s.makeStored(simple)
	id := a.ID.Return(0)
	b := s.submit(simple, wire.Arg{Ref: id})
	s.grant(worker)
	before := told[objectstore.PinArgs](s)[0]
	s.step(FromStore{Msg: objectstore.Inventory{Job: 1, Objects: []objectstore.SealedInfo{{ID: id, Attempt: 1, Size: 8}}}})
	after := told[objectstore.PinArgs](s)
	if len(after) != 1 {
		t.Fatalf("the store is asked %+v", after)
	}
	s.step(FromStore{Msg: objectstore.Lost{ID: s.root.Put(9), Task: b.ID, Attempt: before.Attempt, Ask: before.Ask}})
	if s.state(b) != task.PendingFetch {
		t.Fatalf("it is %v", s.state(b))
	}
	s.step(FromStore{Msg: objectstore.ArgsPinned{Task: b.ID, Attempt: after[0].Attempt, Ask: after[0].Ask, Values: []objectstore.PinnedValue{{ID: id, Extent: wire.Extent{Off: 64, Size: 8}}}}})
	s.executed(worker)
}

// Arguments that are intact and have no room fail the task, or the actor, that takes them, and
// nothing else; its lease is free for the next.
func TestArgumentsWithoutRoomFailTheirTaskAlone(t *testing.T) {
	s := newScript(t, Config{})
	put := s.root.Put(1)
	s.from(driver, &wire.Seal{ID: put, Size: 8})
	refused := func(id ids.TaskID) {
		t.Helper()
		p := told[objectstore.PinArgs](s)
		if len(p) != 1 || p[0].Task != id {
			t.Fatalf("the store is asked %+v", p)
		}
		s.step(FromStore{Msg: objectstore.ArgsWait{Task: id, Attempt: p[0].Attempt, Ask: p[0].Ask}})
		s.step(FromStore{Msg: objectstore.ArgsRefused{Task: id, Attempt: p[0].Attempt, Ask: p[0].Ask, Err: errs.New(errs.CodeStoreFull, "9 objects of 90 bytes")}})
	}
	b := s.submit(simple, wire.Arg{Ref: put})
	l := s.grant(worker)
	refused(b.ID)
	s.wantError(b.ID.Return(0), errs.CodeStoreFull)
	if err := s.result(b.ID.Return(0)).Result.Err; !strings.Contains(err.Msg, "the arguments of simple have no room: 9 objects of 90 bytes") {
		t.Errorf("it says %q", err.Msg)
	}
	s.step(FromStore{Msg: objectstore.ArgsRefused{Task: b.ID, Attempt: 1, Err: errs.New(errs.CodeStoreFull, "once more")}}) // too late
	next := s.submit(simple, wire.Arg{Ref: put})                                                                            // over the same lease
	s.pinned(next)
	s.done(worker, l, s.executed(worker), inline("v"))
	if s.state(next) != task.Finished {
		t.Errorf("the next task is %v", s.state(next))
	}
	s.step(FromSched{sched.Reclaim{Lease: l}})

	a := s.spec(&wire.TaskOptions{Func: "A"}, wire.Arg{Ref: put})
	a.Kind, a.Actor = wire.TaskActorCreate, ids.ActorID(a.ID)
	s.from(driver, &wire.Submit{Spec: a})
	l = s.grant(worker)
	refused(a.ID)
	if r := s.c.actors.byID[a.Actor]; r != nil && !r.ended() {
		t.Error("an actor lives whose creation has no room")
	}
	s.step(FromSched{sched.Reclaim{Lease: l}})
	if r := told[sched.Return](s); len(r) != 1 || r[0].Lease != l {
		t.Errorf("the lease of the actor stays: %+v", s.out)
	}
	s.from(driver, &wire.Get{ID: put, Fetch: true})
	if p := told[objectstore.PinForGet](s); len(p) != 1 || p[0].ID != put {
		t.Errorf("the argument cannot be read: %+v", s.out)
	}
	if s.c.stats.Lost != 0 {
		t.Errorf("%d objects are taken for lost", s.c.stats.Lost)
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
	s.step(FromStore{Msg: objectstore.Lost{ID: b.ID.Return(0), Client: driver}})
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
	s.step(FromStore{Msg: objectstore.Lost{ID: put, Client: driver, Err: errs.New(errs.CodeObjectLost, "checksum")}})
	s.wantError(put, errs.CodeObjectLost)

	often := s.makeStored(&wire.TaskOptions{Func: "once", NumReturns: 1, MaxRetries: 3}) // the class's options are its
	once := s.makeStored(&wire.TaskOptions{Func: "once", NumReturns: 1})
	s.step(FromStore{Msg: objectstore.Lost{ID: once.ID.Return(0)}})
	s.wantError(once.ID.Return(0), errs.CodeReconstructionFailed)
	s.step(FromStore{Msg: objectstore.Lost{ID: often.ID.Return(0)}})
	if s.state(often) != task.PendingNode {
		t.Errorf("one that may run again is %v", s.state(often))
	}

	small := newScript(t, Config{MaxLineageBytes: 1})
	a := small.makeStored(simple)
	small.step(FromStore{Msg: objectstore.Lost{ID: a.ID.Return(0)}})
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
	return wire.ExecTask{Spec: spec, Attempt: s.c.tasks.task(spec.ID).start}
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
	came := make([]byte, 2004) // as a message has it, in one piece
	copy(came, "meta")
	meta, data := came[:4:4], came[4:]
	data[7] = 7
	s.from(driver, &wire.PutValue{ID: put, Value: wire.Value{Meta: meta, Data: data}})
	if p := told[objectstore.Pack](s); len(p) != 1 || len(p[0].Values) != 1 {
		t.Fatalf("over the budget: %+v", p)
	}
	s.step(FromStore{Msg: objectstore.Packed{ID: put, Size: 2000}})
	if s.c.budget.inline != 0 {
		t.Errorf("%d bytes are still in memory", s.c.budget.inline)
	}
	clear(meta)
	if kept := s.c.object(put).res.Value.Meta; string(kept) != "meta" {
		t.Errorf("what is kept is %q: a part of the message, of which nothing goes then", kept)
	}
	s.step(FromStore{Msg: objectstore.Lost{ID: put, Client: driver}})
	var ask Effect
	for _, e := range s.out {
		if e.Kind == Fetch {
			ask = e
		}
	}
	s.step(Fetched{Token: ask.Token, Record: s.logs[ask.Position()]})
	r := sent[*wire.Resolved](s, driver)
	if len(r) != 1 || r[0].Result.Kind != wire.ResultInline || r[0].Result.Value.Data[7] != 7 {
		t.Errorf("the get is answered with %+v", r)
	}
}

// Inline values that are too much for a message are packed, and a task waits for that; however long the store has no room for them.
func TestInlineArgumentsThatAreTooManyGoThroughTheStore(t *testing.T) {
	s := newScript(t, Config{MessageArgs: 20})
	var put [4]ids.ObjectID
	for i := range put {
		put[i] = s.root.Put(uint32(i + 1))
		s.from(driver, &wire.PutValue{ID: put[i], Value: wire.Value{Data: []byte("ten bytes!")}})
	}
	light := s.submit(simple, wire.Arg{Ref: put[0]}, wire.Arg{Ref: put[1]})
	l := s.grant(worker)
	if x := s.executed(worker); x.Spec.ID != light.ID || len(x.Args) != 2 || x.Args[1].Result.Kind != wire.ResultInline {
		t.Errorf("what fits is sent as %+v", x)
	}
	s.done(worker, l, s.attempt(light), inline("v"))
	heavy := s.submit(simple, wire.Arg{Ref: put[0]}, wire.Arg{Ref: put[1]}, wire.Arg{Ref: put[1]}, wire.Arg{Ref: put[2]})
	asked := func() []objectstore.PackValue {
		t.Helper()
		p := told[objectstore.Pack](s)
		if len(p) != 1 || s.state(heavy) != task.PendingArgs {
			t.Fatalf("the store is asked %+v, the task is %v", p, s.state(heavy))
		}
		return p[0].Values
	}
	if vs := asked(); len(vs) != 3 {
		t.Fatalf("%d values are packed", len(vs))
	}
	also := s.submit(simple, wire.Arg{Ref: put[2]}, wire.Arg{Ref: put[3]}) // it has room in a message
	s.done(worker, l, s.executed(worker), inline("v"))
	s.step(FromStore{Msg: objectstore.Packed{ID: put[1], Size: 10}})
	s.pass(packRetry + time.Millisecond) // the others had no room: what is left fits
	l = s.grant(worker)
	s.pinned(heavy)
	x := s.executed(worker)
	kinds := map[wire.ResultKind]int{}
	for _, a := range x.Args {
		kinds[a.Result.Kind]++
	}
	if x.Spec.ID != heavy.ID || kinds[wire.ResultInline] != 2 || kinds[wire.ResultStored] != 2 {
		t.Errorf("the task is sent with %+v", x.Args)
	}
	s.done(worker, l, x, inline("v"))
	if s.state(also) != task.Finished || s.state(heavy) != task.Finished || s.c.budget.packing != 0 {
		t.Errorf("the tasks are %v and %v, %d bytes are being packed", s.state(also), s.state(heavy), s.c.budget.packing)
	}

	heavy = s.submit(simple, wire.Arg{Ref: put[0]}, wire.Arg{Ref: put[2]}, wire.Arg{Ref: put[3]})
	if vs := asked(); len(vs) != 3 {
		t.Fatalf("%d values are packed", len(vs))
	}
	s.pass(packRetry + time.Millisecond)
	s.grant(worker)
	if vs := asked(); len(vs) != 3 {
		t.Errorf("once more %d values are packed", len(vs))
	}
	s.from(driver, &wire.Cancel{Task: heavy.ID})
	for i := range put {
		s.step(FromStore{Msg: objectstore.Packed{ID: put[i], Size: 10}})
	}
	s.wantError(heavy.ID.Return(0), errs.CodeCancelled)

	a, _ := s.spawn(&wire.TaskOptions{Func: "A"}, worker2)
	var more [4]ids.ObjectID
	for i := range more {
		more[i] = s.root.Put(uint32(i + 11))
		s.from(driver, &wire.PutValue{ID: more[i], Value: wire.Value{Data: []byte("ten bytes!")}})
	}
	first := s.call(a, 0, wire.Arg{Ref: more[0]}, wire.Arg{Ref: more[1]}, wire.Arg{Ref: more[2]})
	if len(told[objectstore.Pack](s)) != 1 {
		t.Fatalf("the call's arguments are not packed: %+v", s.out)
	}
	second := s.call(a, 1)
	if p := s.pushed(worker2); len(p) != 0 {
		t.Errorf("%v overtakes the call before it", p)
	}
	for _, id := range more[:2] {
		s.step(FromStore{Msg: objectstore.Packed{ID: id, Size: 10}})
	}
	s.step(FromStore{Msg: objectstore.Packed{ID: more[2], Size: 10}})
	s.pinned(first)
	if s.state(first) != task.Submitted || s.state(second) != task.Submitted {
		t.Errorf("the calls are %v and %v", s.state(first), s.state(second))
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
			s.step(Fetched{Token: e.Token, Record: s.logs[e.Position()]})
		}
	}
	if ran != 1501 {
		t.Errorf("%d of 1501 tasks ran", ran)
	}
}

// Over budget, each queued task is looked at when it has come and not in every step again, whether its
// spec can go or not.
func TestPagingLooksAtATaskTwiceAtMost(t *testing.T) {
	s := newScript(t, Config{InlineBudget: 64 << 10})
	s.from(driver, &wire.PutValue{ID: s.root.Put(1), Value: wire.Value{Data: []byte("x")}})
	const n = 3000
	for i := range n {
		arg := wire.Arg{Value: wire.Value{Data: make([]byte, 1000)}}
		if i%3 != 0 {
			arg.Value.Refs = []ids.ObjectID{s.root.Put(1)} // it stays
		}
		spec := s.spec(simple, arg)
		s.c.Step(s.now, FromClient{driver, []wire.Msg{&wire.Submit{Spec: spec}}})
		s.c.tasks.task(spec.ID).cookie = uint64(i + 1) // as the log does when the step is over
	}
	if s.c.budget.looked > 2*n {
		t.Errorf("%d tasks were looked at %d times", n, s.c.budget.looked)
	}
	if out := s.c.stats.PagedOut; out < (n-pageKeep)/3-100 || out > n/3 {
		t.Errorf("%d specs went, a third of %d may", out, n-pageKeep)
	}
	if err := s.c.Validate(); err != nil {
		t.Error(err)
	}
}

// A job ends, and its core is rebuilt before that is over: what it had freed by then is no loss where a store does not have it.
func TestNothingIsLostOfAJobThatHasEnded(t *testing.T) {
	s := newScript(t, Config{})
	a := s.makeStored(simple)
	s.c = s.rebuilt()
	s.step(Restored{Epoch: 7, Clients: []ClientJoined{{Client: worker, Role: wire.RoleWorker}}})
	s.step(FromStore{Msg: objectstore.Lost{ID: a.ID.Return(0), Err: errs.New(errs.CodeObjectLost, "it was freed")}})
	s.from(worker, holds(7))
	if s.c.stats.Lost != 0 {
		t.Errorf("%d objects are lost", s.c.stats.Lost)
	}
}

// A task runs again for one of its results, and the node that has the other is gone while a rebuilt core does not know yet who holds it: the task makes it too.
func TestALostResultIsAwaitedWhoseTaskRunsAnyway(t *testing.T) {
	s := newScript(t, Config{})
	far := s.elsewhere(farNode, 1)
	spec := s.submit(&wire.TaskOptions{Func: "two", NumReturns: 2, MaxRetries: 3})
	first, second := spec.ID.Return(0), spec.ID.Return(1)
	l := s.grant(far)
	x := s.executed(far)
	s.from(far, &wire.Seal{ID: first, Attempt: 1, Size: 8}, &wire.Seal{ID: second, Attempt: 1, Size: 8})
	s.done(far, l, x, stored(), stored())
	s.step(FromSched{sched.Reclaim{Lease: l}})
	s.step(FromStore{Node: farNode, Msg: objectstore.Lost{ID: second, Err: errs.New(errs.CodeObjectLost, "checksum")}})
	if s.state(spec) != task.PendingNode {
		t.Fatalf("the task is %v", s.state(spec))
	}

	s.rebuildWith(Restored{Epoch: 7, Nodes: []ids.Home{farNode}})
	s.step(NodeGone{Node: farNode, Err: errs.New(errs.CodeWorkerCrashed, "gone")})
	h := holds(7)
	h.Handles = []ids.ObjectID{first, second}
	s.from(driver, h)
	s.from(worker, holds(7))
	s.from(worker2, holds(7))
	l = s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("first"), inline("second"))
	s.from(driver, &wire.Get{ID: first, Fetch: true})
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || string(r[0].Result.Value.Data) != "first" {
		t.Errorf("the get of it has %+v", r)
	}
}
