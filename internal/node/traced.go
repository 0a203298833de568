package node

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"

	"go.opentelemetry.io/otel"

	"mobula/internal/client"
	"mobula/internal/ids"
	"mobula/internal/release"
	"mobula/telemetry"
	"mobula/telemetry/export"
	"mobula/telemetry/logs"
	"mobula/wire"
	"mobula/worker"
)

// traced is the option of a worker process whose tasks run inside their spans. Where the
// OTEL_ variables ask for it the program's own spans are exported too; the process is all ours,
// so that the global provider is ours to set. end sends the last of them.
func traced(ctx context.Context) (opt worker.Option, end func(context.Context)) {
	opt = func(c *worker.Config) { c.Context = telemetry.Hook }
	exp, err := export.New(ctx, export.Config{Version: release.Build(), Ratio: telemetry.DefaultRatio, InTask: taskTrace})
	if err != nil {
		slog.Warn("this worker's traces are not exported", "err", err)
	}
	if exp == nil {
		return opt, func(context.Context) {}
	}
	otel.SetTracerProvider(exp.Provider())
	return opt, func(ctx context.Context) {
		if err := exp.Shutdown(ctx); err != nil {
			slog.Warn("this worker's last spans could not be exported", "err", err)
		}
	}
}

// logWithTasks makes the program's default logger say, of a record whose context is a task's,
// which task that is and its trace: so a task's lines are found in what its process wrote. A
// handler that the program has set is kept.
func logWithTasks() {
	h := slog.Default().Handler()
	if fmt.Sprintf("%T", h) == "*slog.defaultHandler" { // it cannot be wrapped: it writes to package log, which would write to it
		h = slog.NewTextHandler(os.Stderr, nil)
	}
	slog.SetDefault(slog.New(logs.Traced(h, taskAttrs)))
}

func taskAttrs(ctx context.Context) []slog.Attr {
	tc := client.FromContext(ctx)
	if tc == nil || tc.Spec == nil {
		return nil
	}
	return []slog.Attr{slog.String("task", tc.Task.String()), slog.String("func", tc.Spec.Opts.Func), slog.Int("attempt", int(tc.Attempt))}
}

// taskTrace is the trace of the task that ctx belongs to.
func taskTrace(ctx context.Context) (wire.TraceContext, bool) {
	tc := client.FromContext(ctx)
	if tc == nil || tc.Spec == nil {
		return wire.TraceContext{}, false
	}
	return tc.Trace, true
}

// sampler decides which of a driver's tasks are traced: by the OTEL_ variables, else as the
// node says in its Welcome.
func sampler(w *wire.Welcome, log *slog.Logger) func(wire.TraceContext, ids.TaskID) wire.TraceContext {
	ratio := telemetry.DefaultRatio
	if w.TraceMillionths != 0 {
		ratio = float64(w.TraceMillionths) / 1e6
	}
	s, err := telemetry.SamplerFromEnv(os.Getenv, ratio)
	if err != nil {
		log.Warn("OTEL_ variables of this driver are not used", "err", err)
	}
	return s.Decide
}

// traceMillionths is the node's share of traced tasks as a Welcome tells it.
func (c Config) traceMillionths() int32 {
	if c.TraceRatio < 0 {
		return -1
	}
	return int32(max(1, math.Round(c.TraceRatio*1e6)))
}
