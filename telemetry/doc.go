// Package telemetry is how a task's trace begins and travels: which calls are traced, the
// context in the form of wire.TraceContext and of OpenTelemetry, and the ids of the spans.
// Its subpackages make something of it:
//
//	phases    a task's spans, built after the fact from its changes of state
//	export    whether anything leaves the process, as the OTEL_ variables say
//	otlp      OpenTelemetry's SDK and exporters, the driver of export
//	events    the bounded record of changes of state, in memory and in files
//	timeline  Chrome's trace format from those events
//	metrics   Prometheus
//	rotate    files that are bounded
//	logs      slog with trace ids
//	collector what a test exports to
//
// # The way of a trace
//
// Where a call is made, Sampler.Decide gives the spec its context: the caller's span where
// there is one, so that a program's own trace goes on in its tasks, else a new trace, whose
// id is the task's. The decision to record it is made there, once, and travels with it.
// TaskSpec.Trace is as W3C's traceparent: its SpanID is the parent's, zero for the root.
//
// The spans of a task are built by the node that owns it, from times that it has anyway:
// nothing is exported on a task's path, and the worker has no exporter. It knows the id of
// its run span because ids follow from the task's (SpanOf): Hook puts it in the task's
// context, and the program's own spans, and tasks it submits, nest below it.
//
// # Cost
//
// A task that is not sampled costs Decide, a few nanoseconds and no allocation, and the 24
// bytes of its context on the wire. Without an exporter no span is built at all.
//
// # Who owns what
//
// Everything in this package is a pure function or an immutable value. Nothing blocks. The one
// error is SamplerFromEnv's, errs.ErrInvalid.
package telemetry
