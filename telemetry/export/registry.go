package export

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"mobula/internal/errs"
)

// Driver makes exporters. Its methods are called only for signals that the environment wants exported.
type Driver interface {
	Spans(ctx context.Context, cfg Config, by Protocol) (SpanExporter, error)
	Metrics(ctx context.Context, cfg Config, by Protocol, of prometheus.Gatherer) (Exporter, error)
	Logs(ctx context.Context, cfg Config, by Protocol) (LogExporter, error)
}

// otlp is the driver of the exporter otlp, the only one there is.
var otlp struct { // guarded by mu; written while packages initialise
	mu     sync.RWMutex
	driver Driver
}

// Register sets the driver. It panics on a second one, which is a bug in the program.
func Register(d Driver) {
	otlp.mu.Lock()
	defer otlp.mu.Unlock()
	if otlp.driver != nil {
		panic("export: a driver was registered twice")
	}
	otlp.driver = d
}

func linked(of Signal) (Driver, error) {
	otlp.mu.RLock()
	defer otlp.mu.RUnlock()
	if otlp.driver == nil {
		return nil, errs.New(errs.CodeInvalid,
			"the OTEL_ variables ask for an exporter that this program has not linked: import _ %q; no %s are exported", "mobula/telemetry/otlp", of.What)
	}
	return otlp.driver, nil
}
