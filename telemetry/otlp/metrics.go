package otlp

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"mobula/telemetry/export"
)

// points sends a gatherer's metrics every OTEL_METRIC_EXPORT_INTERVAL.
type points struct {
	*counts  // counts exports, each of all metrics
	provider *sdkmetric.MeterProvider
	idle     func()
}

// Metrics implements export.Driver.
func (driver) Metrics(ctx context.Context, cfg export.Config, by export.Protocol, of prometheus.Gatherer) (export.Exporter, error) {
	m := &points{counts: &counts{}, idle: func() {}}
	var exp sdkmetric.Exporter
	var err error
	if by == export.GRPC {
		exp, err = otlpmetricgrpc.New(ctx)
	} else {
		var c *http.Client
		if c, err = httpClient(cfg.Getenv, export.Metrics); err != nil {
			return nil, err
		}
		m.idle = c.CloseIdleConnections
		exp, err = otlpmetrichttp.New(ctx, otlpmetrichttp.WithHTTPClient(c))
	}
	if err != nil {
		return nil, fmt.Errorf("metric exporter %s: %w", by, err)
	}
	res, err := newResource(ctx, cfg)
	if err != nil {
		return nil, err
	}
	reader := sdkmetric.NewPeriodicReader(countedMetrics{exp, m.counts}, sdkmetric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(of))))
	m.provider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(res))
	return m, nil
}

// Flush sends the present metrics.
func (m *points) Flush(ctx context.Context) error { return m.provider.ForceFlush(ctx) }

// Shutdown sends the metrics a last time, and ends the exporter.
func (m *points) Shutdown(ctx context.Context) error {
	defer m.idle()
	return m.provider.Shutdown(ctx)
}

type countedMetrics struct {
	sdkmetric.Exporter
	n *counts
}

func (e countedMetrics) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	decodeTraces(rm)
	err := e.Exporter.Export(ctx, rm)
	e.n.over(1, err)
	return err
}

// decodeTraces turns the exemplars' trace ids into bytes: the bridge leaves them as Prometheus' hexadecimal digits, for which
// a collector refuses the whole request.
func decodeTraces(rm *metricdata.ResourceMetrics) {
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			h, _ := m.Data.(metricdata.Histogram[float64])
			for _, p := range h.DataPoints {
				for i := range p.Exemplars {
					if id, err := hex.DecodeString(string(p.Exemplars[i].TraceID)); err == nil && len(id) == 16 {
						p.Exemplars[i].TraceID = id
					}
				}
			}
		}
	}
}
