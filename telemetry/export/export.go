package export

import (
	"context"
	"fmt"
	"net/http"
	"os"
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
	"mobula/wire"
)

// Config says who exports.
type Config struct {
	Getenv  func(string) string // which exporter; nil: os.Getenv. The SDK itself reads the process' environment
	Node    string              // service.instance.id; empty: none
	Version string              // service.version; empty: none

	// Ratio is the share of the program's own traces that are sampled, of those that begin
	// with a span of Provider and not in a task; OTEL_TRACES_SAMPLER goes before it.
	Ratio float64
	// InTask gives the trace of the task that ctx belongs to, so that the program's spans in
	// a task that is not sampled are not either. nil: there are no tasks here.
	InTask func(ctx context.Context) (wire.TraceContext, bool)
}

// Exporter sends spans.
type Exporter struct {
	*counts
	provider *sdktrace.TracerProvider
	batches  sdktrace.SpanProcessor // the provider's
	resource *resource.Resource
	idle     func() // closes idle connections; nil: there are none
}

// New makes what the environment asks for: nil, and no error, where that is nothing.
func New(ctx context.Context, cfg Config) (*Exporter, error) {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	p, err := fromEnv(cfg.Getenv, traces)
	if p == "" || err != nil {
		return nil, err
	}
	sampler, err := telemetry.SamplerFromEnv(cfg.Getenv, cfg.Ratio)
	if err != nil {
		return nil, err
	}
	var exp sdktrace.SpanExporter
	var idle func()
	if p == grpcProtocol {
		exp, err = otlptracegrpc.New(ctx)
	} else {
		var c *http.Client
		if c, err = httpClient(cfg.Getenv, traces); err != nil {
			return nil, err
		}
		idle = c.CloseIdleConnections
		exp, err = otlptracehttp.New(ctx, otlptracehttp.WithHTTPClient(c))
	}
	if err != nil {
		return nil, fmt.Errorf("trace exporter %s: %w", p, err)
	}
	e, err := newExporter(ctx, cfg, sampler, exp)
	if err == nil {
		e.idle = idle
	}
	return e, err
}

// newResource is who exports.
func newResource(ctx context.Context, cfg Config) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{attribute.String("service.name", "mobula")}
	if cfg.Node != "" {
		attrs = append(attrs, attribute.String("service.instance.id", cfg.Node))
	}
	if cfg.Version != "" {
		attrs = append(attrs, attribute.String("service.version", cfg.Version))
	}
	// The later detector counts: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go before ours.
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(attrs...), resource.WithFromEnv())
	if err != nil && res == nil {
		return nil, fmt.Errorf("OpenTelemetry resource: %w", err)
	}
	return res, nil
}

func newExporter(ctx context.Context, cfg Config, sampler telemetry.Sampler, exp sdktrace.SpanExporter) (*Exporter, error) {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	res, err := newResource(ctx, cfg)
	if err != nil {
		return nil, err
	}
	most := queueSize(cfg.Getenv, "OTEL_BSP_MAX_QUEUE_SIZE")
	n := &counts{most: int64(most)}
	batches := boundedSpans{sdktrace.NewBatchSpanProcessor(countedSpans{exp, n}, sdktrace.WithMaxQueueSize(most)), n}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(batches), sdktrace.WithResource(res),
		sdktrace.WithSampler(decider{sampler, cfg.InTask}))
	return &Exporter{counts: n, provider: tp, batches: batches, resource: res}, nil
}

// Emit exports a span that is over. It is handed over as it is: to start and end one with a tracer, which
// has to be ready for anything in between, costs several times as much.
func (e *Exporter) Emit(s *telemetry.Span) {
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

// Provider makes spans that nest in those of tasks: for otel.SetTracerProvider in a process
// that is all ours.
func (e *Exporter) Provider() trace.TracerProvider { return e.provider }

// Flush sends what is queued.
func (e *Exporter) Flush(ctx context.Context) error { return e.provider.ForceFlush(ctx) }

// Shutdown sends what is queued and ends the exporter, its connections too.
func (e *Exporter) Shutdown(ctx context.Context) error {
	err := e.provider.Shutdown(ctx)
	e.end()
	if e.idle != nil {
		e.idle()
	}
	return err
}
