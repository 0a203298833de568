package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"mobula/wire"
)

// FromContext is the OpenTelemetry span that ctx is in, or zero.
func FromContext(ctx context.Context) wire.TraceContext {
	return FromSpan(trace.SpanContextFromContext(ctx))
}

// FromSpan converts a span's context; an invalid one gives zero.
func FromSpan(sc trace.SpanContext) wire.TraceContext {
	if !sc.IsValid() {
		return wire.TraceContext{}
	}
	return wire.TraceContext{TraceID: sc.TraceID(), SpanID: sc.SpanID(), Flags: byte(sc.TraceFlags())}
}

// ToSpan converts a remote context. The context of a trace's root has no span, and is not valid for OpenTelemetry.
func ToSpan(tc wire.TraceContext) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: tc.TraceID, SpanID: tc.SpanID, TraceFlags: trace.TraceFlags(tc.Flags), Remote: true,
	})
}

// WithTrace gives a context in which new spans are children of tc. Without a valid tc it
// is ctx itself.
func WithTrace(ctx context.Context, tc wire.TraceContext) context.Context {
	if sc := ToSpan(tc); sc.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return ctx
}

// Hook is worker.Config.Context: code of a sampled task runs inside its run span. The span
// itself is built by the node from the times that the worker reports.
func Hook(ctx context.Context, spec *wire.TaskSpec, attempt uint32) (context.Context, func(error)) {
	if !spec.Trace.Sampled() {
		return ctx, nil
	}
	return WithTrace(ctx, Run(spec, attempt)), nil
}

// Run is the context of the run span of an attempt.
func Run(spec *wire.TaskSpec, attempt uint32) wire.TraceContext {
	return wire.TraceContext{TraceID: spec.Trace.TraceID, SpanID: SpanOf(spec.ID, attempt, PhaseRun), Flags: spec.Trace.Flags}
}
