package export

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
)

// Logs sends records of slog.
type Logs struct {
	*counts
	provider *sdklog.LoggerProvider
	idle     func()
}

// NewLogs makes what the environment asks for: nil, and no error, where that is nothing.
func NewLogs(ctx context.Context, cfg Config) (*Logs, error) {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	p, err := fromEnv(cfg.Getenv, logs)
	if p == "" || err != nil {
		return nil, err
	}
	most := queueSize(cfg.Getenv, "OTEL_BLRP_MAX_QUEUE_SIZE")
	l := &Logs{counts: &counts{most: int64(most)}, idle: func() {}}
	var exp sdklog.Exporter
	if p == grpcProtocol {
		exp, err = otlploggrpc.New(ctx)
	} else {
		var c *http.Client
		if c, err = httpClient(cfg.Getenv, logs); err != nil {
			return nil, err
		}
		l.idle = c.CloseIdleConnections
		exp, err = otlploghttp.New(ctx, otlploghttp.WithHTTPClient(c))
	}
	if err != nil {
		return nil, fmt.Errorf("log exporter %s: %w", p, err)
	}
	res, err := newResource(ctx, cfg)
	if err != nil {
		return nil, err
	}
	batches := sdklog.NewBatchProcessor(countedLogs{exp, l.counts}, sdklog.WithMaxQueueSize(most))
	l.provider = sdklog.NewLoggerProvider(sdklog.WithProcessor(boundedLogs{batches, l.counts}), sdklog.WithResource(res))
	return l, nil
}

// Beside gives a handler that does what h does, and exports what h is enabled for. A record whose context is in a span
// has its ids.
func (l *Logs) Beside(h slog.Handler) slog.Handler {
	out := otelslog.NewHandler("mobula", otelslog.WithLoggerProvider(l.provider))
	return slog.NewMultiHandler(h, follows{Handler: out, lead: h})
}

// Flush sends what is queued.
func (l *Logs) Flush(ctx context.Context) error { return l.provider.ForceFlush(ctx) }

// Shutdown sends what is queued, and ends the exporter.
func (l *Logs) Shutdown(ctx context.Context) error {
	defer l.idle()
	defer l.end()
	return l.provider.Shutdown(ctx)
}

// follows is enabled where another handler is.
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
