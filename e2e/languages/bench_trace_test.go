package languages

import (
	"context"
	"testing"

	v1 "go.opentelemetry.io/proto/otlp/trace/v1"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/testkit"
	"mobula/telemetry/collector"
	_ "mobula/telemetry/otlp"
)

// The standard variables alone switch tracing on: a program that has no spans of its own gets those
// of its tasks.
func TestBenchTasksAreSampledByTheEnvironment(t *testing.T) {
	col, err := collector.GRPC()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(col.Close)
	t.Setenv("OTEL_TRACES_SAMPLER", "always_on")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", col.Endpoint())
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	modes(t, func(t *testing.T, ctx context.Context) {
		before, _ := col.Spans()
		if v, err := harness.Add.Go(ctx, mobula.V(1.0), mobula.V(2.0)).Get(ctx); err != nil || v != 3 {
			t.Fatalf("%v, %v", v, err)
		}
		wait, cancel := context.WithTimeout(ctx, testkit.Patience())
		defer cancel()
		spans, err := col.Wait(wait, func(all []*v1.Span) bool { return len(all) > len(before) })
		if err != nil {
			t.Fatalf("%d spans: %v; want those of a task", len(spans)-len(before), err)
		}
	})
}
