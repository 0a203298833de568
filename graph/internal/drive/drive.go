package drive

import (
	"context"
	"fmt"
	"math"

	"mobula/graph"
)

// Runner runs single tasks. Only the goroutine of Run calls its methods.
type Runner interface {
	// Start begins a task. All its inputs have succeeded.
	Start(ctx context.Context, task int32)
	// Wait returns the tasks that have ended since, at least one, or the reason why it stops waiting.
	Wait(ctx context.Context) ([]Ended, error)
	// Free drops a result that nobody needs any more.
	Free(task int32)
}

// Ended is a task that has ended.
type Ended struct {
	Task  int32
	Err   error // nil: it has a result
	Again bool  // it may run again if its annotation allows
}

// Failure is the error of the task that failed first.
type Failure struct {
	Task int32
	Err  error
}

func (f *Failure) Error() string { return fmt.Sprintf("task %d: %v", f.Task, f.Err) }

// Unwrap gives the task's error.
func (f *Failure) Unwrap() error { return f.Err }

// worker is the graph's only one.
const worker graph.WorkerID = 1

// Run runs a graph.
func Run(ctx context.Context, g *graph.Graph, lim Limits, r Runner) error {
	l, err := newLine(g.Len(), lim)
	if err != nil {
		return err
	}
	cfg := graph.DefaultConfig()
	cfg.Policy, cfg.Saturation, cfg.StealInterval = graph.Withhold, math.Inf(1), -1 // tasks wait only in line
	core, err := graph.NewCore(g, cfg)
	if err != nil {
		return err
	}
	d := &driver{core: core, line: l, runner: r, attempts: make([]int32, g.Len())}
	d.step(graph.WorkerJoined{Worker: worker, Threads: 1})
	d.step(graph.Start{})
	for !d.over {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for t, ok := l.next(); ok; t, ok = l.next() {
			r.Start(ctx, t)
		}
		ended, err := r.Wait(ctx)
		if err != nil {
			return err
		}
		for _, e := range ended {
			l.ended(e.Task)
			d.ended(e)
		}
	}
	if d.failure != nil {
		return d.failure
	}
	return nil
}

// driver turns the core's effects into calls of the runner.
type driver struct {
	core     *graph.Core
	line     *line
	runner   Runner
	attempts []int32
	failure  *Failure
	over     bool
}

func (d *driver) ended(e Ended) {
	if e.Err != nil {
		d.step(graph.Failure{Task: e.Task, Attempt: d.attempts[e.Task], Worker: worker, Err: e.Err, Retriable: e.Again})
		return
	}
	d.step(graph.Done{Task: e.Task, Attempt: d.attempts[e.Task], Worker: worker})
}

func (d *driver) step(ev graph.Event) {
	for _, e := range d.core.Step(0, ev) {
		switch e := e.(type) {
		case graph.Run:
			d.attempts[e.Task] = e.Attempt
			d.line.push(e.Task, e.Rank)
		case graph.Free:
			d.runner.Free(e.Task)
		case graph.Failed: // the first failure ends the run: no further task is started
			if d.failure == nil {
				d.failure = &Failure{Task: e.Chain[len(e.Chain)-1], Err: e.Err}
			}
			d.over = true
		case graph.Finished:
			d.over = true
		}
	}
}
