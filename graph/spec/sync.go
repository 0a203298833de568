package spec

import (
	"context"
	"reflect"

	"mobula/graph/internal/drive"
)

// Sync runs tasks one after another in the calling goroutine, in their static order: for a debugger, and for
// graphs with short tasks. It ignores resources.
func Sync() Executor { return syncExecutor{} }

type syncExecutor struct{}

// Run implements Executor.
func (syncExecutor) Run(ctx context.Context, p *Plan) ([]reflect.Value, error) {
	return p.run(ctx, drive.Limits{Tasks: 1}, &syncRunner{results: newResults(p)})
}

// syncRunner runs a task as it is started.
type syncRunner struct {
	results
	last drive.Ended
}

// Start implements drive.Runner.
func (r *syncRunner) Start(ctx context.Context, t int32) {
	v, err := r.call(ctx, t)
	r.values[t] = v
	r.last = drive.Ended{Task: t, Err: err, Again: true}
}

// Wait implements drive.Runner.
func (r *syncRunner) Wait(context.Context) ([]drive.Ended, error) {
	return []drive.Ended{r.last}, nil
}
