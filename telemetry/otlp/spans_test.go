package otlp

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/owner"
	"mobula/raylet/owner/task"
	"mobula/telemetry"
	"mobula/telemetry/collector"
	"mobula/telemetry/export"
	"mobula/telemetry/phases"
	"mobula/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start makes an exporter to a collector, both ended by the test.
func start(t *testing.T, open func() (*collector.Collector, error), proto string, cfg export.Config) (export.SpanExporter, *collector.Collector) {
	t.Helper()
	c, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.Endpoint())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", proto)
	e, err := export.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
		defer cancel()
		if err := e.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return e, c
}

// The spans of a 1 ms task with a restored argument, at a collector: one trace, no overlap,
// with the restore, and summing to the task's time.
func TestATasksSpansAtACollector(t *testing.T) {
	for name, open := range map[string]func() (*collector.Collector, error){"grpc": collector.GRPC, "http/protobuf": collector.HTTP} {
		t.Run(name, func(t *testing.T) {
			e, c := start(t, open, name, export.Config{Node: "n1", Version: "v9", Ratio: 0.01})
			at := time.Now().UnixNano()
			s := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(1, 2), 3), Opts: &wire.TaskOptions{Func: "f"}, Submitted: at}
			s.Trace = telemetry.NewSampler(1).Decide(wire.TraceContext{}, s.ID)
			b := phases.New(0)
			const ms = int64(time.Millisecond)
			trs := []owner.Transition{
				{State: task.PendingArgs, At: at + 10_000}, {State: task.PendingNode, At: at + 10_000},
				{State: task.PendingFetch, At: at + 20_000, Attempt: 1}, {State: task.PendingStore, At: at + 30_000, Attempt: 1},
				{State: task.Submitted, At: at + 40*ms, Attempt: 1},
				{State: task.Running, At: at + 40*ms + 50_000, Attempt: 1, Times: &wire.Times{Started: at + 40*ms + 50_000, Ended: at + 41*ms + 50_000}},
				{State: task.Finished, At: at + 41*ms + 90_000, Attempt: 1},
			}
			for i := range trs {
				trs[i].Spec = s
				for _, sp := range b.Step(&trs[i]) {
					e.Emit(&sp)
				}
			}
			ctx := testkit.Within(t)
			if err := e.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			spans, err := c.Wait(ctx, func(s []*tracepb.Span) bool { return len(s) >= 8 })
			if err != nil {
				t.Fatal(err)
			}
			checkTask(t, spans, s)
			_, res := c.Spans()
			text := fmt.Sprint(res[0].Attributes)
			for _, w := range []string{"service.name", "mobula", "n1", "v9"} {
				if !strings.Contains(text, w) {
					t.Errorf("the resource has no %q: %s", w, text)
				}
			}
		})
	}
}

func checkTask(t *testing.T, spans []*tracepb.Span, s *wire.TaskSpec) {
	t.Helper()
	byName := map[string]*tracepb.Span{}
	for _, sp := range spans {
		byName[sp.Name] = sp
		if [16]byte(sp.TraceId) != s.ID.Trace() {
			t.Errorf("span %s is of trace %x", sp.Name, sp.TraceId)
		}
	}
	top := byName["f"]
	if top == nil || len(top.ParentSpanId) != 0 {
		t.Fatalf("the task's span is %v among %v", top, slices.Sorted(maps.Keys(byName)))
	}
	delete(byName, "f")
	kids := slices.SortedFunc(maps.Values(byName), func(a, b *tracepb.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	var sum, last uint64
	for _, k := range kids {
		if string(k.ParentSpanId) != string(top.SpanId) || k.StartTimeUnixNano < last {
			t.Errorf("%s begins before its sibling ends, or is not the task's", k.Name)
		}
		last = k.EndTimeUnixNano
		sum += k.EndTimeUnixNano - k.StartTimeUnixNano
	}
	wall := top.EndTimeUnixNano - top.StartTimeUnixNano
	if diff := int64(wall) - int64(sum); diff*20 > int64(wall) || -diff*20 > int64(wall) {
		t.Errorf("phases sum to %d of %d ns", sum, wall)
	}
	if r := byName["restore arguments"]; r == nil || r.EndTimeUnixNano-r.StartTimeUnixNano < uint64(39*time.Millisecond) {
		t.Errorf("the restore is %v", r)
	}
	run := telemetry.Run(s, 1)
	if r := byName["run"]; r == nil || string(r.SpanId) != string(run.SpanID[:]) {
		t.Errorf("the run is %v, the worker knows it as %x", r, run.SpanID)
	}
}

// The program's own spans nest in its tasks, and follow their decision.
func TestSpansOfTheProgramFollowTheirTask(t *testing.T) {
	type taskKey struct{}
	exp := tracetest.NewInMemoryExporter()
	e, err := newSpans(t.Context(), export.Config{Getenv: os.Getenv, InTask: func(ctx context.Context) (wire.TraceContext, bool) {
		tc, ok := ctx.Value(taskKey{}).(wire.TraceContext)
		return tc, ok
	}}, telemetry.NewSampler(1), exp)
	if err != nil {
		t.Fatal(err)
	}
	tr := e.Provider().Tracer("program")
	mk := func(sampled byte) (context.Context, *wire.TaskSpec) {
		s := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(1, 2), uint64(sampled)), Opts: &wire.TaskOptions{Func: "f"}}
		s.Trace = wire.TraceContext{TraceID: s.ID.Trace(), Flags: sampled}
		ctx, _ := telemetry.Hook(context.WithValue(context.Background(), taskKey{}, s.Trace), s, 1)
		return ctx, s
	}
	in, s := mk(1)
	ctx, outer := tr.Start(in, "outer")
	_, inner := tr.Start(ctx, "inner")
	inner.End()
	outer.End()
	if sc := outer.SpanContext(); sc.TraceID() != trace.TraceID(s.ID.Trace()) || !sc.IsSampled() {
		t.Errorf("a span in a sampled task is %+v", sc)
	}
	not, _ := mk(0)
	_, dropped := tr.Start(not, "dropped")
	dropped.End()
	_, own := tr.Start(context.Background(), "own")
	own.End()
	e.Emit(&telemetry.Span{TraceID: s.ID.Trace(), ID: [8]byte{1}, Name: "failed", Start: 1, End: 2, Err: errs.ErrObjectLost})
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, sp := range exp.GetSpans() {
		names = append(names, sp.Name)
		switch sp.Name {
		case "outer":
			if sp.Parent.SpanID() != trace.SpanID(telemetry.Run(s, 1).SpanID) {
				t.Errorf("its parent is %v, not the task's run", sp.Parent.SpanID())
			}
		case "failed":
			if sp.Status.Description != errs.ErrObjectLost.Error() || len(sp.Events) != 1 || !sp.EndTime.Equal(time.Unix(0, 2)) {
				t.Errorf("a failed span is %+v", sp)
			}
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"failed", "inner", "outer", "own"}) {
		t.Errorf("spans %v", names)
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
