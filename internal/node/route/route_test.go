package route

import (
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

const (
	own   ids.JobID = 1
	other ids.JobID = 2
)

type asker ids.JobID

func (a asker) AskedBy(*wire.Holdings) ids.JobID { return ids.JobID(a) }

// What is said of calls that go straight is told from all else.
func TestMessagesOfStraightCalls(t *testing.T) {
	for m, want := range map[wire.Msg]bool{
		&wire.AskWay{}: true, &wire.Mark{}: true, &wire.HostChannel{}: true, &wire.CannotBegin{}: true,
		&wire.Shared{}: false, &wire.Call{}: false, &wire.Submit{}: false, &wire.Encoded{}: false,
	} {
		if got := OfStraightCalls(m); got != want {
			t.Errorf("%T: %v", m, got)
		}
	}
}

// Every kind of message that a client sends has a place, and every other is nobody's.
func TestEveryKindHasItsPlace(t *testing.T) {
	theirs := ids.Derive(ids.RootTask(other, 1), 1)
	type want struct {
		to  Place
		job ids.JobID
	}
	all := map[wire.Msg]want{
		&wire.Submit{Spec: &wire.TaskSpec{}}: {Owner, own}, &wire.Get{ID: theirs.Return(0)}: {Owner, own}, &wire.Unget{}: {Owner, own}, &wire.Release{}: {Owner, own},
		&wire.AddRef{ID: theirs.Return(0)}: {Owner, own}, &wire.PutValue{}: {Owner, own}, &wire.StreamNext{}: {Owner, own}, &wire.Cancel{Task: theirs}: {Owner, own},
		&wire.KillActor{}: {Owner, own}, &wire.ActorStopped{}: {Owner, own}, &wire.WatchActor{}: {Owner, own},
		&wire.Done{Task: theirs}: {Owner, other}, &wire.StreamItem{Task: theirs}: {Owner, other}, &wire.Unblocked{Task: theirs}: {Owner, other},
		&wire.Seal{ID: theirs.Return(0)}: {Owner, other}, &wire.Blocked{Task: theirs}: {Owner, other},
		&wire.Blocked{Returned: []ids.TaskID{theirs}}: {Owner, other}, &wire.Blocked{}: {Owner, own},
		&wire.Holdings{Component: wire.ComponentOwner}: {Owner, other}, &wire.Holdings{}: {Store, 0},
		&wire.Create{}: {Store, 0}, &wire.Abort{}: {Store, 0}, &wire.Unpin{}: {Store, 0},
		&wire.Request{}: {Request, 0}, &wire.Stats{}: {Stats, 0}, &wire.Bye{}: {Goodbye, 0},
		&wire.Hello{}: {}, &wire.Welcome{}: {}, &wire.Resolved{}: {}, &wire.Created{}: {}, &wire.MapFile{}: {}, &wire.UnmapFile{}: {}, &wire.Exec{}: {},
		&wire.CancelTask{}: {}, &wire.StopActor{}: {}, &wire.Drain{}: {}, &wire.StreamAck{}: {}, &wire.Resume{}: {}, &wire.Reply{}: {}, &wire.Resync{}: {},
		&wire.Credit{}: {}, &wire.Collect{}: {}, &wire.Unneeded{}: {}, &wire.ActorNews{}: {},
		&wire.OpenChannel{}: {}, &wire.Method{}: {}, &wire.Call{}: {}, &wire.Withdraw{}: {}, &wire.Took{}: {}, &wire.Answered{}: {}, &wire.LastAnswer{}: {}, &wire.Share{}: {}, &wire.Shared{}: {}, // they go on channels
		&wire.AskWay{}: {Owner, own}, &wire.AskWord{}: {Owner, own}, &wire.HangUp{}: {Owner, own}, &wire.Linked{}: {Owner, own},
		&wire.Adopt{Spec: &wire.TaskSpec{}}: {Owner, own}, &wire.EndedCalls{}: {Owner, own}, &wire.Lives{}: {Owner, own}, &wire.Told{}: {Owner, own},
		&wire.Runs{}: {Owner, own}, &wire.Ran{}: {Owner, own}, &wire.CancelMade{}: {Owner, own}, &wire.Waits{}: {Owner, own}, &wire.WaitOver{}: {Owner, own},
		&wire.Mark{Job: other}: {Owner, other},
		&wire.Marked{}:         {}, &wire.CancelCall{}: {}, &wire.Way{}: {}, &wire.Over{}: {}, &wire.Adopted{}: {}, &wire.HostChannel{}: {}, &wire.StillThere{}: {},
		&wire.Where{}: {}, &wire.Unwanted{}: {}, &wire.Dropped{}: {}, &wire.StillWaits{}: {}, &wire.CannotBegin{}: {},
	}
	seen := make(map[wire.Kind]bool)
	for m, w := range all {
		seen[m.Kind()] = true
		if to, job := Of(own, asker(other), m); to != w.to || job != w.job {
			t.Errorf("%v %+v goes to %d of job %v, want %d of job %v", m.Kind(), m, to, job, w.to, w.job)
		}
	}
	for k := wire.Kind(1); k.String() != "unknown kind"; k++ {
		if !seen[k] {
			t.Errorf("%v is in nobody's test", k)
		}
	}
}

// Objects of other jobs are found wherever a message has them, each once.
func TestForeignObjects(t *testing.T) {
	mine, theirs := ids.RootTask(own, 1).Put(1), ids.RootTask(other, 1).Put(1)
	refs := []ids.ObjectID{mine, theirs, theirs}
	v := wire.Value{Refs: refs}
	for _, m := range []wire.Msg{
		&wire.AddRef{ID: theirs}, &wire.PutValue{Value: v}, &wire.Seal{Value: v},
		&wire.Submit{Spec: &wire.TaskSpec{Args: []wire.Arg{{Ref: theirs}, {Ref: mine}}}}, &wire.Submit{Spec: &wire.TaskSpec{Args: []wire.Arg{{Value: v}}}},
		&wire.StreamItem{Result: wire.Result{Value: v}}, &wire.Done{Results: []wire.Result{{Value: v}}},
		&wire.Adopt{Spec: &wire.TaskSpec{Args: []wire.Arg{{Ref: theirs}}}}, &wire.Adopt{Spec: &wire.TaskSpec{}, Outcome: &wire.CallOutcome{Err: &errs.Error{Refs: refs}}},
		&wire.Adopt{Spec: &wire.TaskSpec{}, Outcome: &wire.CallOutcome{Results: []wire.Result{{Value: v}}}}, &wire.Told{Outcome: &wire.CallOutcome{Results: []wire.Result{{Value: v}}}},
		&wire.Done{Err: &errs.Error{Refs: refs}}, &wire.Done{Results: []wire.Result{{Err: &errs.Error{Refs: refs}}}},
	} {
		if got := Foreign(own, m); !Crosses(own, m) || len(got) != 1 || !slices.Equal(got[other], []ids.ObjectID{theirs}) {
			t.Errorf("%v has %v", m.Kind(), got)
		}
	}
	for _, m := range []wire.Msg{&wire.AddRef{ID: mine}, &wire.Get{ID: theirs}, &wire.Release{IDs: refs}} { // the last two take nothing along
		if Crosses(own, m) || len(Foreign(own, m)) != 0 {
			t.Errorf("%v crosses", m.Kind())
		}
	}
}

// Every message of every client is asked for its place: that allocates nothing.
func TestPlacesCostNothing(t *testing.T) {
	msgs := []wire.Msg{&wire.Submit{Spec: &wire.TaskSpec{}}, &wire.Done{}, &wire.Get{}, &wire.Release{}, &wire.Holdings{Component: wire.ComponentOwner}}
	from := asker(other)
	if n := testing.AllocsPerRun(100, func() {
		for _, m := range msgs {
			Of(own, &from, m)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
