package phases

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/owner"
	"mobula/raylet/owner/task"
	"mobula/telemetry"
	"mobula/wire"
)

var opts = &wire.TaskOptions{Func: "math/add", NumReturns: 1}

func newSpec(n uint64) *wire.TaskSpec {
	s := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(4, 1), n), Opts: opts, Callsite: "main.go:3"}
	s.Trace = telemetry.NewSampler(1).Decide(wire.TraceContext{}, s.ID)
	return s
}

const us = 1000

// A task of 1 ms of work on a restored argument, as the owner tells it.
func restored(s *wire.TaskSpec) []owner.Transition {
	s.Submitted = 100 * us
	tr := func(st task.State, at int64, attempt uint32) owner.Transition {
		return owner.Transition{Spec: s, State: st, At: at, Attempt: attempt, Worker: 9, Lease: 3}
	}
	ran := tr(task.Running, 31_200*us, 1)
	ran.Times = &wire.Times{Received: 31_150 * us, Started: 31_200 * us, Ended: 32_200 * us}
	return []owner.Transition{
		tr(task.PendingArgs, 120*us, 0), tr(task.PendingNode, 120*us, 0), tr(task.PendingFetch, 200*us, 1),
		tr(task.PendingStore, 250*us, 1), tr(task.Submitted, 31_100*us, 1), tr(task.Running, 31_100*us, 1), ran, tr(task.Finished, 32_250*us, 1),
	}
}

func build(t *testing.T, b *Builder, trs []owner.Transition) []telemetry.Span {
	t.Helper()
	for i := range trs {
		if out := b.Step(&trs[i]); out != nil {
			if i != len(trs)-1 {
				t.Fatalf("spans after transition %d of %d", i, len(trs))
			}
			return slices.Clone(out)
		}
	}
	return nil
}

func TestARestoredArgument(t *testing.T) {
	s := newSpec(1)
	got := build(t, New(0), restored(s))
	type row struct {
		name       string
		start, end int64
	}
	want := []row{
		{"math/add", 100, 32_250}, {"submit", 100, 120}, {"queue", 120, 200}, {"fetch arguments", 200, 250},
		{"restore arguments", 250, 31_100}, {"push", 31_100, 31_200}, {"run", 31_200, 32_200}, {"seal", 32_200, 32_250},
	}
	if len(got) != len(want) {
		t.Fatalf("%d spans, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		if g := got[i]; g.Name != w.name || g.Start != w.start*us || g.End != w.end*us || g.Err != nil {
			t.Errorf("span %d is %s %d to %d (%v), want %+v", i, g.Name, g.Start, g.End, g.Err, w)
		}
	}
	if got[0].Parent != [8]byte{} || got[0].TraceID != s.ID.Trace() || got[6].ID != telemetry.Run(s, 1).SpanID {
		t.Errorf("the spans do not hang together: %+v", got)
	}
	text := ""
	for _, kv := range append(got[0].Attrs, got[6].Attrs...) {
		text += string(kv.Key) + "=" + kv.Value.String() + " "
	}
	for _, w := range []string{"mobula.task.id=" + s.ID.String(), "mobula.function=math/add", "mobula.job=4", "mobula.callsite=main.go:3",
		"mobula.task.state=FINISHED", "mobula.attempt=1", "mobula.worker=9"} {
		if !strings.Contains(text, w) {
			t.Errorf("no %s in %s", w, text)
		}
	}
}

func TestAWorkersDeathShowsAsAFailedRun(t *testing.T) {
	s := newSpec(1)
	s.Trace.SpanID = [8]byte{7}
	crash := errs.New(errs.CodeWorkerCrashed, "gone")
	trs := []owner.Transition{
		{Spec: s, State: task.PendingArgs, At: 10},
		{Spec: s, State: task.Submitted, At: 20, Attempt: 1},
		{Spec: s, State: task.Running, At: 30, Attempt: 1},
		{Spec: s, State: task.RunningInGet, At: 40, Attempt: 1},
		{Spec: s, State: task.Running, At: 60, Attempt: 1},
		{Spec: s, State: task.RunningInGet, At: 80, Attempt: 1},
		{Spec: s, State: task.Failed, At: 100, Attempt: 1, Reason: crash},
	}
	got := build(t, New(0), trs)
	var text []string
	for _, g := range got {
		text = append(text, g.Name)
	}
	if w := "math/add wait for arguments push run blocked in get blocked in get"; strings.Join(text, " ") != w {
		t.Fatalf("spans %q, want %q", text, w)
	}
	if !errors.Is(got[0].Err, errs.ErrWorkerCrashed) || got[0].Parent != s.Trace.SpanID {
		t.Errorf("the task's span is %+v", got[0])
	}
	if r := got[3]; r.Start != 30 || r.End != 100 || got[4].Start != 40 || got[4].End != 60 || got[5].Start != 80 || got[5].End != 100 || got[4].Parent != r.ID {
		t.Errorf("run and gets are %+v", got[3:])
	}
}

