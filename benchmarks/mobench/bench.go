package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"
)

// The modes. Those over nodes are of several nodes, each on a host of its own.
const (
	embedded     = "embedded"
	process      = "process"
	separate     = "node"
	overNodes    = "nodes"
	overEmbedded = "nodes-embedded"
)

var modes = []string{embedded, process, separate}

var modesOverNodes = []string{overNodes, overEmbedded}

// benchCase is one measurement.
type benchCase struct {
	name string
	what string // for --help
	run  func(ctx context.Context, b *bench) (*report, error)
	skip map[string]string // by mode: why it cannot run there
	over bool              // nodes; else it is of one node
}

// fits tells whether the case is of the mode's kind.
func (c *benchCase) fits(mode string) bool { return c.over == slices.Contains(modesOverNodes, mode) }

// bench is what a case runs with.
type bench struct {
	params
	mode string
	runs int
	dir  string // of spill files and nodes: on a disk
	over *between
	sink *sink
	name string // of the case
	log  func(format string, args ...any)
}

// measure makes the samples.
func (b *bench) measure(ctx context.Context, once func(ctx context.Context, run int) (float64, error)) ([]float64, error) {
	out := make([]float64, 0, b.runs)
	for run := range b.runs {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		v, err := once(ctx, run)
		if err != nil {
			return nil, fmt.Errorf("run %d of %d: %w", run+1, b.runs, err)
		}
		b.log("%s %s: run %d of %d: %s", b.name, b.mode, run+1, b.runs, number(v))
		out = append(out, v)
	}
	return out, nil
}

// in runs the whole case on one cluster, and checks the node's count at the end.
func (b *bench) in(ctx context.Context, s setup, f func(cl *cluster) (*report, error)) (_ *report, err error) {
	cl, err := b.start(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cl.end(ctx)) }()
	r, err := f(cl)
	if err != nil {
		return nil, err
	}
	return r, cl.check(ctx)
}

// measureFresh makes each sample on a cluster of its own.
func (b *bench) measureFresh(ctx context.Context, s setup, once func(cl *cluster) (float64, error)) ([]float64, error) {
	return b.measure(ctx, func(ctx context.Context, _ int) (v float64, err error) {
		_, err = b.in(ctx, s, func(cl *cluster) (_ *report, err error) {
			v, err = once(cl)
			return nil, err
		})
		return v, err
	})
}

// each measures once a run on one cluster.
func (b *bench) each(ctx context.Context, unit string, once func(ctx context.Context, cl *cluster) (float64, error)) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		s, err := b.measure(cl.ctx, func(ctx context.Context, _ int) (float64, error) { return once(ctx, cl) })
		return &report{unit: unit, samples: s}, err
	})
}

// temp makes a directory that done removes.
func (b *bench) temp() (dir string, done func() error, err error) {
	dir, err = os.MkdirTemp(b.dir, "mobench-")
	if err != nil {
		return "", nil, fmt.Errorf("directory for files: %w; choose another with -dir", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// cpu measures the processor time of this process and all below it over f, in microseconds for each of n operations.
// It says what an operation costs where the wall clock says how busy the machine was.
func cpu(n int, f func() error) (us float64, err error) {
	before := processorTime(os.Getpid())
	err = f()
	return (processorTime(os.Getpid()) - before).Seconds() * 1e6 / float64(n), err
}

// perSecond is a rate.
func perSecond(n int, since time.Time) float64 { return float64(n) / time.Since(since).Seconds() }

// runCase runs one case with a deadline.
func runCase(ctx context.Context, c *benchCase, b *bench, timeout time.Duration) *result {
	out := &result{Case: c.name, Mode: b.mode}
	if why, ok := c.skip[b.mode]; ok {
		out.skipped = why
		return out
	}
	debug.FreeOSMemory() // what earlier cases used is not this one's
	// Not a deadline: it would be the deadline of every task.
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(timeout, func() { cancel(fmt.Errorf("not done after %v", timeout)) })
	defer func() { late.Stop(); cancel(nil) }()
	b.name = c.name
	r, err := c.run(ctx, b)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		out.err = err
		return out
	}
	out.report = r
	return out
}
