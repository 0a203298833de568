package inspect

import (
	"testing"

	"mobula/internal/direct"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/raylet/owner"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// nodeOf is a node with one worker.
type nodeOf struct{ Node }

func (nodeOf) Client(ids.ClientID) *Client { return &Client{Local: true} }
func (nodeOf) Listed() string              { return "" }

// Each reason for which a call is where it is has a text and a state.
func TestWhyACallWaits(t *testing.T) {
	n := &Inspector{node: nodeOf{}}
	spec := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(1, 1), 2), Kind: wire.TaskActorCall, Actor: ids.ActorID(ids.Derive(ids.RootTask(1, 1), 1)), Opts: &wire.TaskOptions{Func: "c.M"}}
	a := owner.ActorView{ID: spec.Actor, State: actor.Alive, Opts: &wire.TaskOptions{Func: "c"}, Worker: 3}
	restarts := a
	restarts.State, restarts.Cause = actor.Restarting, errs.New(errs.CodePanic, "it fell")
	name := "actor " + a.ID.String() + " (c)"
	for _, c := range []struct {
		u     direct.Underway
		of    *owner.ActorView
		state task.State
		want  string
	}{
		{direct.Underway{Runs: true, Tries: 1}, &a, task.Running, "runs on embedded worker 3, attempt 2"},
		{direct.Underway{Ahead: 2}, &a, task.Submitted, "waits for its turn in the mailbox of " + name + " on embedded worker 3 behind 2 others"},
		{direct.Underway{Aside: true}, &a, task.Submitted, "is in the mailbox of " + name + " on embedded worker 3, and waits there until the process that has made it takes the answers that it has"},
		{direct.Underway{Place: direct.NeedsArg}, &a, task.PendingArgs, "waits for its arguments"},
		{direct.Underway{Place: direct.BehindOthers, Ahead: 4}, &a, task.PendingActor, "waits for its turn on " + name + " behind 4 others of the same caller"},
		{direct.Underway{Place: direct.BehindWay}, &a, task.PendingActor, "waits for earlier calls of the same caller to " + name + ", which went another way"},
		{direct.Underway{Place: direct.NeedsWay}, &a, task.PendingActor, "waits to hear how calls get to " + name},
		{direct.Underway{Place: direct.NeedsWord}, &a, task.PendingActor, "was sent to " + name + ", whose process or instance has ended, and waits to hear what follows"},
		{direct.Underway{Place: direct.NeedsCredit}, &a, task.PendingActor, "waits until " + name + " has taken some of the calls that are on their way to it: they have many bytes"},
		{direct.Underway{Place: direct.NeedsWay}, &restarts, task.PendingActor, "waits for " + name + ", which is RESTARTING"},
		{direct.Underway{Place: direct.NeedsWay}, nil, task.PendingActor, "waits for its actor"},
	} {
		u := &talk.Underway{Spec: spec, Underway: &c.u}
		v := callView(u, c.of)
		if got := callSummary(n, new(state.Explanation), u, &owner.TaskWhy{TaskView: v, Of: c.of}); got != c.want || v.State != c.state {
			t.Errorf("%+v is %v: %q, want %v: %q", c.u, v.State, got, c.state, c.want)
		}
	}
}

// A call counts for its actor, unless the owner counts it; and for its state, in place of what the owner takes it for.
func TestCallsAreAddedToFigures(t *testing.T) {
	of := ids.ActorID(ids.Derive(ids.RootTask(1, 1), 1))
	at := func(known bool, u direct.Underway) talk.Underway {
		return talk.Underway{Spec: &wire.TaskSpec{Actor: of}, Known: known, Underway: &u}
	}
	all := []talk.Underway{at(false, direct.Underway{Runs: true}), at(false, direct.Underway{}), at(false, direct.Underway{Place: direct.NeedsWay}), at(true, direct.Underway{})}
	f := figures{tasks: map[string]int{task.PendingActor.String(): 1, task.Submitted.String(): 5}}
	if n := f.underway(all)[of]; n != 3 || f.counts.Submitted != 3 {
		t.Errorf("%d calls are pending, %d were submitted", n, f.counts.Submitted)
	}
	if f.tasks[task.Running.String()] != 1 || f.tasks[task.Submitted.String()] != 7 || f.tasks[task.PendingActor.String()] != 1 {
		t.Errorf("by state they are %v", f.tasks)
	}
	a := owner.ActorView{Pending: 4, Queued: 1}
	for i := range all {
		countCall(&a, &all[i])
	}
	if a.Pending != 7 || a.Queued != 2 {
		t.Errorf("the actor has %d pending, %d of them not pushed", a.Pending, a.Queued)
	}
}
