package phases

import (
	"errors"
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner"
	"mobula/raylet/owner/task"
	"mobula/telemetry"
	"mobula/wire"
)

// finish runs a task that has all it needs.
func finish(t *testing.T, b *Builder, s *wire.TaskSpec, from uint32) telemetry.Span {
	t.Helper()
	return build(t, b, []owner.Transition{
		{Spec: s, State: task.PendingArgs, At: 1, Attempt: from}, {Spec: s, State: task.Submitted, At: 2, Attempt: from + 1},
		{Spec: s, State: task.Running, At: 3, Attempt: from + 1, Times: &wire.Times{Started: 3, Ended: 4}}, {Spec: s, State: task.Finished, At: 5, Attempt: from + 1},
	})[0]
}

func TestDataEdgesAreLinks(t *testing.T) {
	b := New(4) // it remembers 8 tasks
	makers := make([]*wire.TaskSpec, 9)
	for i := range makers {
		makers[i] = newSpec(uint64(100 + i))
		finish(t, b, makers[i], 0)
	}
	running := newSpec(200)
	b.Step(&owner.Transition{Spec: running, State: task.PendingArgs, At: 1})
	s := newSpec(300)
	s.Args = []wire.Arg{
		{Ref: makers[8].ID.Return(0)}, {Value: wire.Value{Data: []byte("x")}}, {Ref: running.ID.Return(1)}, {Ref: running.ID.Return(0)}, // once
		{Ref: makers[0].ID.Return(0)}, // forgotten: eight ended after it
		{Ref: ids.ObjectID{Task: makers[8].ID, Index: ids.PutBit | 1}},
		{Ref: newSpec(400).ID.Return(0)}, // not traced
	}
	link := func(s *wire.TaskSpec) telemetry.Link {
		return telemetry.Link{TraceID: s.Trace.TraceID, ID: telemetry.SpanOf(s.ID, 0, telemetry.PhaseTask)}
	}
	if got, want := finish(t, b, s, 0).Links, []telemetry.Link{link(makers[8]), link(running)}; !slices.Equal(got, want) {
		t.Errorf("links %x, want %x", got, want)
	}
	wide := newSpec(500)
	for i := range 200 {
		x := newSpec(uint64(1000 + i))
		b.ended.add(x.ID, link(x))
		b.ended.limit = 1000
		wide.Args = append(wide.Args, wire.Arg{Ref: x.ID.Return(0)})
	}
	if n := len(finish(t, b, wide, 0).Links); n != maxLinks {
		t.Errorf("%d links, want the most that there may be, %d", n, maxLinks)
	}
}

func attr(s telemetry.Span, key string) string {
	for _, kv := range s.Attrs {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return ""
}

func TestRetriesAndRestartsAreMarked(t *testing.T) {
	b := New(0)
	s := newSpec(1)
	crash := &errs.Error{Code: errs.CodeWorkerCrashed, Msg: "it went"}
	spans := build(t, b, []owner.Transition{
		{Spec: s, State: task.PendingNode, At: 1}, {Spec: s, State: task.Submitted, At: 2, Attempt: 1}, {Spec: s, State: task.Running, At: 3, Attempt: 1},
		{Spec: s, State: task.PendingArgs, At: 9, Attempt: 1, Reason: crash}, {Spec: s, State: task.Submitted, At: 10, Attempt: 2},
		{Spec: s, State: task.Running, At: 11, Attempt: 2, Times: &wire.Times{Started: 11, Ended: 12}}, {Spec: s, State: task.Finished, At: 13, Attempt: 2},
	})
	var runs []telemetry.Span
	for _, x := range spans {
		if x.Name == "run" {
			runs = append(runs, x)
		}
	}
	if len(runs) != 2 || !errors.Is(runs[0].Err, errs.ErrWorkerCrashed) || attr(runs[0], "mobula.retry") != "" || runs[1].Err != nil || attr(runs[1], "mobula.retry") != "1" {
		t.Errorf("the runs are %+v", runs)
	}
	if spans[0].Err != nil || attr(spans[0], "mobula.attempts") != "2" || attr(spans[0], "mobula.restart") != "" {
		t.Errorf("the task is %+v", spans[0])
	}
	again := finish(t, b, s, 2) // its result was lost
	if attr(again, "mobula.restart") != "true" || attr(again, "mobula.attempts") != "" || again.ID == spans[0].ID {
		t.Errorf("the task that runs once more is %+v", again)
	}
	if b.ended.of[s.ID].ID != again.ID || len(b.ended.ring) != 1 {
		t.Errorf("of a task that ended twice %x is remembered, in %d places", b.ended.of[s.ID].ID, len(b.ended.ring))
	}
}
