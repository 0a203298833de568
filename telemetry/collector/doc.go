// Package collector is an OTLP collector inside a test's process: it keeps the spans, metrics and log records that it is sent,
// over gRPC or HTTP, and writes them to files where a configuration says so (Run).
//
// A Collector owns its listener and what it received; its methods may be called from any
// goroutine. Wait blocks until enough spans are there or its context ends.
package collector
