package spec

import (
	"context"
	"maps"
	"math"
	"reflect"
	"runtime"
	"sync"

	"mobula/graph/internal/drive"
	"mobula/internal/errs"
)

// ThreadsOption is an option of Threads.
type ThreadsOption func(have map[string]float64)

// Resource bounds how much of a resource tasks may take at once. Other resources are not bounded. Every run
// refuses an amount below 0, or of 2^50 or more.
func Resource(name string, amount float64) ThreadsOption {
	return func(have map[string]float64) { have[name] = amount }
}

// Threads runs tasks in goroutines of this process, n at once; 0 means GOMAXPROCS. A task annotated with another "CPU" than 1 counts as
// that many. The run waits even for a task that does not end with its context.
func Threads(n int, opts ...ThreadsOption) Executor {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	have := map[string]float64{"CPU": float64(min(n, math.MaxInt32))}
	for _, set := range opts {
		set(have)
	}
	return threads(have)
}

type threads map[string]float64

// Run implements Executor.
func (x threads) Run(ctx context.Context, p *Plan) ([]reflect.Value, error) {
	within, cancel := context.WithCancel(ctx)
	r := &threadsRunner{results: newResults(p), ends: make(chan drive.Ended)}
	defer r.running.Wait()
	defer cancel()
	return p.run(within, drive.Limits{Have: maps.Clone(x), Need: p.need}, r)
}

// need is what a task takes.
func (p *Plan) need(t int32) map[string]float64 {
	out := map[string]float64{"CPU": 1}
	if n := p.Tasks[t].Notes; n != nil {
		maps.Copy(out, n.Resources)
	}
	return out
}

// threadsRunner runs each task in a goroutine. A result is read only by tasks that start after its end was
// reported.
type threadsRunner struct {
	results
	ends    chan drive.Ended
	running sync.WaitGroup
}

// Start implements drive.Runner.
func (r *threadsRunner) Start(ctx context.Context, t int32) {
	r.running.Go(func() {
		e := drive.Ended{Task: t, Err: errGoexit}
		defer func() {
			select {
			case r.ends <- e:
			case <-ctx.Done(): // the run is over
			}
		}()
		r.values[t], e.Err = r.call(ctx, t)
		e.Again = true
	})
}

var errGoexit = errs.New(errs.CodePanic, "the function called runtime.Goexit instead of returning")

// Wait implements drive.Runner.
func (r *threadsRunner) Wait(ctx context.Context) ([]drive.Ended, error) {
	select {
	case e := <-r.ends:
		return []drive.Ended{e}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
