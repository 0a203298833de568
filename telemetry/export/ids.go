package export

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"mobula/internal/ids"
	"mobula/telemetry"
	"mobula/wire"
)

type idsKey struct{}

// given are the ids that a span built after the fact is to have.
type given struct {
	trace trace.TraceID
	span  trace.SpanID
}

func withIDs(ctx context.Context, traceID [16]byte, spanID [8]byte) context.Context {
	return context.WithValue(ctx, idsKey{}, &given{traceID, spanID})
}

// generator gives a span the ids in its context, else random ones.
type generator struct{}

func (generator) NewIDs(ctx context.Context) (t trace.TraceID, s trace.SpanID) {
	if g, ok := ctx.Value(idsKey{}).(*given); ok {
		return g.trace, g.span
	}
	for !t.IsValid() {
		binary.NativeEndian.PutUint64(t[:], rand.Uint64())
		binary.NativeEndian.PutUint64(t[8:], rand.Uint64())
	}
	return t, newSpanID()
}

func (generator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if g, ok := ctx.Value(idsKey{}).(*given); ok {
		return g.span
	}
	return newSpanID()
}

func newSpanID() (s trace.SpanID) {
	for !s.IsValid() {
		binary.NativeEndian.PutUint64(s[:], rand.Uint64())
	}
	return s
}

// decider samples what was decided before: spans built after the fact, and spans of the
// program by their parent, by the task they are in, or by the ratio.
type decider struct {
	sampler telemetry.Sampler
	inTask  func(context.Context) (wire.TraceContext, bool)
}

func (d decider) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	out := sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: parent.TraceState()}
	if _, ok := p.ParentContext.Value(idsKey{}).(*given); ok {
		out.Decision = sdktrace.RecordAndSample
		return out
	}
	tc := telemetry.FromSpan(parent)
	if !parent.IsValid() && d.inTask != nil {
		if of, ok := d.inTask(p.ParentContext); ok && !of.Sampled() {
			return out
		}
	}
	if d.sampler.Decide(tc, ids.TaskID(p.TraceID)).Sampled() {
		out.Decision = sdktrace.RecordAndSample
	}
	return out
}

func (decider) Description() string { return "mobula" }
