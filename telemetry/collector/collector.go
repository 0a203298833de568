package collector

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Collector keeps what it is sent.
type Collector struct {
	collectorpb.UnimplementedTraceServiceServer
	addr string
	stop func()

	mu        sync.Mutex
	spans     []*tracepb.Span        // guarded by mu
	resources []*resourcepb.Resource // guarded by mu
	more      chan struct{}          // guarded by mu: closed when something arrives
}

func listen() (net.Listener, *Collector, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	return l, &Collector{addr: l.Addr().String(), more: make(chan struct{})}, nil
}

// GRPC starts a collector that speaks OTLP over gRPC.
func GRPC() (*Collector, error) {
	l, c, err := listen()
	if err != nil {
		return nil, err
	}
	s := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(s, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends with Stop
	}()
	c.stop = func() { s.Stop(); <-done }
	return c, nil
}

// HTTP starts a collector that speaks OTLP over HTTP.
func HTTP() (*Collector, error) {
	l, c, err := listen()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", c.post)
	s := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends with Close
	}()
	c.stop = func() { _ = s.Close(); <-done }
	return c, nil
}

// Endpoint is the value for OTEL_EXPORTER_OTLP_ENDPOINT.
func (c *Collector) Endpoint() string { return "http://" + c.addr }

// Close stops the collector.
func (c *Collector) Close() { c.stop() }

// Export is the gRPC method.
func (c *Collector) Export(_ context.Context, r *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.add(r)
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func (c *Collector) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	req := new(collectorpb.ExportTraceServiceRequest)
	if err == nil {
		err = proto.Unmarshal(body, req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.add(req)
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
	close(c.more)
	c.more = make(chan struct{})
}

// Spans are those received so far, and the resources that they came from.
func (c *Collector) Spans() ([]*tracepb.Span, []*resourcepb.Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*tracepb.Span(nil), c.spans...), append([]*resourcepb.Resource(nil), c.resources...)
}

// Wait gives the spans as soon as enough says so.
func (c *Collector) Wait(ctx context.Context, enough func([]*tracepb.Span) bool) ([]*tracepb.Span, error) {
	for {
		c.mu.Lock()
		spans, more := append([]*tracepb.Span(nil), c.spans...), c.more
		c.mu.Unlock()
		if enough(spans) {
			return spans, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return spans, fmt.Errorf("%d spans arrived: %w", len(spans), context.Cause(ctx))
		}
	}
}
