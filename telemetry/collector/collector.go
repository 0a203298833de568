package collector

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	logpb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Collector keeps the telemetry that it receives.
type Collector struct {
	collectorpb.UnimplementedTraceServiceServer
	addr  string // address of the receiver started last
	stops []func()
	files map[string]*os.File // by signal; immutable once it runs, and written to under mu

	mu        sync.Mutex
	spans     []*tracepb.Span             // guarded by mu
	resources []*resourcepb.Resource      // guarded by mu
	metrics   map[string]*metricpb.Metric // guarded by mu: the last of each name
	logs      []*logpb.LogRecord          // guarded by mu
	more      chan struct{}               // guarded by mu: closed when something arrives
}

func newCollector() *Collector {
	return &Collector{metrics: make(map[string]*metricpb.Metric), more: make(chan struct{})}
}

// GRPC starts a collector that speaks OTLP over gRPC.
func GRPC() (*Collector, error) {
	c := newCollector()
	return c, c.serveGRPC(anyPort)
}

// HTTP starts a collector that speaks OTLP over HTTP.
func HTTP() (*Collector, error) {
	c := newCollector()
	return c, c.serveHTTP(anyPort)
}

const anyPort = "127.0.0.1:0"

func (c *Collector) serveGRPC(addr string) error {
	s := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(s, c)
	metricspb.RegisterMetricsServiceServer(s, metricsServer{c: c})
	logspb.RegisterLogsServiceServer(s, logsServer{c: c})
	return c.serve(addr, s.Serve, s.Stop)
}

func (c *Collector) serveHTTP(addr string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		take(w, r, new(collectorpb.ExportTraceServiceRequest), c.add)
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
		take(w, r, new(metricspb.ExportMetricsServiceRequest), c.addMetrics)
	})
	mux.HandleFunc("POST /v1/logs", func(w http.ResponseWriter, r *http.Request) {
		take(w, r, new(logspb.ExportLogsServiceRequest), c.addLogs)
	})
	s := &http.Server{Handler: mux}
	return c.serve(addr, s.Serve, func() { _ = s.Close() })
}

func (c *Collector) serve(addr string, serve func(net.Listener) error, stop func()) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	c.addr = l.Addr().String()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = serve(l) // ends with stop
	}()
	c.stops = append(c.stops, func() { stop(); <-done })
	return nil
}

// Endpoint is the value for OTEL_EXPORTER_OTLP_ENDPOINT.
func (c *Collector) Endpoint() string { return "http://" + c.addr }

// Close stops the collector.
func (c *Collector) Close() {
	for _, stop := range c.stops {
		stop()
	}
}

// Export is the gRPC method of traces.
func (c *Collector) Export(_ context.Context, r *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.add(r)
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

type metricsServer struct {
	metricspb.UnimplementedMetricsServiceServer
	c *Collector
}

// Export is the gRPC method of metrics.
func (s metricsServer) Export(_ context.Context, r *metricspb.ExportMetricsServiceRequest) (*metricspb.ExportMetricsServiceResponse, error) {
	s.c.addMetrics(r)
	return &metricspb.ExportMetricsServiceResponse{}, nil
}

type logsServer struct {
	logspb.UnimplementedLogsServiceServer
	c *Collector
}

// Export is the gRPC method of logs.
func (s logsServer) Export(_ context.Context, r *logspb.ExportLogsServiceRequest) (*logspb.ExportLogsServiceResponse, error) {
	s.c.addLogs(r)
	return &logspb.ExportLogsServiceResponse{}, nil
}

func take[M proto.Message](w http.ResponseWriter, r *http.Request, into M, add func(M)) {
	body := io.Reader(r.Body)
	var err error
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(body)
	}
	var raw []byte
	if err == nil {
		raw, err = io.ReadAll(body)
	}
	if err == nil {
		err = proto.Unmarshal(raw, into)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	add(into)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *Collector) add(r *collectorpb.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range r.ResourceSpans {
		c.resources = append(c.resources, rs.Resource)
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	c.write("traces", r)
	c.arrived()
}

func (c *Collector) addMetrics(r *metricspb.ExportMetricsServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rm := range r.ResourceMetrics {
		c.resources = append(c.resources, rm.Resource)
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				c.metrics[m.Name] = m
			}
		}
	}
	c.write("metrics", r)
	c.arrived()
}

func (c *Collector) addLogs(r *logspb.ExportLogsServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rl := range r.ResourceLogs {
		c.resources = append(c.resources, rl.Resource)
		for _, sl := range rl.ScopeLogs {
			c.logs = append(c.logs, sl.LogRecords...)
		}
	}
	c.write("logs", r)
	c.arrived()
}

// arrived wakes the waiters. mu is held.
func (c *Collector) arrived() {
	close(c.more)
	c.more = make(chan struct{})
}

// Spans gives the spans received so far, and the resources of everything received.
func (c *Collector) Spans() ([]*tracepb.Span, []*resourcepb.Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*tracepb.Span(nil), c.spans...), append([]*resourcepb.Resource(nil), c.resources...)
}

// Metric is the last value of a metric, or nil.
func (c *Collector) Metric(name string) *metricpb.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.metrics[name]
}

// Logs are the log records received so far.
func (c *Collector) Logs() []*logpb.LogRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*logpb.LogRecord(nil), c.logs...)
}

// Wait gives the spans as soon as enough returns true.
func (c *Collector) Wait(ctx context.Context, enough func([]*tracepb.Span) bool) ([]*tracepb.Span, error) {
	var spans []*tracepb.Span
	err := c.Until(ctx, func() bool {
		spans, _ = c.Spans()
		return enough(spans)
	})
	if err != nil {
		err = fmt.Errorf("%d spans arrived: %w", len(spans), err)
	}
	return spans, err
}

// Until waits until enough returns true; it calls enough whenever something has arrived.
func (c *Collector) Until(ctx context.Context, enough func() bool) error {
	for {
		c.mu.Lock()
		more := c.more
		c.mu.Unlock()
		if enough() {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
