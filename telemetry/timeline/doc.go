// Package timeline draws task events in Chrome's trace event format, which Perfetto
// (https://ui.perfetto.dev) and chrome://tracing open.
//
// Every worker is a process; each of its lanes is a thread, which shows the runs of tasks one after the other. The
// waits of a task before it runs are asynchronous slices in the node's process, on one track per task. Times are
// microseconds from base_unix_ns in the metadata, a whole second: full Unix times would lose nanoseconds in the
// format's numbers.
//
// Everything is a pure function of its input. Nothing blocks; errors are those of the writer.
package timeline