// A get that lies in two runs, as a worker's clock may have it, is a span below each, with an id of its own.
func TestAGetInTwoRunsHasTwoIDs(t *testing.T) {
	s := newSpec(1)
	got := build(t, New(0), []owner.Transition{
		{Spec: s, State: task.PendingArgs, At: 1000},
		{Spec: s, State: task.Submitted, At: 1000, Attempt: 1},
		{Spec: s, State: task.Running, At: 1000, Attempt: 1, Times: &wire.Times{Started: 1000, Ended: 1000}},
		{Spec: s, State: task.Running, At: 1000, Attempt: 1},
		{Spec: s, State: task.Running, At: 1000, Attempt: 1, Times: &wire.Times{Started: 1000, Ended: 1001}},
		{Spec: s, State: task.RunningInGet, At: 1000, Attempt: 1},
		{Spec: s, State: task.Finished, At: 1002, Attempt: 1},
	})
	seen := map[[8]byte]string{}
	gets := 0
	for _, g := range got {
		if was, dup := seen[g.ID]; dup {
			t.Errorf("%q and %q have one id", was, g.Name)
		}
		seen[g.ID] = g.Name
		if g.Name == telemetry.PhaseBlocked.String() {
			gets++
		}
	}
	if gets != 2 {
		t.Errorf("%d gets, want 2: %+v", gets, got)
	}
}

// Whatever states a task goes through, its phases follow one another without a gap or an overlap, sum to its time,
// and have ids and a parent of their own.
func TestPhasesPartitionTheTask(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		b := New(0)
		s := newSpec(rapid.Uint64().Draw(rt, "task"))
		at := int64(1_000_000)
		if rapid.Bool().Draw(rt, "says when") {
			s.Submitted = at + rapid.Int64Range(-500, 50).Draw(rt, "submitted")
		}
		st, attempt := task.PendingArgs, uint32(0)
		first := at
		if s.Submitted != 0 {
			first = s.Submitted
		}
		var out []telemetry.Span
		for step := 0; out == nil; step++ {
			tr := owner.Transition{Spec: s, State: st, At: at, Attempt: attempt}
			out = b.Step(&tr)
			if out != nil {
				break
			}
			at += rapid.Int64Range(0, 100).Draw(rt, "passes")
			if st.OnWorker() && rapid.Bool().Draw(rt, "reports") { // its clock is not quite ours
				started := at - rapid.Int64Range(-20, 100).Draw(rt, "ran")
				ran := owner.Transition{Spec: s, State: task.Running, At: at, Attempt: attempt, Times: &wire.Times{Started: started, Ended: started + rapid.Int64Range(0, 120).Draw(rt, "for")}}
				if b.Step(&ran) != nil {
					rt.Fatal("spans of a task that has not ended")
				}
			}
			var evs []task.Event
			for _, ev := range task.Events() {
				if _, ok := task.Next(st, ev); ok {
					evs = append(evs, ev)
				}
			}
			ev := rapid.SampledFrom(evs).Draw(rt, "event")
			if step > 60 && slices.Contains(evs, task.Fail) {
				ev = task.Fail
			}
			if st, _ = task.Next(st, ev); ev == task.Push {
				attempt++
			}
		}
		top, sum, next := out[0], int64(0), out[0].Start
		if top.Start != first || top.End < at {
			rt.Fatalf("the task is from %d to %d, its span from %d to %d", first, at, top.Start, top.End)
		}
		seen := map[[8]byte]bool{top.ID: true}
		for _, sp := range out[1:] {
			if seen[sp.ID] || sp.TraceID != top.TraceID || sp.End < sp.Start {
				rt.Fatalf("span %+v among %+v", sp, out)
			}
			seen[sp.ID] = true
			if sp.Name == telemetry.PhaseBlocked.String() {
				continue
			}
			if sp.Parent != top.ID || sp.Start != next {
				rt.Fatalf("span %+v does not begin at %d: %+v", sp, next, out)
			}
			sum += sp.End - sp.Start
			next = sp.End
		}
		if sum != top.End-top.Start {
			rt.Fatalf("phases sum to %d of %d: %+v", sum, top.End-top.Start, out)
		}
		if len(b.open) != 0 {
			rt.Fatal("the task is still open")
		}
	})
}

func TestTasksUnderWayAreBounded(t *testing.T) {
	b := New(10)
	for i := range uint64(1000) {
		tr := owner.Transition{Spec: newSpec(i), State: task.PendingArgs, At: 1}
		b.Step(&tr)
		if i%2 == 0 { // some end
			end := owner.Transition{Spec: tr.Spec, State: task.Finished, At: 2}
			if b.Step(&end) == nil {
				t.Fatal("no spans")
			}
		}
	}
	if len(b.open) > 10 || b.oldest.Len() > 20 || b.Dropped() != 490 {
		t.Errorf("%d open, %d remembered, %d dropped; want 10, 20, 490", len(b.open), b.oldest.Len(), b.Dropped())
	}
	// A task that runs for ever keeps a bounded record.
	s := newSpec(5000)
	for i := range int64(10_000) {
		tr := owner.Transition{Spec: s, State: []task.State{task.PendingNode, task.Submitted}[i%2], At: i * 10, Attempt: uint32(i)}
		b.Step(&tr)
	}
	if n := len(b.open[s.ID].segs); n > maxSegments {
		t.Errorf("%d segments", n)
	}
}
