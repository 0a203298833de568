// Package export says whether spans, metrics and log records leave the process, by the standard OTEL_ variables, and hands them to the
// driver that a program has linked: OpenTelemetry's SDK and its exporters are 13 MiB of a binary and not every program wants them.
//
//	import _ "mobula/telemetry/otlp"
//
// Nothing is exported, and nothing of a driver runs, unless OTEL_TRACES_EXPORTER (_METRICS_, _LOGS_) names an exporter
// or OTEL_EXPORTER_OTLP_ENDPOINT (or _TRACES_ENDPOINT, ...) an endpoint. Exporters: otlp (over
// grpc or http/protobuf, as OTEL_EXPORTER_OTLP_PROTOCOL says), none.
//
// # Who owns what
//
// The registry of drivers is written while packages initialise. Whoever makes an exporter owns it and ends it with Shutdown.
//
// # What blocks
//
// Nothing here. Of an exporter only Flush and Shutdown block, until their context ends.
//
// # Errors
//
// errs.ErrInvalid for variables that are not valid, and if they ask for a driver that is not linked; the error then names its import.
package export
