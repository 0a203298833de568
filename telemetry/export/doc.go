// Package export sends spans, metrics and log records where the standard OTEL_ variables say, by OpenTelemetry's SDK.
//
// Nothing is exported, and nothing of the SDK runs, unless OTEL_TRACES_EXPORTER (_METRICS_, _LOGS_) names an exporter
// or OTEL_EXPORTER_OTLP_ENDPOINT (or _TRACES_ENDPOINT, ...) an endpoint. Exporters: otlp (over
// grpc or http/protobuf, as OTEL_EXPORTER_OTLP_PROTOCOL says), none. The endpoint's further
// variables, OTEL_BSP_ and OTEL_BLRP_ for the batches, OTEL_METRIC_EXPORT_INTERVAL, OTEL_RESOURCE_ATTRIBUTES and
// OTEL_SERVICE_NAME (default "mobula") are the SDK's.
//
// Metrics are those that a Prometheus registry gives, by the same names.
//
// # Who owns what
//
// An Exporter (Metrics, Logs) owns a provider, its queue and its connection. It sets nothing global: a
// process that is all ours (a worker) may set Provider itself.
//
// # What blocks
//
// New, Emit and a record never do: the queues are bounded, and what does not fit, or what the collector does not take in
// time, is given up and counted (Dropped). Shutdown flushes, until its context ends.
//
// # Errors
//
// errs.ErrInvalid for variables that cannot be meant. An exporter that cannot reach its collector says so in
// the log through OpenTelemetry's error handler, not more often than the SDK does.
package export
