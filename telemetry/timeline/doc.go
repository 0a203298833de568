// Package timeline draws task events in Chrome's trace event format, which Perfetto
// (https://ui.perfetto.dev) and chrome://tracing open.
//
// Every worker is a process; each of its lanes, a thread, shows the runs of tasks one after
// the other. What a task waits for before it runs is an asynchronous slice in the process of
// the node, one track a task. Times are microseconds from base_unix_ns in the metadata, a
// whole second: whole Unix times would lose nanoseconds in the format's numbers.
//
// Everything is a pure function of its input. Nothing blocks; the errors are the
// writer's.
package timeline
