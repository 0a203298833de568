package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"

	"mobula/telemetry/export"
)

// records sends records of slog.
type records struct {
	*counts
	provider *sdklog.LoggerProvider
	idle     func()
}

// Logs implements export.Driver.
func (driver) Logs(ctx context.Context, cfg export.Config, by export.Protocol) (export.LogExporter, error) {
	most := queueSize(cfg.Getenv, "OTEL_BLRP_MAX_QUEUE_SIZE")
	l := &records{counts: &counts{most: int64(most)}, idle: func() {}}
	var exp sdklog.Exporter
	var err error
	if by == export.GRPC {
		exp, err = otlploggrpc.New(ctx)
	} else {
		var c *http.Client
		if c, err = httpClient(cfg.Getenv, export.Logs); err != nil {
			return nil, err
		}
		l.idle = c.CloseIdleConnections
		exp, err = otlploghttp.New(ctx, otlploghttp.WithHTTPClient(c))
	}
	if err != nil {
		return nil, fmt.Errorf("log exporter %s: %w", by, err)
	}
	res, err := newResource(ctx, cfg)
	if err != nil {
		return nil, err
	}
	batches := sdklog.NewBatchProcessor(countedLogs{exp, l.counts}, sdklog.WithMaxQueueSize(most))
	l.provider = sdklog.NewLoggerProvider(sdklog.WithProcessor(boundedLogs{batches, l.counts}), sdklog.WithResource(res))
	return l, nil
}

// Beside gives a handler that calls h, and exports the records that h is enabled for. If a record's context is in a
// span, the record has the span's ids.
func (l *records) Beside(h slog.Handler) slog.Handler {
	out := otelslog.NewHandler("mobula", otelslog.WithLoggerProvider(l.provider))
	return slog.NewMultiHandler(h, follows{Handler: out, lead: h})
}

// Flush sends everything in the queue.
func (l *records) Flush(ctx context.Context) error { return l.provider.ForceFlush(ctx) }

// Shutdown sends everything in the queue, and ends the exporter.
func (l *records) Shutdown(ctx context.Context) error {
	defer l.idle()
	defer l.end()
	return l.provider.Shutdown(ctx)
}

// follows is a handler that is enabled whenever another one is.
type follows struct {
	slog.Handler
	lead slog.Handler
}

func (f follows) Enabled(ctx context.Context, l slog.Level) bool { return f.lead.Enabled(ctx, l) }

func (f follows) WithAttrs(attrs []slog.Attr) slog.Handler {
	return follows{f.Handler.WithAttrs(attrs), f.lead}
}

func (f follows) WithGroup(name string) slog.Handler {
	return follows{f.Handler.WithGroup(name), f.lead}
}
