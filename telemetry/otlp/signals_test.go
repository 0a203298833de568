package otlp

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	logpb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"mobula/internal/testkit"
	"mobula/telemetry"
	"mobula/telemetry/collector"
	"mobula/telemetry/export"
)

// What a registry gives arrives by the same names, and log records with the trace that they belong to.
func TestMetricsAndLogsArrive(t *testing.T) {
	for name, open := range map[string]func() (*collector.Collector, error){"grpc": collector.GRPC, "http/protobuf": collector.HTTP} {
		t.Run(name, func(t *testing.T) {
			c, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.Endpoint())
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", name)
			t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a")
			reg := prometheus.NewRegistry()
			count := prometheus.NewCounter(prometheus.CounterOpts{Name: "mobula_things_total", Help: "Things."})
			took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "mobula_took_seconds", Help: "Time.", Buckets: []float64{1, 2}})
			reg.MustRegister(count, took)
			count.Add(3)
			took.(prometheus.ExemplarObserver).ObserveWithExemplar(1.5, prometheus.Labels{"trace_id": strings.Repeat("ab", 16)})
			ctx := testkit.Within(t)
			m, err := export.NewMetrics(ctx, export.Config{Node: "n1"}, reg)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			if got := c.Metric("mobula_things_total").GetSum(); got == nil || !got.IsMonotonic || len(got.DataPoints) != 1 || got.DataPoints[0].GetAsDouble() != 3 {
				t.Errorf("the counter is %v", got)
			}
			h, ok := c.Metric("mobula_took_seconds").GetData().(*metricpb.Metric_Histogram)
			if !ok || h.Histogram.DataPoints[0].Count != 1 || len(h.Histogram.DataPoints[0].Exemplars) != 1 || len(h.Histogram.DataPoints[0].Exemplars[0].TraceId) != 16 {
				t.Errorf("the histogram is %v", h)
			}
			l, err := export.NewLogs(ctx, export.Config{Node: "n1"})
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			log := slog.New(l.Beside(slog.NewTextHandler(&text, nil))).With("job", 7)
			in := trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: [16]byte{5}, SpanID: [8]byte{6}, TraceFlags: 1}))
			log.Debug("not for this level")
			log.WarnContext(in, "a warning", "task", "abc")
			if err := l.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			recs := c.Logs()
			if len(recs) != 1 {
				t.Fatalf("records %v", recs)
			}
			r := recs[0]
			if r.Body.GetStringValue() != "a warning" || r.SeverityText != "WARN" || len(r.TraceId) != 16 || r.TraceId[0] != 5 || len(r.SpanId) != 8 || r.SpanId[0] != 6 || attr(r, "task") != "abc" || attr(r, "job") != "7" {
				t.Errorf("the record is %v", r)
			}
			if !strings.Contains(text.String(), "a warning") || strings.Contains(text.String(), "not for") {
				t.Errorf("the log itself is %q", text.String())
			}
			_, from := c.Spans()
			for _, res := range from {
				if s := res.String(); !strings.Contains(s, "team") || !strings.Contains(s, "n1") || !strings.Contains(s, "mobula") {
					t.Errorf("a resource is %s", s)
				}
			}
			if m.Sent() != 1 || m.Dropped() != 0 || l.Sent() != 1 || l.Dropped() != 0 {
				t.Errorf("sent %d and %d, dropped %d and %d", m.Sent(), l.Sent(), m.Dropped(), l.Dropped())
			}
			if err := m.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			if err := l.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

func attr(r *logpb.LogRecord, key string) string {
	for _, a := range r.Attributes {
		if a.Key == key {
			if s := a.Value.GetStringValue(); s != "" {
				return s
			}
			return strings.TrimPrefix(a.Value.String(), "int_value:")
		}
	}
	return ""
}

// A collector accepts nothing: nobody waits for it, and every span and record that it did not get is counted.
func TestWhatASlowCollectorDoesNotTakeIsCounted(t *testing.T) {
	gate := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(gate)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "20")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "50")
	t.Setenv("OTEL_BLRP_EXPORT_TIMEOUT", "50")
	t.Setenv("OTEL_METRIC_EXPORT_TIMEOUT", "50")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "50")
	t.Setenv("OTEL_BLRP_MAX_QUEUE_SIZE", "100")
	t.Setenv("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "50")
	ctx := testkit.Within(t)
	const n = 5000
	e, err := export.New(ctx, export.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := export.NewLogs(ctx, export.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := export.NewMetrics(ctx, export.Config{}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(l.Beside(slog.DiscardHandler))
	quiet := slog.New(l.Beside(slog.NewTextHandler(discard{}, nil)))
	for i := range n {
		e.Emit(&telemetry.Span{TraceID: [16]byte{1}, ID: [8]byte{byte(i), byte(i >> 8), 1}, Name: "s", Start: 1, End: 2})
		quiet.Info("line")
		log.Info("for nobody")
	}
	for _, end := range []func(context.Context) error{e.Shutdown, l.Shutdown, m.Shutdown} {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		_ = end(ctx) // it says that the last could not be sent
		cancel()
	}
	if e.Sent() != 0 || e.Dropped() != n || l.Sent() != 0 || l.Dropped() != n || m.Sent() != 0 || m.Dropped() == 0 {
		t.Errorf("spans: %d sent, %d dropped; records: %d, %d; exports of metrics: %d, %d", e.Sent(), e.Dropped(), l.Sent(), l.Dropped(), m.Sent(), m.Dropped())
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
