package export

import (
	"context"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
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

// Exporter is what those of every signal have.
type Exporter interface {
	Sent() uint64    // what the collector has taken
	Dropped() uint64 // what was given up: there was no room in the queue, or the collector did not take it in time
	// Flush sends what is queued.
	Flush(ctx context.Context) error
	// Shutdown sends what is queued and ends the exporter, its connections too.
	Shutdown(ctx context.Context) error
}

// SpanExporter sends spans.
type SpanExporter interface {
	Exporter
	// Emit exports a span that is over. It does not block.
	Emit(s *telemetry.Span)
	// Provider makes spans that nest in those of tasks: for otel.SetTracerProvider in a process
	// that is all ours.
	Provider() trace.TracerProvider
}

// LogExporter sends records of slog.
type LogExporter interface {
	Exporter
	// Beside gives a handler that does what h does, and exports what h is enabled for. A record whose context is in a span
	// has its ids.
	Beside(h slog.Handler) slog.Handler
}

// New makes what the environment asks for: nil, and no error, where that is nothing.
func New(ctx context.Context, cfg Config) (SpanExporter, error) {
	d, p, err := cfg.driver(Traces)
	if d == nil {
		return nil, err
	}
	return d.Spans(ctx, cfg, p)
}

// NewMetrics makes what the environment asks for, of what a gatherer gives, every OTEL_METRIC_EXPORT_INTERVAL: nil, and no
// error, where that is nothing. What it counts are exports, each of all metrics.
func NewMetrics(ctx context.Context, cfg Config, of prometheus.Gatherer) (Exporter, error) {
	d, p, err := cfg.driver(Metrics)
	if d == nil {
		return nil, err
	}
	return d.Metrics(ctx, cfg, p, of)
}

// NewLogs makes what the environment asks for: nil, and no error, where that is nothing.
func NewLogs(ctx context.Context, cfg Config) (LogExporter, error) {
	d, p, err := cfg.driver(Logs)
	if d == nil {
		return nil, err
	}
	return d.Logs(ctx, cfg, p)
}

// driver finds what exports a signal, and how: none where nothing is asked for.
func (cfg *Config) driver(of Signal) (Driver, Protocol, error) {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	p, err := fromEnv(cfg.Getenv, of)
	if p == "" || err != nil {
		return nil, "", err
	}
	d, err := linked(of)
	return d, p, err
}
