// Package otlp exports spans, metrics and log records over OTLP by OpenTelemetry's SDK. A program imports it to register the
// driver that package export needs:
//
//	import _ "mobula/telemetry/otlp"
//
// The mobula binary does. The endpoint's variables, OTEL_BSP_ and OTEL_BLRP_ for the batches, OTEL_METRIC_EXPORT_INTERVAL,
// OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME (default "mobula") are the SDK's; package export says which more count.
//
// Metrics are those that a Prometheus registry gives, by the same names.
//
// # Who owns what
//
// An exporter owns a provider, its queue and its connection. It sets nothing global: a process of the runtime's
// own (a worker) may set Provider itself.
//
// # What blocks
//
// Making an exporter, Emit and a log record never block: the queues are bounded, and items that do not fit, or that the collector does
// not accept in time, are dropped and counted (Dropped). Shutdown flushes, until its context ends.
//
// # Errors
//
// errs.ErrInvalid for variables that are not valid. An exporter that cannot reach its collector logs that through
// OpenTelemetry's error handler, no more often than the SDK does.
package otlp
