package otlp

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"mobula/telemetry"
	"mobula/telemetry/export"
)

// spans sends spans.
type spans struct {
	*counts
	provider *sdktrace.TracerProvider
	batches  sdktrace.SpanProcessor // the provider's
	resource *resource.Resource
	idle     func() // closes idle connections
}

// Spans implements export.Driver.
func (driver) Spans(ctx context.Context, cfg export.Config, by export.Protocol) (export.SpanExporter, error) {
	sampler, err := telemetry.SamplerFromEnv(cfg.Getenv, cfg.Ratio)
	if err != nil {
		return nil, err
	}
	var exp sdktrace.SpanExporter
	idle := func() {}
	if by == export.GRPC {
		exp, err = otlptracegrpc.New(ctx)
	} else {
		var c *http.Client
		if c, err = httpClient(cfg.Getenv, export.Traces); err != nil {
			return nil, err
		}
		idle = c.CloseIdleConnections
		exp, err = otlptracehttp.New(ctx, otlptracehttp.WithHTTPClient(c))
	}
	if err != nil {
		return nil, fmt.Errorf("trace exporter %s: %w", by, err)
	}
	e, err := newSpans(ctx, cfg, sampler, exp)
	if err != nil {
		return nil, err
	}
	e.idle = idle
	return e, nil
}

// newResource describes this process as the source.
func newResource(ctx context.Context, cfg export.Config) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{attribute.String("service.name", "mobula")}
	if cfg.Node != "" {
		attrs = append(attrs, attribute.String("service.instance.id", cfg.Node))
	}
	if cfg.Version != "" {
		attrs = append(attrs, attribute.String("service.version", cfg.Version))
	}
	// The later detector wins: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override ours.
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(attrs...), resource.WithFromEnv())
	if err != nil && res == nil {
		return nil, fmt.Errorf("OpenTelemetry resource: %w", err)
	}
	return res, nil
}

func newSpans(ctx context.Context, cfg export.Config, sampler telemetry.Sampler, exp sdktrace.SpanExporter) (*spans, error) {
	res, err := newResource(ctx, cfg)
	if err != nil {
		return nil, err
	}
	most := queueSize(cfg.Getenv, "OTEL_BSP_MAX_QUEUE_SIZE")
	n := &counts{most: int64(most)}
	batches := boundedSpans{sdktrace.NewBatchSpanProcessor(countedSpans{exp, n}, sdktrace.WithMaxQueueSize(most)), n}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(batches), sdktrace.WithResource(res),
		sdktrace.WithSampler(decider{sampler, cfg.InTask}))
	return &spans{counts: n, provider: tp, batches: batches, resource: res, idle: func() {}}, nil
}

// Emit exports a finished span. It passes it on as it is: to start and end a span with a tracer costs several
// times as much.
func (e *spans) Emit(s *telemetry.Span) {
	out := tracetest.SpanStub{
		Name:        s.Name,
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: s.TraceID, SpanID: s.ID, TraceFlags: trace.FlagsSampled}),
		SpanKind:    trace.SpanKindInternal,
		StartTime:   time.Unix(0, s.Start), EndTime: time.Unix(0, s.End),
		Attributes: s.Attrs, Resource: e.resource, InstrumentationScope: instrumentation.Scope{Name: "mobula"},
	}
	if s.Parent != [8]byte{} {
		out.Parent = trace.NewSpanContext(trace.SpanContextConfig{TraceID: s.TraceID, SpanID: s.Parent, TraceFlags: trace.FlagsSampled, Remote: true})
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, sdktrace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: l.TraceID, SpanID: l.ID, TraceFlags: trace.FlagsSampled})})
	}
	for _, ev := range s.Events {
		out.Events = append(out.Events, sdktrace.Event{Name: ev.Name, Time: time.Unix(0, ev.At), Attributes: ev.Attrs})
	}
	if s.Err != nil {
		out.Status = sdktrace.Status{Code: codes.Error, Description: s.Err.Error()}
		out.Events = append(out.Events, sdktrace.Event{Name: semconv.ExceptionEventName, Time: out.EndTime, Attributes: []attribute.KeyValue{
			semconv.ExceptionType(fmt.Sprintf("%T", s.Err)), semconv.ExceptionMessage(s.Err.Error())}})
	}
	e.batches.OnEnd(out.Snapshot())
}

// Provider makes spans that nest in those of tasks, for otel.SetTracerProvider in a process of the runtime's own.
func (e *spans) Provider() trace.TracerProvider { return e.provider }

// Flush sends everything in the queue.
func (e *spans) Flush(ctx context.Context) error { return e.provider.ForceFlush(ctx) }

// Shutdown sends everything in the queue and ends the exporter and its connections.
func (e *spans) Shutdown(ctx context.Context) error {
	err := e.provider.Shutdown(ctx)
	e.end()
	e.idle()
	return err
}
