package owner

import (
	"math"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/wire"
)

// A stream of more items than there may be fails, and who makes them is told to end, at last by the end of its process.
func TestAStreamWithoutEndIsEnded(t *testing.T) {
	s := newScript(t, Config{CancelGrace: time.Second})
	spec := s.submit(&wire.TaskOptions{Func: "endless", NumReturns: wire.Streaming})
	s.grant(worker)
	x := s.executed(worker)
	s.from(worker, &wire.StreamItem{Task: spec.ID, Attempt: x.Attempt, Index: maxReturns, Result: inline("")})
	if got := sent[*wire.CancelTask](s, worker); len(got) != 1 {
		t.Errorf("the worker is told %d times to end it", len(got))
	}
	s.pass(2 * time.Second)
	if got := sent[*wire.CancelTask](s, worker); len(got) != 1 || !got[0].Abandon {
		t.Errorf("after the grace the worker is told %v", got)
	}
	s.from(driver, &wire.StreamNext{Task: spec.ID})
	if got := sent[*wire.StreamItem](s, driver); len(got) != 1 || got[0].Result.Err == nil || got[0].Result.Err.Code != errs.CodeInvalid {
		t.Errorf("its reader hears %v", got)
	}
}

// heldUpStream is a stream of stored items, at most two ahead of its reader, that waits for it: two items are there, none was asked for.
func heldUpStream(t *testing.T, retries int32) (*script, *wire.TaskSpec, ids.LeaseID) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "rows", NumReturns: wire.Streaming, MaxRetries: retries, Backpressure: 2})
	l := s.grant(worker)
	s.streamStored(spec, 1, 0, 2)
	return s, spec, l
}

// streamStored has the worker make the items from i up to n.
func (s *script) streamStored(spec *wire.TaskSpec, attempt, i, n uint32) {
	s.t.Helper()
	var all []Effect
	for ; i < n; i++ {
		s.from(worker, &wire.Seal{ID: spec.ID.Return(int(i)), Attempt: attempt, Size: 8},
			&wire.StreamItem{Task: spec.ID, Attempt: attempt, Index: i, Result: stored()})
		all = append(all, s.out...)
	}
	s.out = all
}

// An item is lost that an attempt has passed, which waits for its reader, who waits for the item: another attempt makes it again. So it is
// with each of the items that lay in one spill file, though there are more of them than retries.
func TestAStreamHeldUpMakesLostItemsAgain(t *testing.T) {
	s, spec, l := heldUpStream(t, 1)
	s.from(driver, &wire.StreamNext{Task: spec.ID}, &wire.StreamNext{Task: spec.ID, Index: 1})
	s.from(driver, &wire.AddRef{ID: spec.ID.Return(0)}, &wire.AddRef{ID: spec.ID.Return(1)})
	s.streamStored(spec, 1, 2, 4)
	for i := range uint32(4) {
		id := spec.ID.Return(int(i))
		s.from(driver, &wire.Get{ID: id, Fetch: true})
		s.step(FromStore{Msg: objectstore.Lost{ID: id, Client: driver}})
		if got := sent[*wire.CancelTask](s, worker); len(got) != 1 {
			t.Fatalf("item %d: the attempt that waits for its reader is told %d times to end", i, len(got))
		}
		s.failed(worker, l, wire.ExecTask{Spec: spec, Attempt: i + 1}, errs.New(errs.CodeCancelled, "its context ended"))
		if x := s.executed(worker); x.Attempt != i+2 {
			t.Fatalf("item %d: attempt %d follows", i, x.Attempt)
		}
		s.streamStored(spec, i+2, 0, 1)
		if got := sent[*wire.StreamAck](s, worker); len(got) != 1 || got[0].Consumed != 2 {
			t.Errorf("item %d: after its first item the producer hears %v", i, got)
		}
		s.streamStored(spec, i+2, 1, 4)
		s.from(driver, &wire.Get{ID: id, Fetch: true})
		if got := told[objectstore.PinForGet](s); len(got) != 1 {
			t.Errorf("item %d is not there: %v", i, got)
		}
	}
	id := spec.ID.Return(0) // made by an attempt that is not the last one
	s.step(FromStore{Msg: objectstore.Lost{ID: id, Client: driver}})
	s.failed(worker, l, wire.ExecTask{Spec: spec, Attempt: 5}, errs.New(errs.CodeCancelled, "its context ended"))
	s.streamStored(spec, 6, 0, 4)
	s.step(FromStore{Msg: objectstore.Lost{ID: id, Client: driver}}) // made by the last one: no retry is left
	if got := sent[*wire.Resolved](s, driver); len(got) != 1 || got[0].Result.Err == nil || got[0].Result.Err.Code != errs.CodeReconstructionFailed {
		t.Errorf("without a retry the reader hears %v", got)
	}
}

// The seal of an item was lost on the way: the attempt that waits for the reader of it starts over, or fails without a retry.
func TestAStreamHeldUpMissesASeal(t *testing.T) {
	for _, retries := range []int32{0, 1} {
		s := newScript(t, Config{})
		spec := s.submit(&wire.TaskOptions{Func: "rows", NumReturns: wire.Streaming, MaxRetries: retries, Backpressure: 1})
		s.grant(worker)
		s.from(driver, &wire.StreamNext{Task: spec.ID})
		s.from(worker, &wire.StreamItem{Task: spec.ID, Attempt: 1, Result: stored()})
		if got := sent[*wire.CancelTask](s, worker); len(got) != 1 {
			t.Errorf("%d retries: the attempt is told %d times to end", retries, len(got))
		}
		if got := sent[*wire.StreamItem](s, driver); (len(got) == 1 && got[0].Result.Err != nil) != (retries == 0) {
			t.Errorf("%d retries: the reader hears %v", retries, got)
		}
	}
}

