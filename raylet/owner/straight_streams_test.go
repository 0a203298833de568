package owner

import (
	"math"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// straightStream is a stream of an actor that a client has sent on a channel, at most two items ahead of its reader.
func (s *script) straightStream(cl ids.ClientID, a *wire.TaskSpec, c uint64) *wire.TaskSpec {
	s.t.Helper()
	s.calls++
	spec := s.callSpec(a, s.calls)
	spec.Opts = &wire.TaskOptions{Func: "rows", NumReturns: wire.Streaming, Backpressure: 2}
	s.adoptSpec(cl, spec, 0, 0, nil)
	s.adoptSpec(cl, spec, c, s.calls, nil)
	return spec
}

// item has the actor's process make an item.
func (s *script) item(spec *wire.TaskSpec, attempt, i uint32) {
	s.t.Helper()
	s.from(worker, &wire.StreamItem{Task: spec.ID, Attempt: attempt, Index: i, Result: inline("row")})
}

// next asks for an item, and gives the answer; nil: there is none yet.
func (s *script) next(cl ids.ClientID, spec *wire.TaskSpec, i uint32) *wire.StreamItem {
	s.t.Helper()
	s.from(cl, &wire.StreamNext{Task: spec.ID, Index: i, Leaves: true})
	got := sent[*wire.StreamItem](s, cl)
	if len(got) > 1 {
		s.t.Fatalf("%d answers", len(got))
	}
	if len(got) == 0 {
		return nil
	}
	return got[0]
}

func (s *script) wantRow(cl ids.ClientID, spec *wire.TaskSpec, i uint32) {
	s.t.Helper()
	if m := s.next(cl, spec, i); m == nil || m.Result.Kind != wire.ResultInline {
		s.t.Fatalf("item %d is %+v", i, m)
	}
	s.from(cl, &wire.AddRef{ID: spec.ID.Return(int(i))})
}

// wantEnd asks for what is behind the last item.
func (s *script) wantEnd(cl ids.ClientID, spec *wire.TaskSpec, i uint32, code errs.Code) {
	s.t.Helper()
	m := s.next(cl, spec, i)
	switch {
	case m == nil:
		s.t.Fatalf("there is no end behind item %d", i)
	case code == 0 && m.Result.Kind != wire.ResultNone, code != 0 && (m.Result.Err == nil || m.Result.Err.Code != code):
		s.t.Fatalf("behind item %d is %+v", i, m.Result)
	}
}

// The items of a stream that is elsewhere come from the actor's process, which hears how far its readers are. What its caller says of the end ends it.
func TestAStreamThatIsElsewhere(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	spec := s.straightStream(driver, a, s.channel(driver, a))
	if s.next(driver, spec, 0) != nil {
		t.Error("an item is there that was not made")
	}
	s.item(spec, 2, 0) // of no attempt that there is
	if got := sent[*wire.StreamAck](s, worker); len(got) != 1 || got[0].Consumed != math.MaxUint32 {
		t.Errorf("who makes it for nobody hears %v", got)
	}
	s.item(spec, 1, 0)
	if got := sent[*wire.StreamItem](s, driver); len(got) != 1 || got[0].Index != 0 {
		t.Errorf("who waits for the first hears %v", got)
	}
	if got := sent[*wire.StreamAck](s, worker); len(got) != 1 || got[0].Consumed != 1 {
		t.Errorf("its producer hears %v", got)
	}
	s.from(driver, &wire.AddRef{ID: spec.ID.Return(0)})
	s.item(spec, 1, 1)
	s.wantRow(driver, spec, 1)
	s.report(driver, spec, &wire.CallOutcome{Items: 2})
	s.wantEnd(driver, spec, 2, 0)
	if st := s.state(spec); st != task.Finished {
		t.Errorf("it is %v", st)
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0), spec.ID.Return(1), spec.ID.Stream()}})
	if s.c.tasks.task(spec.ID) != nil || s.c.ways.Knows(spec.ID) {
		t.Error("nobody can ask for it, and it is kept")
	}
	short := s.straightStream(driver, a, 1)
	s.item(short, 1, 0)
	s.report(driver, short, &wire.CallOutcome{Items: 2})
	s.wantEnd(driver, short, 1, errs.CodeReturnMismatch)
	failed := s.straightStream(driver, a, 1)
	s.item(failed, 1, 0)
	s.report(driver, failed, &wire.CallOutcome{Err: errs.New(errs.CodeTaskFailed, "it broke")})
	s.wantRow(driver, failed, 0)
	s.wantEnd(driver, failed, 1, errs.CodeTaskFailed)
}

