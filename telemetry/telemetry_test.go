package telemetry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

func TestSamplerFromEnv(t *testing.T) {
	sampled := wire.TraceContext{TraceID: [16]byte{15: 1}, SpanID: [8]byte{1}, Flags: 1}
	dropped := sampled
	dropped.Flags, dropped.TraceID = 0, [16]byte{8: 0xff, 15: 1}
	for _, c := range []struct {
		name, arg            string
		root, parent, orphan bool // what becomes of a root with a low id, of a sampled parent, of one that was not
		low                  bool
		wrong                string
	}{
		{name: "", root: false, parent: true},
		{name: "always_on", root: true, parent: true, orphan: true},
		{name: "always_off"},
		{name: "parentbased_always_on", root: true, parent: true},
		{name: "parentbased_always_off", parent: true},
		{name: "PARENTBASED_TRACEIDRATIO", arg: "1", root: true, parent: true},
		{name: "parentbased_traceidratio", root: true, parent: true},
		{name: "parentbased_traceidratio", arg: "0", parent: true},
		{name: "traceidratio", arg: "0.5", parent: true, root: false},
		{name: "sometimes", parent: true, wrong: `"sometimes"`},
		{name: "traceidratio", arg: "2", parent: true, wrong: `"2"`},
		{name: "traceidratio", arg: "half", parent: true, wrong: `"half"`},
	} {
		env := map[string]string{"OTEL_TRACES_SAMPLER": c.name, "OTEL_TRACES_SAMPLER_ARG": c.arg}
		s, err := SamplerFromEnv(func(k string) string { return env[k] }, DefaultRatio)
		if (c.wrong != "") != errors.Is(err, errs.ErrInvalid) || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s %s: error %v", c.name, c.arg, err)
		}
		high := ids.TaskID{12: 0xff, 19: 7}
		if got := s.Decide(wire.TraceContext{}, high); got.Sampled() != c.root || got.TraceID != high.Trace() || got.SpanID != [8]byte{} {
			t.Errorf("%s %s: a root gets %+v, want sampled %v", c.name, c.arg, got, c.root)
		}
		if got := s.Decide(sampled, high); got.Sampled() != c.parent || got.TraceID != sampled.TraceID || got.SpanID != sampled.SpanID {
			t.Errorf("%s %s: a child of a sampled parent gets %+v, want sampled %v", c.name, c.arg, got, c.parent)
		}
		if got := s.Decide(dropped, high); got.Sampled() != c.orphan {
			t.Errorf("%s %s: a child of a parent that is not sampled gets %+v, want sampled %v", c.name, c.arg, got, c.orphan)
		}
	}
}

// Task ids are good enough as trace ids: the share of the sampled ones is the ratio.
func TestTheRatioIsKept(t *testing.T) {
	const n = 200_000
	for _, ratio := range []float64{0, 0.01, 0.3, 1} {
		s, hits := NewSampler(ratio), 0
		root := ids.RootTask(1, 1730000000000000000)
		for i := range uint64(n) {
			if s.Decide(wire.TraceContext{}, ids.Derive(root, i+1)).Sampled() {
				hits++
			}
		}
		if got, dev := float64(hits)/n, 5*math.Sqrt(ratio*(1-ratio)/n); math.Abs(got-ratio) > dev {
			t.Errorf("ratio %v samples %v", ratio, got)
		}
	}
	if NewSampler(math.NaN()) != NewSampler(0) || NewSampler(-1) != NewSampler(0) {
		t.Error("a ratio that is none samples")
	}
}

// We and the SDK decide in the same way, so that a trace is complete whoever began it.
func TestDecisionsAreTheSDKs(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		ratio := rapid.Float64Range(0, 1).Draw(t, "ratio")
		var id ids.TaskID
		binary.BigEndian.PutUint64(id[:], rapid.Uint64Min(1).Draw(t, "high"))
		binary.BigEndian.PutUint64(id[8:], rapid.Uint64().Draw(t, "low"))
		sdk := sdktrace.TraceIDRatioBased(ratio).ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: trace.TraceID(id.Trace())})
		ours := NewSampler(ratio).Decide(wire.TraceContext{}, id).Sampled()
		if want := sdk.Decision == sdktrace.RecordAndSample; ours != want {
			t.Fatalf("ratio %v, id %v: %v, the SDK says %v", ratio, id, ours, want)
		}
	})
}

