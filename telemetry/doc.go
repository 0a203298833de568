// Package telemetry begins and carries a task's trace: it decides which calls are traced, converts contexts
// between wire.TraceContext and OpenTelemetry, and derives the ids of spans. Its subpackages:
//
//	phases    a task's spans, built after the fact from its changes of state
//	export    whether anything is exported, by the OTEL_ variables
//	otlp      OpenTelemetry's SDK and exporters, the driver of export
//	events    the bounded record of changes of state, in memory and in files
//	timeline  Chrome's trace format from those events
//	metrics   Prometheus
//	rotate    files of bounded size
//	logs      slog with trace ids
//	collector a collector for tests
//
// # The way of a trace
//
// When a call is made, Sampler.Decide gives the spec its context: the caller's span if there is one, so that a
// program's own trace goes on in its tasks, else a new trace with the task's id. The decision to record the trace
// is made only there, and travels with it. TaskSpec.Trace is like W3C's traceparent: its SpanID is the parent's,
// zero for the root.
//
// The node that owns a task builds its spans, from times that it has anyway: nothing is exported on a task's path,
// and the worker has no exporter. The worker knows the id of the run span because it follows from the task's id
// (SpanOf): Hook puts it in the task's context, so the program's own spans, and tasks that it submits, nest below
// it.
//
// # Cost
//
// A task that is not sampled costs Decide, a few nanoseconds and no allocation, and the 24
// bytes of its context on the wire. Without an exporter no span is built at all.
//
// # Who owns what
//
// Everything in this package is a pure function or an immutable value. Nothing blocks. The only error is that of
// SamplerFromEnv, errs.ErrInvalid.
package telemetry