// A stream that its caller makes again keeps the items of the attempt before.
func TestAStreamThatIsElsewhereIsMadeAgain(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(mortal(1), worker)
	c := s.channel(driver, a)
	spec := s.straightStream(driver, a, c)
	s.item(spec, 1, 0)
	s.wantRow(driver, spec, 0)
	s.from(driver, &wire.Adopt{Spec: spec, Order: 1, Channel: c, No: 2, Tries: 1})
	s.item(spec, 1, 1)
	if got := sent[*wire.StreamAck](s, worker); len(got) != 1 || got[0].Consumed != math.MaxUint32 {
		t.Errorf("an attempt that was left behind hears %v", got)
	}
	s.item(spec, 2, 0)
	if got := sent[*wire.StreamAck](s, worker); len(got) != 1 || got[0].Consumed != 1 {
		t.Errorf("the next one hears %v", got)
	}
	s.item(spec, 2, 1)
	s.wantRow(driver, spec, 1)
	s.report(driver, spec, &wire.CallOutcome{Items: 2})
	s.wantEnd(driver, spec, 2, 0)
}

// A stream that nobody reads, or with more items than there may be, is cancelled where it is.
func TestAStreamThatIsElsewhereIsCancelled(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	c := s.channel(driver, a)
	left := s.straightStream(driver, a, c)
	s.item(left, 1, 0)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{left.ID.Stream()}})
	if got := sent[*wire.CancelCall](s, driver); len(got) != 1 || got[0].Task != left.ID {
		t.Errorf("its process hears %v", got)
	}
	if got := sent[*wire.StreamAck](s, worker); len(got) != 1 || got[0].Consumed != math.MaxUint32 {
		t.Errorf("its producer hears %v", got)
	}
	s.report(driver, left, &wire.CallOutcome{Err: errs.New(errs.CodeCancelled, "it was")})
	if s.c.tasks.task(left.ID) != nil {
		t.Error("it is kept")
	}
	endless := s.straightStream(driver, a, c)
	s.item(endless, 1, maxReturns)
	if got := sent[*wire.CancelCall](s, driver); len(got) != 1 || got[0].Task != endless.ID || !got[0].Wish.Insist {
		t.Errorf("its process hears %v", got)
	}
	s.wantEnd(driver, endless, 0, errs.CodeInvalid)
	read := s.straightStream(driver, a, c)
	s.item(read, 1, 0)
	s.from(driver, &wire.Cancel{Task: read.ID})
	if got := sent[*wire.StreamAck](s, worker); len(got) != 1 || got[0].Consumed != math.MaxUint32 {
		t.Errorf("the producer of one that is cancelled hears %v", got)
	}
	s.report(driver, read, &wire.CallOutcome{Err: errs.New(errs.CodeCancelled, "it was")})
	s.wantRow(driver, read, 0)
	s.wantEnd(driver, read, 1, errs.CodeCancelled)
}

