package otlp

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// counts counts what was exported and dropped. The SDK's queues silently drop items that do not fit, so no queue is given more
// than it has room for.
type counts struct {
	most    int64        // how many may wait
	waiting atomic.Int64 // given to the SDK and not yet being exported
	sent    atomic.Uint64
	dropped atomic.Uint64
}

// Sent counts the items that the collector has accepted.
func (c *counts) Sent() uint64 { return c.sent.Load() }

// Dropped counts dropped items: the queue was full, or the collector did not accept them in time.
func (c *counts) Dropped() uint64 { return c.dropped.Load() }

// enter tells whether there is room for one more.
func (c *counts) enter() bool {
	if c.waiting.Add(1) <= c.most {
		return true
	}
	c.waiting.Add(-1)
	c.dropped.Add(1)
	return false
}

// end counts the items left in a queue that nobody empties any more as dropped.
func (c *counts) end() { c.dropped.Add(uint64(max(0, c.waiting.Swap(0)))) }

// over notes the outcome of an export of n.
func (c *counts) over(n int, err error) {
	if err != nil {
		c.dropped.Add(uint64(n))
	} else {
		c.sent.Add(uint64(n))
	}
}

type boundedSpans struct {
	sdktrace.SpanProcessor
	n *counts
}

func (p boundedSpans) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanContext().IsSampled() && p.n.enter() {
		p.SpanProcessor.OnEnd(s)
	}
}

type countedSpans struct {
	sdktrace.SpanExporter
	n *counts
}

func (e countedSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.n.waiting.Add(-int64(len(spans)))
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.n.over(len(spans), err)
	return err
}

type boundedLogs struct {
	sdklog.Processor
	n *counts
}

func (p boundedLogs) OnEmit(ctx context.Context, r *sdklog.Record) error {
	if !p.n.enter() {
		return nil
	}
	return p.Processor.OnEmit(ctx, r)
}

type countedLogs struct {
	sdklog.Exporter
	n *counts
}

func (e countedLogs) Export(ctx context.Context, records []sdklog.Record) error {
	e.n.waiting.Add(-int64(len(records)))
	err := e.Exporter.Export(ctx, records)
	e.n.over(len(records), err)
	return err
}

// queueSize reads how many spans or log records may wait.
func queueSize(getenv func(string) string, name string) int {
	const most = 2048 // OpenTelemetry's default
	if n, err := strconv.Atoi(strings.TrimSpace(getenv(name))); err == nil && n > 0 {
		return n
	}
	return most
}
