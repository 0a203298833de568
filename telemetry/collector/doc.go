// Package collector is an OTLP collector inside a test's process: it keeps the spans, metrics and log records that it receives
// over gRPC or HTTP, and writes them to files if configured so (Run).
//
// A Collector owns its listener and what it received; its methods may be called from any
// goroutine. Wait blocks until enough spans are there or its context ends.
package collector
