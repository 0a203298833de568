// Package otlp exports spans, metrics and log records over OTLP by OpenTelemetry's SDK. A program imports it for its effect of
// registering the driver that package export asks for:
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
// An exporter owns a provider, its queue and its connection. It sets nothing global: a
// process that is all ours (a worker) may set Provider itself.
//
// # What blocks
//
// To make an exporter, Emit and a record never do: the queues are bounded, and what does not fit, or what the collector does not take in
// time, is given up and counted (Dropped). Shutdown flushes, until its context ends.
//
// # Errors
//
// errs.ErrInvalid for variables that cannot be meant. An exporter that cannot reach its collector says so in
// the log through OpenTelemetry's error handler, not more often than the SDK does.
package otlp
