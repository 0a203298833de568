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

// Config configures exporters.
type Config struct {
	Getenv  func(string) string // for the choice of exporter; nil: os.Getenv. The SDK itself reads the process' environment
	Node    string              // service.instance.id; empty: none
	Version string              // service.version; empty: none

	// Ratio is the share of sampled traces among the program's own: those that begin with a span of Provider and
	// not in a task. OTEL_TRACES_SAMPLER overrides it.
	Ratio float64
	// InTask gives the trace of the task that ctx belongs to, so that the program's spans are not sampled in a
	// task that is not. nil: there are no tasks here.
	InTask func(ctx context.Context) (wire.TraceContext, bool)
}

// Exporter is common to the exporters of all signals.
type Exporter interface {
	Sent() uint64    // accepted by the collector
	Dropped() uint64 // dropped: the queue was full, or the collector did not accept it in time
	// Flush sends everything in the queue.
	Flush(ctx context.Context) error
	// Shutdown sends everything in the queue and ends the exporter and its connections.
	Shutdown(ctx context.Context) error
}

// SpanExporter sends spans.
type SpanExporter interface {
	Exporter
	// Emit exports a finished span. It does not block.
	Emit(s *telemetry.Span)
	// Provider makes spans that nest in those of tasks, for otel.SetTracerProvider in a process of the runtime's
	// own.
	Provider() trace.TracerProvider
}

// LogExporter sends records of slog.
type LogExporter interface {
	Exporter
	// Beside gives a handler that calls h, and exports the records that h is enabled for. If a record's context is in a
	// span, the record has the span's ids.
	Beside(h slog.Handler) slog.Handler
}

// New makes the exporter that the environment asks for, or nil without an error if it asks for none.
func New(ctx context.Context, cfg Config) (SpanExporter, error) {
	d, p, err := cfg.driver(Traces)
	if d == nil {
		return nil, err
	}
	return d.Spans(ctx, cfg, p)
}

// NewMetrics makes the exporter that the environment asks for, or nil without an error if it asks for none. It exports the
// gatherer's metrics every OTEL_METRIC_EXPORT_INTERVAL, and counts exports, each of all metrics.
func NewMetrics(ctx context.Context, cfg Config, of prometheus.Gatherer) (Exporter, error) {
	d, p, err := cfg.driver(Metrics)
	if d == nil {
		return nil, err
	}
	return d.Metrics(ctx, cfg, p, of)
}

// NewLogs makes the exporter that the environment asks for, or nil without an error if it asks for none.
func NewLogs(ctx context.Context, cfg Config) (LogExporter, error) {
	d, p, err := cfg.driver(Logs)
	if d == nil {
		return nil, err
	}
	return d.Logs(ctx, cfg, p)
}

// driver finds the driver and the protocol for a signal; none if the environment asks for none.
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