// A stream whose task is cancelled, with the context of its call for instance, goes on for who reads it: with the items that there are, then
// with the error, however late it is asked for. The producer waits for no reader any more, and nothing stays when the reader is through.
func TestACancelledStreamIsReadToItsEnd(t *testing.T) {
	for _, when := range []string{"running", "ended"} {
		t.Run(when, func(t *testing.T) {
			s, spec, l := heldUpStream(t, 0)
			s.from(driver, &wire.StreamNext{Task: spec.ID})
			s.from(driver, &wire.AddRef{ID: spec.ID.Return(0)})
			told[any](s)
			x := wire.ExecTask{Spec: spec, Attempt: 1}
			cancelled := errs.New(errs.CodeCancelled, "its context ended")
			if when == "ended" {
				s.failed(worker, l, x, cancelled)
			}
			s.from(driver, &wire.Cancel{Task: spec.ID, Recursive: true})
			if when == "running" {
				if a := sent[*wire.StreamAck](s, worker); len(a) != 1 || a[0].Consumed != math.MaxUint32 {
					t.Errorf("its producer hears %+v", a)
				}
				s.failed(worker, l, x, cancelled)
			}
			s.from(driver, &wire.StreamNext{Task: spec.ID, Index: 1})
			if got := sent[*wire.StreamItem](s, driver); len(got) != 1 || got[0].Result.Kind != wire.ResultStored {
				t.Errorf("the second item is %+v", got)
			}
			s.from(driver, &wire.AddRef{ID: spec.ID.Return(1)}, &wire.StreamNext{Task: spec.ID, Index: 2})
			if got := sent[*wire.StreamItem](s, driver); len(got) != 1 || got[0].Result.Err == nil || got[0].Result.Err.Code != errs.CodeCancelled {
				t.Errorf("the end is %+v", got)
			}
			s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0), spec.ID.Return(1)}})
			if s.c.tasks.task(spec.ID) != nil {
				t.Error("its task is kept")
			}
		})
	}
}

// The answer at a stream's end is lost with the node: the reader finds its stream there again, and has the same answer. One that has the end says so,
// and nothing stays. What its task makes again by then goes on.
func TestTheEndOfAStreamIsLostOnTheWay(t *testing.T) {
	for _, end := range []string{"end", "error", "item", "again"} {
		t.Run(end, func(t *testing.T) {
			s, spec, l := heldUpStream(t, 1)
			x := wire.ExecTask{Spec: spec, Attempt: 1}
			next := func(i uint32) *wire.StreamNext { return &wire.StreamNext{Task: spec.ID, Index: i, Leaves: true} }
			s.from(driver, next(0), &wire.AddRef{ID: spec.ID.Return(0)}, next(1), &wire.AddRef{ID: spec.ID.Return(1)})
			last := uint32(2)
			broke := errs.New(errs.CodeTaskFailed, "it broke")
			switch end {
			case "end", "again":
				s.from(worker, &wire.Done{Task: spec.ID, Attempt: 1, Lease: l, Items: 2})
			case "error":
				s.failed(worker, l, x, broke)
			case "item":
				s.from(worker, &wire.StreamItem{Task: spec.ID, Attempt: 1, Index: 2, Result: wire.Result{Kind: wire.ResultError, Err: broke}})
				s.from(worker, &wire.Done{Task: spec.ID, Attempt: 1, Lease: l, Items: 3})
			}
			ended := func() {
				t.Helper()
				got := sent[*wire.StreamItem](s, driver)
				if len(got) != 1 || got[0].Index != last || (end == "error" || end == "item") != (got[0].Result.Kind == wire.ResultError) {
					t.Fatalf("the reader hears %+v", got)
				}
				if err := got[0].Result.Err; err != nil && err.Code != errs.CodeTaskFailed {
					t.Errorf("the stream ends with %v", err)
				}
			}
			items := []ids.ObjectID{spec.ID.Return(0), spec.ID.Return(1)}
			if end != "again" {
				s.from(driver, &wire.Release{IDs: items})
				items = nil
			}
			s.from(driver, next(last))
			ended()
			h := holds(7)
			h.Handles, h.Streams = append(items, spec.ID.Stream()), []wire.StreamNext{*next(last)}
			s.answered(7, map[ids.ClientID]*wire.Holdings{driver: h})
			ended()
			if end == "again" {
				s.step(FromStore{Msg: objectstore.Lost{ID: spec.ID.Return(0), Client: driver}})
			}
			s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Stream()}})
			if end == "again" {
				if t := s.c.tasks.task(spec.ID); t.flags&taskCancelled != 0 || t.state.Terminal() {
					s.t.Errorf("the task that makes an item again is %v", t.state)
				}
			}
			if end != "again" && s.c.tasks.task(spec.ID) != nil {
				t.Error("its task is kept")
			}
		})
	}
}
