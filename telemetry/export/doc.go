// Package export sends spans where the standard OTEL_ variables say, by OpenTelemetry's SDK.
//
// Nothing is exported, and nothing of the SDK runs, unless OTEL_TRACES_EXPORTER names an exporter
// or OTEL_EXPORTER_OTLP_ENDPOINT (or _TRACES_ENDPOINT) an endpoint. Exporters: otlp (over
// grpc or http/protobuf, as OTEL_EXPORTER_OTLP_PROTOCOL says), none. The endpoint's further
// variables, OTEL_BSP_ for the batches, OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME
// (default "mobula") are the SDK's.
//
// # Who owns what
//
// An Exporter owns a tracer provider, its queue and its connection. It sets nothing global: a
// process that is all ours (a worker) may set Provider itself.
//
// # What blocks
//
// New and Emit never do: the SDK's queue is bounded, and what does not fit is dropped by it.
// Shutdown flushes, until its context ends.
//
// # Errors
//
// errs.ErrInvalid for variables that cannot be meant. An exporter that cannot reach its collector says so in
// the log through OpenTelemetry's error handler, not more often than the SDK does.
package export