func TestContextsConvertBothWays(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var tc wire.TraceContext
		binary.BigEndian.PutUint64(tc.TraceID[:], rapid.Uint64Min(1).Draw(t, "trace"))
		binary.BigEndian.PutUint64(tc.SpanID[:], rapid.Uint64Min(1).Draw(t, "span"))
		tc.Flags = rapid.Byte().Draw(t, "flags")
		if got := FromContext(WithTrace(context.Background(), tc)); got != tc {
			t.Fatalf("%+v comes back as %+v", tc, got)
		}
	})
	if got := FromContext(context.Background()); got != (wire.TraceContext{}) {
		t.Errorf("no span gives %+v", got)
	}
	if ctx := context.Background(); WithTrace(ctx, wire.TraceContext{}) != ctx {
		t.Error("no trace makes a new context")
	}
}

func TestSpanIDsAreDistinct(t *testing.T) {
	seen := map[[8]byte]string{}
	root := ids.RootTask(3, 99)
	for i := range uint64(2000) {
		task := ids.Derive(root, i)
		for n := range uint32(3) {
			for p := range numPhases {
				id := SpanOf(task, n, p)
				if was := seen[id]; was != "" || id == [8]byte{} {
					t.Fatalf("span %x of %v %d %v is also of %s", id, task, n, p, was)
				}
				seen[id] = task.String() + p.String()
			}
		}
	}
}

func TestTheHookNestsSampledTasksOnly(t *testing.T) {
	spec := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(1, 1), 1)}
	spec.Trace = NewSampler(1).Decide(wire.TraceContext{}, spec.ID)
	ctx, after := Hook(context.Background(), spec, 2)
	got := FromContext(ctx)
	if after != nil || got != Run(spec, 2) || got.TraceID != spec.ID.Trace() || got.SpanID != SpanOf(spec.ID, 2, PhaseRun) || !got.Sampled() {
		t.Errorf("the task runs in %+v", got)
	}
	// Tasks that it submits go on in the trace, below the run.
	if child := NewSampler(0).Decide(got, ids.Derive(spec.ID, 1)); child != got {
		t.Errorf("its child gets %+v, want %+v", child, got)
	}
	spec.Trace.Flags = 0
	base := context.Background()
	if ctx, _ := Hook(base, spec, 1); ctx != base {
		t.Error("a task that is not sampled gets a context of its own")
	}
}

func TestAnUnsampledTaskAllocatesNothing(t *testing.T) {
	s := NewSampler(DefaultRatio)
	spec := &wire.TaskSpec{ID: ids.TaskID{12: 0xff}}
	ctx := context.Background()
	if n := testing.AllocsPerRun(1000, func() {
		spec.Trace = s.Decide(wire.TraceContext{}, spec.ID)
		_, _ = Hook(ctx, spec, 1)
	}); n != 0 || spec.Trace.Sampled() {
		t.Errorf("%v allocations, sampled %v", n, spec.Trace.Sampled())
	}
}

func BenchmarkUnsampled(b *testing.B) {
	s := NewSampler(DefaultRatio)
	spec := &wire.TaskSpec{ID: ids.TaskID{12: 0xff}}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		spec.Trace = s.Decide(wire.TraceContext{}, spec.ID)
		_, _ = Hook(ctx, spec, 1)
	}
}

// Python's workers compute the same ids (python/tests/test_trace.py has the same).
func TestRunSpansAsPythonKnowsThem(t *testing.T) {
	var task ids.TaskID
	for i := range task[4:] {
		task[4+i] = byte(i)
	}
	for attempt, want := range map[uint32]string{1: "a3cbc4c4e89b5c1a", 70_000: "c54ba4228f7e0eb0"} {
		if got := fmt.Sprintf("%x", SpanOf(task, attempt, PhaseRun)); got != want {
			t.Errorf("the run of attempt %d is %s, want %s", attempt, got, want)
		}
	}
}