// An item is lost that an attempt has passed, which waits for its reader: it is told to end, and the owner makes the stream again, if a retry is left.
func TestAStreamThatIsElsewhereLosesAnItem(t *testing.T) {
	for _, retries := range []int32{0, 1} {
		s := straightScript(t)
		a, l := s.spawn(&wire.TaskOptions{Func: "retried", NumReturns: 1, MaxRestarts: 1, MaxTaskRetries: retries, MaxPendingCalls: -1}, worker)
		spec := s.straightStream(driver, a, s.channel(driver, a))
		s.streamStored(spec, 1, 0, 2)
		s.from(driver, &wire.Get{ID: spec.ID.Return(0), Fetch: true})
		s.step(FromStore{Msg: objectstore.Lost{ID: spec.ID.Return(0), Client: driver}})
		if got := sent[*wire.CancelCall](s, driver); len(got) != int(retries) {
			t.Fatalf("%d retries: its process is told %d times to end it", retries, len(got))
		}
		if retries == 0 {
			continue
		}
		s.report(driver, spec, &wire.CallOutcome{Err: errs.New(errs.CodeCancelled, "it was")})
		if got := s.pushed(worker); len(got) != 1 || got[0] != spec.ID {
			t.Fatalf("the owner makes %v", got)
		}
		x := s.attempt(spec)
		if x.Attempt < 2 {
			t.Errorf("as attempt %d", x.Attempt)
		}
		s.streamStored(spec, x.Attempt, 0, 3)
		s.from(worker, &wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Items: 3})
		s.wantEnd(driver, spec, 3, 0)
	}
}

// A core that was made again has the items that there were, and goes on when it has heard of the stream; what its process says of the end it takes behind the items.
// Where nobody speaks of it, it fails.
func TestACoreMadeAgainKeepsAStreamThatIsElsewhere(t *testing.T) {
	for _, heard := range []bool{true, false} {
		s := straightScript(t)
		a, l := s.spawn(counter, worker)
		c := s.channel(driver, a)
		spec := s.straightStream(driver, a, c)
		s.item(spec, 1, 0)
		s.item(spec, 1, 1)
		s.wantRow(driver, spec, 0)
		h, w := holds(7), holds(7)
		h.Handles = []ids.ObjectID{a.ID.Return(0), spec.ID.Return(0), spec.ID.Stream()}
		w.Actors = []ids.ActorID{ids.ActorID(a.ID)}
		items := []wire.Msg{w}
		says := []wire.Msg{h}
		if heard {
			says = []wire.Msg{&wire.Linked{Actor: ids.ActorID(a.ID), Instance: l, Channel: c}, &wire.Adopt{Spec: spec, Order: 1, Channel: c, No: 1}, h, &wire.Adopt{Spec: spec, Order: 1, Outcome: &wire.CallOutcome{Items: 3}}}
			items = []wire.Msg{&wire.StreamItem{Task: spec.ID, Attempt: 1, Index: 2, Result: inline("row")}, w}
		}
		s.rebuildStraight(7, map[ids.ClientID][]wire.Msg{worker2: items, driver: says, worker: {w}})
		s.wantRow(driver, spec, 1)
		if heard {
			s.wantRow(driver, spec, 2)
			s.wantEnd(driver, spec, 3, 0)
		} else {
			s.wantEnd(driver, spec, 2, errs.CodeActorUnavailable)
		}
	}
}

// A stored item that was taken and let go of is not needed any more: a rebuilt core does not miss it in the store.
func TestARebuiltCoreDoesNotMissAnItemThatWasFreed(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "rows", NumReturns: wire.Streaming})
	l := s.grant(worker)
	s.streamStored(spec, 1, 0, 2)
	s.from(driver, &wire.StreamNext{Task: spec.ID, Leaves: true})
	s.from(driver, &wire.AddRef{ID: spec.ID.Return(0)})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
	if got := told[objectstore.Free](s); len(got) != 1 {
		t.Fatalf("the store is told %v", got)
	}
	h := holds(7)
	h.Handles = []ids.ObjectID{spec.ID.Stream()}
	s.answered(7, map[ids.ClientID]*wire.Holdings{driver: h, worker: {Component: wire.ComponentOwner, Epoch: 7, Tasks: []wire.Attempt{{Task: spec.ID, Attempt: 1, Lease: l}}}})
	s.step(FromStore{Msg: objectstore.Inventory{Job: 1, Asked: true, Ask: 7, Objects: []objectstore.SealedInfo{{ID: spec.ID.Return(1), Attempt: 1}}}})
	s.from(worker, &wire.Done{Task: spec.ID, Attempt: 1, Lease: l, Items: 2})
	if m := s.next(driver, spec, 1); m == nil || m.Result.Kind != wire.ResultStored {
		t.Fatalf("the second item is %+v", m)
	}
	s.wantEnd(driver, spec, 2, 0)
}
