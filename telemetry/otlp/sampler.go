package otlp

import (
	"context"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"mobula/internal/ids"
	"mobula/telemetry"
	"mobula/wire"
)

// decider samples spans of the program by their parent, by the task they are in, or by the ratio.
type decider struct {
	sampler telemetry.Sampler
	inTask  func(context.Context) (wire.TraceContext, bool)
}

func (d decider) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	out := sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: parent.TraceState()}
	tc := telemetry.FromSpan(parent)
	if !parent.IsValid() && d.inTask != nil {
		if of, ok := d.inTask(p.ParentContext); ok && !of.Sampled() {
			return out
		}
	}
	if d.sampler.Decide(tc, ids.Widen(p.TraceID)).Sampled() {
		out.Decision = sdktrace.RecordAndSample
	}
	return out
}

func (decider) Description() string { return "mobula" }
